"""Bounds on sending and waiting, as the user gives them."""

from dataclasses import dataclass

from switchgnn.host.round_trip import SHORTEST_TIMEOUT

_LARGEST_GROUP = 8
_LONGEST_INTERVAL = 0.5
# A timeout must hold many, as heartbeats are lost on bad links.
_HEARTBEATS = 20


@dataclass(frozen=True)
class Pace:
    """Bounds on sending and waiting."""

    # Features in flight at most. On interfaces with offloads BMv2 reads each port through a ring of
    # about 30 frames and drops the rest (docs/limitations.md).
    window: int = 16
    # Seconds of silence after which the worker gives up the switch or another worker; also seconds
    # without any progress of its own.
    timeout: float = 20.0
    congestion_control: bool = True  # Slow down when packets come marked.
    # The least seconds before an answer is asked for again. More than software switches need avoids
    # repetitions on a busy machine.
    shortest_timeout: float = SHORTEST_TIMEOUT
    # Seconds beyond the timeout that others may be silent while they may be computing: before they
    # open a round; between hosts always. A worker that computes sends nothing, so this also delays
    # the detection of its end.
    skew: float = 0.0
    first_window: int = 16  # Features in flight at most before the network is known.

    @property
    def group_size(self) -> int:
        """Features that are acknowledged together: half a window, and at most 8."""
        return max(1, min(self.window // 2, _LARGEST_GROUP))

    @property
    def heartbeat_interval(self) -> float:
        """The longest time between two signs of life of a worker, in seconds."""
        return min(_LONGEST_INTERVAL, self.timeout / _HEARTBEATS)
