"""A model with GraphConv layers, for `switchgnn train --model FILE.py:Net`."""

from torch import Tensor, nn
from torch_geometric.nn import GraphConv


class Net(nn.Module):
    """Two layers.

    Args:
        features: of each vertex.
        classes: that vertices may have.
    """

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = GraphConv(features, 16), GraphConv(16, classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return a score for each vertex and class."""
        return self.second(self.first(x, edge_index).relu(), edge_index)
