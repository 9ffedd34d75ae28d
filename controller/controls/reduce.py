"""reduce.p4: the slots of the all-reduce, and how many contributions make a sum."""

from switchgnn.controller.base.plan import SwitchPlan
from switchgnn.controller.controls.banks import reduce_slots
from switchgnn.controller.controls.tables import Setting
from switchgnn.controller.p4runtime.layout import Layout


class Reduce(Setting):
    """The reduce table."""

    name, action = "reduce", "set_reduce"

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self._slots = reduce_slots(layout)

    def encode(self, plan: SwitchPlan) -> bytes:
        """Return the default action for the workers behind a switch; 0 of them for a strawman."""
        expected = sum(plan.members).bit_count() if self._slots else 0
        return self.encode_values({"expected": expected})

    def decode(self, default: bytes) -> int:
        """Return the contributions to a sum in a default action; 0: there is no all-reduce."""
        return self.decode_values(default)["expected"]
