"""fanout.p4: the slots of each source."""

import numpy as np

from switchgnn.base.network import Network
from switchgnn.controller.base.place import ALONE, Place
from switchgnn.controller.base.plan import SwitchPlan
from switchgnn.controller.controls.tables import Keyed
from switchgnn.controller.p4runtime.rows import Record, Rows, Value
from switchgnn.planner.sending.packets import are_partial


class Fanout(Keyed):
    """The fanout table."""

    name, action = "fanout", "set_slots"

    @property
    def banks(self) -> int:
        """How many slots an entry has room for."""
        names = {field.name for field in self.table.action(self.action).params}
        return sum(1 for name in names if name.startswith("slot"))

    def count(self, plan: SwitchPlan, network: Network | None = None) -> int:
        """Return the number of entries."""
        return int(np.count_nonzero(~are_partial(plan.switch.entry_source)))

    def rows(self, plan: SwitchPlan, network: Network | None = None, place: Place = ALONE) -> Rows:
        """Return one entry for each (block, source, hop), but for partial sums."""
        switch = plan.switch
        some = ~are_partial(switch.entry_source)
        expected, slot = switch.entry_expected[some], switch.entry_slot[some]
        used, rows = expected > 0, switch.entry_row[some]
        values: dict[str, Value] = {
            "block_id": switch.entry_block[some] + np.int64(place.first_block),
            "src_id": switch.entry_source[some],
            "hop": switch.entry_hop[some],
            "last_hop": switch.entry_last[some].astype(np.uint8),
            # 0 where an entry uses none.
            "last_bank": (used * np.arange(used.shape[1])).max(axis=1, initial=0),
        }
        for bank in range(self.banks):
            values[f"slot{bank}"] = np.where(used[:, bank], slot[:, bank], 0)
            values[f"expected{bank}"] = expected[:, bank]
            values[f"row{bank}"] = rows[:, bank]
        return self.make(values, len(used))

    def records(self, rows: Rows) -> list[Record]:
        """Return key, flags and used slots, as bank:slot(expected), of each entry."""
        found = super().records(rows)
        for record in found:
            slots = [
                tuple(record.pop(f"{name}{b}") for name in ("slot", "expected", "row"))
                for b in range(self.banks)
            ]
            record["slots"] = " ".join(
                f"{bank}:{slot}({count})" + f"+{row}" * bool(row)
                for bank, (slot, count, row) in enumerate(slots)
                if count
            )
        return found
