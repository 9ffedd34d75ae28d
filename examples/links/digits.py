"""Scikit-learn's digits as a `Data` of PyTorch Geometric; nothing is downloaded."""

import torch
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors
from torch_geometric.data import Data


def digits(neighbours: int = 8) -> Data:
    """Return the 1,797 images, each joined to those that are most like it."""
    images, labels = load_digits(return_X_y=True)
    # A tree adds up whole numbers, so ties are the same on every machine.
    tree = NearestNeighbors(n_neighbors=neighbours, algorithm="kd_tree").fit(images)
    near = tree.kneighbors_graph()
    source, target = map(torch.from_numpy, (near + near.T).nonzero())
    part = torch.rand(len(images), generator=torch.Generator().manual_seed(0))
    return Data(
        x=torch.from_numpy(images / 16).float(),
        y=torch.from_numpy(labels),
        edge_index=torch.stack([source, target]).long(),
        train_mask=part < 0.6,
        val_mask=(part >= 0.6) & (part < 0.8),
        test_mask=part >= 0.8,
    )
