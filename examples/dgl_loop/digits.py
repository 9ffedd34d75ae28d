"""Scikit-learn's digits as a graph of DGL; nothing is downloaded."""

import dgl
import torch
from sklearn.datasets import load_digits


def digits(neighbours: int = 8) -> dgl.DGLGraph:
    """Return the 1,797 images, each joined to those that are most like it, and to itself."""
    images, labels = map(torch.from_numpy, load_digits(return_X_y=True))
    # Whole numbers as float64 have exact distances, so both scripts get the same graph.
    graph = dgl.to_bidirected(dgl.knn_graph(images, neighbours, exclude_self=True))
    graph = dgl.add_self_loop(graph)
    part = torch.rand(len(images), generator=torch.Generator().manual_seed(0))
    graph.ndata.update(
        feat=images.float() / 16,
        label=labels,
        train_mask=part < 0.6,
        val_mask=(part >= 0.6) & (part < 0.8),
        test_mask=part >= 0.8,
    )
    return graph
