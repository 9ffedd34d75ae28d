# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How long a worker computes in an epoch: a model, apart from what is simulated.

Operations of a GCN, divided by the rate of the paper's GPU. Everything that the model leaves out
(other kernels, launches, copies to the card) makes an epoch longer by the same time in all
systems that are compared.
"""

from dataclasses import dataclass

_FLOAT_BYTES = 4
# Forward, and backward for the weights and for the layer below.
_PRODUCTS = 3
# Forward and backward.
_SUMS = 2


@dataclass(frozen=True)
class Gpu:
    """A card by its data sheet, and the share of it that kernels reach.

    Attributes:
        operations_per_second: multiplications and additions of float32.
        bytes_per_second: to and from its memory.
        share: of both that is reached.
    """

    operations_per_second: float
    bytes_per_second: float
    share: float = 0.5


# NVIDIA GeForce RTX 3090, the paper's: 35.6 TFLOPS and 936 GB/s (NVIDIA GA102 whitepaper). That
# kernels reach half of either is an assumption.
RTX_3090 = Gpu(35.6e12, 936e9)


def compute_seconds(
    vertices: int, additions: float, features: int, layers: int, gpu: Gpu = RTX_3090
) -> float:
    """Return the seconds of one epoch of one worker, all layers of the same width.

    A layer multiplies the features of its vertices with a square matrix, which the card's
    operations limit, and adds up rows of neighbours, each of which is read, which memory limits.

    Args:
        vertices: of the worker.
        additions: rows that it adds up in a layer: one per edge, but for sums that the switch has
            made, which are one row each.
        features: width F.
        layers: of the network.
        gpu: the card.

    Returns:
        Seconds.
    """
    products = _PRODUCTS * 2 * vertices * features**2 / gpu.operations_per_second
    sums = _SUMS * additions * features * _FLOAT_BYTES / gpu.bytes_per_second
    return layers * (products + sums) / gpu.share
