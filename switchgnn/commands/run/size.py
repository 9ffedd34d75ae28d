# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How much room the features and sums of a run take, before it makes the first of them."""

from switchgnn.commands.shared.memory import available_memory
from switchgnn.errors import SwitchGNNError
from switchgnn.host.wire.header import WIDEST

# A feature is a float32. A sum is kept as int32 and as float32.
_FEATURE_BYTES, _SUM_BYTES = 4, 8
# Of the sums that are kept before they are compared, in place of those of one round.
_KEPT_BYTES = 1 << 20
_GIGA = 1e9


class SizeError(SwitchGNNError):
    """A run is too large for a header or for the memory."""


def check_size(vertices: int, width: int) -> None:
    """Check that features and sums have room, as far as can be said without making them.

    Args:
        vertices: of the graph.
        width: of a feature.

    Raises:
        SizeError: they have no room.
    """
    if width > WIDEST:
        raise SizeError(
            f"Features of {width:,} numbers are too wide: a header counts the frames of at most "
            f"{WIDEST:,}. Give --features less."
        )
    needed = vertices * width * (_FEATURE_BYTES + _SUM_BYTES)
    room = available_memory()
    if room is not None and needed > room:
        raise SizeError(
            f"{vertices:,} features of {width:,} numbers and their sums take {_size(needed)} of "
            f"memory, and {_size(room)} are free: give --features less."
        )


def rounds_kept(vertices: int, width: int) -> int:
    """Return of how many rounds the sums are kept at once, so that memory has a bound.

    Args:
        vertices: of the graph.
        width: of a feature.
    """
    return max(1, _KEPT_BYTES // max(1, vertices * width * _SUM_BYTES))


def _size(number: int) -> str:
    return f"{number / _GIGA:,.1f} GB" if number >= _GIGA / 10 else f"{number / 1e6:,.1f} MB"
