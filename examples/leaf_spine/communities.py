"""A graph of four communities, two of which are close to each other."""

import torch
from torch_geometric.data import Data
from torch_geometric.transforms import RandomNodeSplit
from torch_geometric.utils import stochastic_blockmodel_graph

_WITHIN, _NEAR, _FAR = 0.08, 0.02, 0.005
_MEMBERS = 80


def communities() -> Data:
    """Return 320 vertices, whose features tell little of their community without neighbours."""
    torch.manual_seed(0)
    of_a_half = torch.tensor([[_WITHIN, _NEAR], [_NEAR, _WITHIN]])
    far = torch.full((2, 2), _FAR)
    chance = torch.cat([torch.cat([of_a_half, far], 1), torch.cat([far, of_a_half], 1)])
    edges = stochastic_blockmodel_graph([_MEMBERS] * 4, chance)
    labels = torch.arange(4).repeat_interleave(_MEMBERS)
    features = torch.eye(4)[labels] + torch.randn(len(labels), 4)
    data = Data(x=features, y=labels, edge_index=edges)
    return RandomNodeSplit(num_val=0.2, num_test=0.2)(data)
