"""congestion.p4: the thresholds at which packets are marked."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from switchgnn.base.network import Network
from switchgnn.controller.base.place import LOOP_LANES
from switchgnn.controller.base.plan import SwitchPlan
from switchgnn.controller.controls.tables import Entries
from switchgnn.controller.p4runtime.rows import Rows

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


class Congestion(Entries):
    """The threshold table."""

    name, action = "threshold", "set_threshold"

    def count(self, plan: SwitchPlan, network: Network) -> int:
        """Return the number of entries of a job."""
        return plan.neighbours + LOOP_LANES

    def encode(self, marking: Marking, ports: Sequence[int]) -> Rows:
        """Return one entry for each port, all with the same thresholds."""
        return self.make({"port": list(ports), **asdict(marking)}, len(ports))

    def decode(self, rows: Rows) -> dict[int, Marking]:
        """Return the thresholds of each port."""
        return self.decode_as(Marking, rows)
