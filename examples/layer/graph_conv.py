# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Lets PyG's GraphConv, W1 x_v + W2 * (sum of x_u), see the neighbours on other workers."""

from typing import Any

from torch import Tensor
from torch_geometric.nn import GraphConv

from switchgnn.training.errors import UnsupportedLayerError
from switchgnn.training.partition import Partition
from switchgnn.training.sums.remote_sum import Launched, RemoteSum


def adapt_graph_conv(layer: GraphConv, _partition: Partition, remote: RemoteSum) -> None:
    """Launch an exchange before the layer propagates, and add what has come afterwards.

    Args:
        layer: it sums; it is changed in place.
        remote: sums over remote neighbours, of one row per vertex of this worker.
    """
    launched: list[Launched] = []

    def check(_layer: object, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        if named.get("edge_weight") is not None or len(arguments) > 2:
            raise UnsupportedLayerError(
                "GraphConv was given edge weights: a weight per edge means another row per "
                "edge, and a source is sent once."
            )

    def before(_layer: object, inputs: tuple[Any, ...]) -> None:
        source_rows, _ = inputs[-1]["x"]
        launched.append(remote.launch(source_rows))

    def after(_layer: object, _inputs: object, local: Tensor) -> Tensor:
        return local + launched.pop().land()

    layer.register_forward_pre_hook(check, with_kwargs=True)
    layer.register_propagate_forward_pre_hook(before)
    layer.register_propagate_forward_hook(after)
