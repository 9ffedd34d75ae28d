# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What became of the flows in the background of an exchange."""

from dataclasses import dataclass
from typing import Any

_TRACED = "flow_"


@dataclass(frozen=True)
class Flow:
    """A flow; on request only.

    Attributes:
        began: picoseconds since the background did.
        arrived: when its last byte had.
        sender: a worker.
        receiver: another one.
        bytes: of it.
    """

    began: int
    arrived: int
    sender: int
    receiver: int
    bytes: int


@dataclass(frozen=True)
class BackgroundRun:
    """All flows: those before the exchange, during it, and what was left of them afterwards.

    Attributes:
        flows: how many began.
        flows_finished: how many were acknowledged whole.
        seconds: while which flows began.
        bytes: of the flows' frames.
        bytes_sent: the same with what was sent again.
        bytes_arrived: each once.
        bytes_repeated: that came a second time.
        bytes_lost: that found a full queue.
        lost: frames that did.
        marked: frames that found a longer queue than the threshold.
        window_cuts: how often windows of flows were narrowed.
        mean_slowdown: time of a flow over what it takes in an empty network at the links' rate.
        high_slowdown: which 99 % of the flows do not exceed.
        trace: all flows, if they were asked for.
    """

    flows: int
    flows_finished: int
    seconds: float
    bytes: int
    bytes_sent: int
    bytes_arrived: int
    bytes_repeated: int
    bytes_lost: int
    lost: int
    marked: int
    window_cuts: int
    mean_slowdown: float
    high_slowdown: float
    trace: tuple[Flow, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return all but the trace as plain data."""
        return {name: value for name, value in vars(self).items() if name != "trace"}


def decode_background(told: dict[str, Any] | None) -> BackgroundRun | None:
    """Read what the models said of it, if there was any."""
    if told is None:
        return None
    plain = {name: value for name, value in told.items() if not name.startswith(_TRACED)}
    names = ("began", "arrived", "from", "to", "size")
    columns = (told.get(f"{_TRACED}{name}", ()) for name in names)
    return BackgroundRun(**plain, trace=tuple(map(Flow, *columns)))
