"""A model with SimpleConv layers, for `switchgnn train --model FILE.py:Net`."""

from torch import Tensor, nn
from torch_geometric.nn import SimpleConv


class Net(nn.Module):
    """Two layers.

    Args:
        features: of each vertex.
        classes: that vertices may have.
    """

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(features, 16), nn.Linear(16, classes)
        self.near, self.far = SimpleConv(combine_root="sum"), SimpleConv(combine_root="sum")

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return a score for each vertex and class."""
        return self.far(self.second(self.near(self.first(x), edge_index).relu()), edge_index)
