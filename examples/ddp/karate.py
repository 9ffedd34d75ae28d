"""PyTorch Geometric's karate club, with masks; nothing is downloaded."""

import torch
from torch_geometric.data import Data
from torch_geometric.datasets import KarateClub
from torch_geometric.transforms import RandomNodeSplit


def karate() -> Data:
    """Return the 34 members, each joined to those whom he meets elsewhere, too."""
    torch.manual_seed(0)
    return RandomNodeSplit(num_val=0.2, num_test=0.2)(KarateClub()[0])
