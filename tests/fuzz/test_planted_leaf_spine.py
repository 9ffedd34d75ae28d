# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What test_mad_leaf_spine.py checks fails when a leaf does not look at who says something."""

import pytest

from switchgnn.controller import P4RuntimeClient
from switchgnn.controller.controls.session import ABOVE, WorkerPorts
from switchgnn.controller.p4runtime.messages import MODIFY
from switchgnn.controller.p4runtime.rows import make_rows
from switchgnn.controller.p4runtime.wire import encode_rows
from switchgnn.host.pace import Pace
from switchgnn.p4src import load_program
from tests.fuzz.leaf_spine_checks import complaints
from tests.fuzz.leaf_spine_field import leaf_spine_field
from tests.fuzz.test_mad_leaf_spine import MAD, WORKERS, attack, forged_shots
from tests.planted.planting import changed_program, cut_branches
from tests.ptf.switchgnn_ptf.mistakes import let_anything_have_its_turn
from tests.support import leaf_spine_fabrics
from tests.support.markers import some_of

FRAMES = 16_000
PACE = Pace(patience=5.0)

# Each check by fields that occur together in its condition only, and how often it is made.
CHECKS = {
    "features are their owner's": (("_source_port", "_loop_port"), 1),
    "recalls and fetches are their destination's": (("_destination_port", "_loop_port"), 1),
    "reports and notices are in the own name": (("_is_worker", "src_id"), 2),
    "answers come from above": (('"0x0a"', '"0x07"', '"0x09"', "!="), 1),
}


def without(program, fields, times):
    """Cut off the branches that refuse."""

    def change(compiled):
        cut_branches(compiled, fields, times)
        # Else only packets for the block of the moment get as far as the check.
        let_anything_have_its_turn(compiled)

    return changed_program(program, "passage", change)


def take_for_a_spine(ground, worker):
    """Change the leaf's table: the worker's port leads to a spine."""
    switch = ground.bed.site.switches[ground.leaf_of_worker[worker]]
    with P4RuntimeClient(switch.grpc_address) as client:
        table = WorkerPorts(client.get_layout()).table
        port = {"port": ground.bed.site.port(worker)}
        client.write_requests(encode_rows(MODIFY, make_rows(table, ABOVE, port, 1)))


def complaints_of_an_attack(ground):
    return complaints(ground, attack(ground, forged_shots(ground, FRAMES), PACE))


@pytest.mark.usefixtures("not_compiled")
@pytest.mark.parametrize("check", some_of(lambda place: place == 0, list(CHECKS)))
def test_a_missing_check_is_noticed(check, tmp_path, monkeypatch):
    program = without(load_program(), *CHECKS[check])
    monkeypatch.setattr(leaf_spine_fabrics, "load_program", lambda: program)
    with leaf_spine_field(tmp_path, workers=WORKERS) as ground:
        assert complaints_of_an_attack(ground)


def test_a_wrong_entry_is_noticed(tmp_path):
    with leaf_spine_field(tmp_path, workers=WORKERS) as ground:
        take_for_a_spine(ground, MAD)
        assert complaints_of_an_attack(ground)


def test_without_a_mistake_there_is_none(tmp_path):
    with leaf_spine_field(tmp_path, workers=WORKERS) as ground:
        assert complaints_of_an_attack(ground) == []
