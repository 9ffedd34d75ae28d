"""congestion.p4: the thresholds at which packets are marked."""

from dataclasses import asdict, dataclass

from switchgnn.controller.controls.tables import Setting

# In packets; half of a queue of BMv2.
DEFAULT_ECN_THRESHOLD = 32
BMV2_QUEUE = 64
# Longer queues are marked even if the plan explains them, as the next packets may not fit.
_MOST_OF_QUEUE = 0.75


@dataclass(frozen=True)
class Marking:
    """The queue lengths, in packets, from which on packets are marked."""

    beside_others: int = DEFAULT_ECN_THRESHOLD  # on ports with ordinary traffic
    alone: int = DEFAULT_ECN_THRESHOLD  # on others


def marking(beside_others: int, queue: int, sums: int) -> Marking:
    """Return the thresholds for queues of some packets, where a worker gets up to `sums` a time."""
    explained = min(sums, int(_MOST_OF_QUEUE * queue))
    return Marking(beside_others, max(beside_others, explained))


class Congestion(Setting):
    """The threshold table."""

    name, action = "threshold", "set_threshold"

    def encode(self, marking: Marking) -> bytes:
        """Return the default action for two thresholds."""
        return self.encode_values(asdict(marking))

    def decode(self, default: bytes) -> Marking:
        """Return the thresholds in a default action."""
        return Marking(**self.decode_values(default))
