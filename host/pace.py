# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Bounds on sending and waiting, as the user gives them."""

from dataclasses import dataclass

from switchgnn.host.round_trip import SHORTEST_TIMEOUT

_LARGEST_GROUP = 8
_LONGEST_BEAT = 0.5
# A patience must hold many, as beats are lost on bad links.
_BEATS = 20


@dataclass(frozen=True)
class Pace:
    """Bounds on sending and waiting.

    Attributes:
        window: features in flight at most. On interfaces with offloads BMv2 reads each port
            through a ring of about 30 frames and loses what does not fit
            (docs/limitations.md).
        patience: seconds of silence after which the worker gives up the switch or another worker;
            and seconds without any progress of its own after which it gives up itself.
        skew: seconds beyond the patience that others may be silent where they may be computing,
            which is before they open a round; between hosts always. Of a worker that computes
            nobody hears anything, so this is also how late its end is noticed.
        congestion_control: slow down when packets come marked.
        shortest_timeout: seconds that an answer is waited for at least, before it is asked for
            again. More than software switches need keeps a busy machine from repeating.
        first_window: features in flight at most before anything is known of the network.
    """

    window: int = 16
    patience: float = 20.0
    congestion_control: bool = True
    shortest_timeout: float = SHORTEST_TIMEOUT
    skew: float = 0.0
    first_window: int = 16

    @property
    def group_size(self) -> int:
        """Features that are acknowledged together: half a window, and at most 8."""
        return max(1, min(self.window // 2, _LARGEST_GROUP))

    @property
    def beat(self) -> float:
        """Seconds after which a worker says again that it is there, at most."""
        return min(_LONGEST_BEAT, self.patience / _BEATS)
