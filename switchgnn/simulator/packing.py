# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How rows between hosts are cut into frames: up to an MTU, or a fragment each."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.wire.header import (
    BODY_AT,
    ETHERNET_BYTES,
    FRAGMENT_BYTES,
    fragments_of,
)
from switchgnn.simulator.errors import SimulatorError

# In place of a number: a fragment of one row in each frame, padded, as the switch needs it.
FRAGMENT: Literal["fragment"] = "fragment"
Mtu = int | Literal["fragment"]
ETHERNET_MTU = 1_500
# Room for one number, and frames of 9,216 bytes: the most that switches commonly take.
_LEAST, _MOST = 50, 9_202
_NUMBER_BYTES = 4


@dataclass(frozen=True)
class Packing:
    """How the rows of one worker for another one travel.

    They are one run of bytes, which is cut into frames of the same size; the last one is shorter.

    Attributes:
        row_bytes: of a row in that run.
        payload_bytes: of the run in a full frame.
    """

    row_bytes: int
    payload_bytes: int

    @property
    def frame_bytes(self) -> int:
        """Return the bytes of a full frame with its headers."""
        return BODY_AT + self.payload_bytes

    def frames(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many frames that number of rows takes, int64 of the same shape."""
        return -(-rows * self.row_bytes // self.payload_bytes)

    def last_frame_bytes(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the bytes of the last of these frames, int64 of the same shape."""
        before = (self.frames(rows) - 1) * self.payload_bytes
        return BODY_AT + rows * self.row_bytes - before


def packing_of(features: int, mtu: Mtu) -> Packing:
    """Return how rows of that width are packed.

    Args:
        features: float32 numbers of a row.
        mtu: bytes of the largest IP packet; or FRAGMENT, for a padded fragment in each frame.

    Raises:
        SimulatorError: packets of that size cannot be.
    """
    if mtu == FRAGMENT:
        return Packing(fragments_of(features) * FRAGMENT_BYTES, FRAGMENT_BYTES)
    if not _LEAST <= mtu <= _MOST:
        raise _refused(mtu)
    room = mtu + ETHERNET_BYTES - BODY_AT
    return Packing(_NUMBER_BYTES * features, room - room % _NUMBER_BYTES)


def parse_mtu(text: str) -> Mtu:
    """Return what `--mtu` says.

    Raises:
        SimulatorError: it is neither a number that can be nor the word.
    """
    if text == FRAGMENT:
        return FRAGMENT
    if not (text.isdecimal() and len(text) <= len(str(_MOST))):
        raise _refused(text)
    mtu = int(text)
    packing_of(1, mtu)  # or say what is wrong
    return mtu


def _refused(mtu: object) -> SimulatorError:
    return SimulatorError(
        f"The MTU must be from {_LEAST} to {_MOST:,} bytes, or the word {FRAGMENT}, but it is "
        f"{mtu}."
    )
