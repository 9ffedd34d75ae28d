"""A model of DGL's layers."""

from dgl import DGLGraph
from dgl.nn import GraphConv, SAGEConv
from torch import Tensor, nn


class Net(nn.Module):
    """Two layers.

    Args:
        features: of each vertex.
        classes: that vertices may have.
    """

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = GraphConv(features, 32), SAGEConv(32, classes, "mean")

    def forward(self, g: DGLGraph, x: Tensor) -> Tensor:
        """Return a score for each vertex and class."""
        return self.second(g, self.first(g, x).relu())
