"""SwitchGNN: full-graph GNN neighbour sums, multicast and aggregated in a P4 switch."""

__version__ = "0.4.0"
