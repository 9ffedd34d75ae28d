# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a run has room for its features and sums, before it makes the first of them."""

from switchgnn.errors import SwitchGNNError
from switchgnn.host.wire.header import WIDEST
from switchgnn.machine.memory import available_memory

# A feature is a float32. A sum is kept as int32 and as float32, of every round.
_FEATURE_BYTES, _SUM_BYTES = 4, 8
_GIGA = 1e9


class SizeError(SwitchGNNError):
    """A run is too large for a header or for the memory."""


def check_size(vertices: int, width: int, rounds: int) -> None:
    """Check that features and sums have room, as far as can be said without making them.

    Args:
        vertices: of the graph.
        width: of a feature.
        rounds: of exchanges, whose sums are all compared at the end.

    Raises:
        SizeError: they have no room.
    """
    if width > WIDEST:
        raise SizeError(
            f"Features of {width:,} numbers are too wide: a header counts the frames of at most "
            f"{WIDEST:,}. Give --features less."
        )
    needed = vertices * width * (_FEATURE_BYTES + rounds * _SUM_BYTES)
    room = available_memory()
    if room is not None and needed > room:
        raise SizeError(
            f"{vertices:,} features of {width:,} numbers and their sums of {rounds:,} rounds take "
            f"{_size(needed)} of memory, and {_size(room)} are free: give --features or --rounds "
            "less."
        )


def _size(number: int) -> str:
    return f"{number / _GIGA:,.1f} GB" if number >= _GIGA / 10 else f"{number / 1e6:,.1f} MB"
