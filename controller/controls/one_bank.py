"""tofino/access.p4, and what a plan is for a program with one bank."""

from dataclasses import replace

import numpy as np

from switchgnn.base.network import Network
from switchgnn.controller.base.place import ALONE, Place
from switchgnn.controller.base.plan import SwitchPlan
from switchgnn.controller.controls.fanout import Fanout
from switchgnn.controller.controls.tables import Keyed
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.controller.p4runtime.rows import Rows, Value
from switchgnn.planner.plan.leaf_spine import partial_senders


def fitted(plan: SwitchPlan, layout: Layout) -> SwitchPlan:
    """Return a plan with as many banks as a program has, if that is one and suffices.

    The bank has the slots of all banks of each pool. Where all slots begin in even banks, each has
    two of them.
    """
    switch, manifest = plan.switch, plan.manifest
    used, banks = switch.entry_expected > 0, switch.entry_slot.shape[1]
    if Fanout(layout).banks > 1 or banks == 1 or used.sum(axis=1).max(initial=0) > 1:
        return plan
    wide = 1 if np.any(switch.result_bank % 2) else 2
    bank = used.argmax(axis=1)[:, np.newaxis]
    names = ("entry_slot", "entry_expected", "entry_row")
    taken = {name: np.take_along_axis(getattr(switch, name), bank, axis=1) for name in names}
    taken["entry_slot"] += (bank // wide * manifest.pool_slots).astype(np.uint32)
    before = switch.result_bank.astype(np.uint32) // wide * np.uint32(manifest.pool_slots)
    taken["result_slot"] = switch.result_slot + before
    taken["result_bank"] = np.zeros_like(switch.result_bank)
    size = banks // wide * manifest.slots_per_bank
    whole = replace(manifest, banks=1, slots_per_bank=size)
    return replace(plan, manifest=whole, switch=replace(switch, **taken))


class Allowed(Keyed):
    """The same table of the Tofino program, where no packet has room for a set."""

    name, action = "partial", "allow"

    def count(self, plan: SwitchPlan, network: Network | None = None) -> int:
        """Return the number of entries."""
        return len(partial_senders(plan.switch)[0])

    def rows(self, plan: SwitchPlan, network: Network | None = None, place: Place = ALONE) -> Rows:
        """Return one entry for each sender of a partial sum for a destination of a block."""
        switch, (result, neighbour) = plan.switch, partial_senders(plan.switch)
        values: dict[str, Value] = {
            "block_id": switch.result_block[result] + np.int64(place.first_block),
            "dst_id": switch.result_vertex[result],
            "worker": np.array(plan.below, np.int64)[neighbour] + place.first_worker,
        }
        return self.make(values, len(result))
