"""A model of one's own, of PyTorch Geometric's layers."""

from torch import Tensor, nn
from torch_geometric.nn import SAGEConv


class Net(nn.Module):
    """Two layers of GraphSAGE, with a normalisation and a skip connection."""

    def __init__(self, features: int, classes: int, hidden: int = 16) -> None:
        super().__init__()
        self.first = SAGEConv(features, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.second = SAGEConv(hidden, classes)
        self.skip = nn.Linear(hidden, classes)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        """Return [n, classes], one row of logits per vertex."""
        hidden = self.norm(self.first(x, edges)).relu()
        return self.second(hidden, edges) + self.skip(hidden)
