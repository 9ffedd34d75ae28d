"""PyG's GraphConv, W1 x_v + W2 * (sum of x_u) + b, as one sum over neighbours."""

from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional
from torch_geometric.nn import GraphConv

from switchgnn.training.layers.summed import ALL_ROWS, SummedLayer
from switchgnn.training.partition import Partition


@dataclass(frozen=True, eq=False)
class SummedGraphConv(SummedLayer):
    """Sums the rows or, where those are narrower, the rows times W2."""

    layer: GraphConv

    @property
    def width(self) -> int:
        """The number of elements of an output."""
        return int(self.layer.out_channels)

    mapped_width = width

    def map(self, rows: Tensor) -> Tensor:
        """Return the rows times W2."""
        return functional.linear(rows, self.layer.lin_rel.weight)

    def after(self, inputs: Tensor, sums: Tensor, _span: slice = ALL_ROWS) -> Tensor:
        """Add the bias and the vertices' own rows; see ``SummedLayer``."""
        outputs = sums + self.layer.lin_root(inputs)
        return outputs if self.layer.lin_rel.bias is None else outputs + self.layer.lin_rel.bias


def sum_graph_conv(layer: GraphConv, _partition: Partition, _order: Tensor) -> SummedLayer:
    """Return a GraphConv as a sum over neighbours; it needs nothing of the partition."""
    return SummedGraphConv(layer)
