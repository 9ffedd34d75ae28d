"""`switchgnn train`: full-graph GNN training, and its report."""
