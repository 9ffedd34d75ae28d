"""Attention whose weights factor, so that a switch can add it up: softmax over scores of sources.

A score s_u + t_v of both ends, as in GAT without LeakyReLU, gives weights exp(s_u) / Σ exp(s_w), in
which t_v cancels out. So a source sends exp(s_u)·x_u and, in one more number of each head,
exp(s_u); the destination divides one sum by the other. (Brody, Alon and Yahav, ICLR 2022, show that
the ranking of GAT's weights does not depend on the destination either.)
"""

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import add_self_loops, remove_self_loops

from switchgnn.training.data.partition import Partition
from switchgnn.training.layers.summed import Scaled


class SourceAttentionConv(MessagePassing):  # type: ignore[misc]
    """Average the mapped rows of neighbours and of the vertex, by scores of the sources.

    Args:
        in_channels: numbers of an input row.
        out_channels: numbers of an output row, of each head.
        heads: of scores and maps; their outputs are concatenated.
        bound: of a score, by tanh: the largest weight is exp(2 · bound) times the smallest, and the
            rows that a switch adds differ as much.
    """

    def __init__(
        self, in_channels: int, out_channels: int, heads: int = 1, *, bound: float = 3.0
    ) -> None:
        super().__init__(aggr="add")
        self.in_channels, self.out_channels, self.heads = in_channels, out_channels, heads
        self.bound = bound
        self.lin = nn.Linear(in_channels, heads * out_channels, bias=False)
        self.score = nn.Parameter(torch.empty(1, heads, out_channels))
        self.bias = nn.Parameter(torch.zeros(heads * out_channels))
        nn.init.xavier_uniform_(self.lin.weight)
        nn.init.xavier_uniform_(self.score)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return [n, heads · out_channels] of rows [n, in_channels]."""
        edges, _ = add_self_loops(remove_self_loops(edge_index)[0], num_nodes=len(x))
        sums: Tensor = self.propagate(edges, x=self.weigh(x))
        return self.divide(sums)

    def weigh(self, x: Tensor) -> Tensor:
        """Return what sources send: mapped rows times their weights, and the weights."""
        rows = self.lin(x).view(-1, self.heads, self.out_channels)
        scores = (rows * self.score).sum(dim=-1, keepdim=True)
        weights = torch.exp(self.bound * torch.tanh(scores / self.bound))
        return torch.cat([(rows * weights).flatten(1), weights.flatten(1)], dim=1)

    def divide(self, sums: Tensor) -> Tensor:
        """Return the averages of the sums of what sources send."""
        rows, weights = sums[:, : -self.heads], sums[:, -self.heads :]
        averages = rows.view(-1, self.heads, self.out_channels) / weights.unsqueeze(-1)
        outputs: Tensor = averages.flatten(1) + self.bias
        return outputs


def sum_source_attention(layer: SourceAttentionConv, _part: Partition, _order: Tensor) -> Scaled:
    """Return the layer as the sum of what sources send, divided by that of their weights."""
    width = layer.heads * layer.out_channels
    return Scaled(lambda _, sums: layer.divide(sums), width, project=layer.weigh, loops=True)
