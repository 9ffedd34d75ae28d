"""PyG's SimpleConv, the sum of x_u without weights, as one sum over neighbours."""

import torch
from torch import Tensor
from torch_geometric.nn import SimpleConv

from switchgnn.training.data.partition import Partition
from switchgnn.training.layers.summed import Scaled, SummedLayer


def sum_simple_conv(layer: SimpleConv, _partition: Partition, _order: Tensor) -> SummedLayer:
    """Return a SimpleConv as a sum over neighbours; it needs nothing of the partition."""

    def finish(inputs: Tensor, sums: Tensor) -> Tensor:
        return torch.cat([inputs, sums], dim=-1) if layer.combine_root == "cat" else sums

    return Scaled(finish, own=layer.combine_root in {"sum", "self_loop"})
