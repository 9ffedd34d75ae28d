# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What G3's bins save of an epoch: a model, apart from what is simulated.

A worker computes the vertices of a layer bin by bin, and what a bin gives is sent while the next
one is computed (Wan et al., SIGMOD 2023, section 5).
"""

# Of G3's comparison with other full-graph systems (section 7).
BIN_SIZE = 5_000


def bins_of(vertices: int, size: int) -> int:
    """Return how many bins of that size the vertices fill."""
    return -(-vertices // size)


def overlapped_seconds(compute: float, communication: float, bins: int) -> float:
    """Return what a layer, or an epoch of layers that are alike, takes less with bins.

    A pipeline of two stages: each bin takes the same share of both times, is computed after the
    bin before it, and sent when it has been computed and the one before it has been sent. With B
    bins that takes (c + s + (B - 1) max(c, s)) / B, or c + s less what is returned.

    Args:
        compute: c, seconds.
        communication: s, seconds.
        bins: B; 0: there are none.

    Returns:
        Seconds.
    """
    return min(compute, communication) * (bins - 1) / bins if bins else 0.0
