"""The digits without labels, and the edges to learn and to predict; the same in every process."""

import torch
from digits import digits
from torch_geometric.data import Data


def links(held_out: float = 0.1) -> tuple[Data, torch.Tensor, torch.Tensor]:
    """Return the graph of the training edges, these edges [2, E], and the held-out ones."""
    whole = digits()
    edges = whole.edge_index[:, whole.edge_index[0] < whole.edge_index[1]]
    chosen = torch.rand(edges.shape[1], generator=torch.Generator().manual_seed(0)) < held_out
    train, test = edges[:, ~chosen], edges[:, chosen]
    return Data(x=whole.x, edge_index=torch.cat([train, train.flip(0)], dim=1)), train, test


def with_negatives(edges: torch.Tensor, vertices: int, seed: int) -> tuple[torch.Tensor, ...]:
    """Return edges and as many random pairs of vertices, [2, 2E], and their labels, [2E]."""
    generator = torch.Generator().manual_seed(seed)
    random = torch.randint(vertices, edges.shape, generator=generator)
    label = torch.arange(2 * edges.shape[1]) < edges.shape[1]
    return torch.cat([edges, random], dim=1), label.float()
