# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A Byzantine worker behind a leaf: what it forges ends there.

It says what leaves and spines say, and what workers of other leaves say. No sum changes, every
frame has one outcome in its leaf, and the spine sees nothing of it. What it may say of its own
vertices, and what that costs, is in test_star.py.
"""

import numpy as np
import pytest

from switchgnn.controller import P4RuntimeClient
from switchgnn.controller.controls.session import ABOVE, WorkerPorts
from switchgnn.controller.p4runtime.messages import MODIFY
from switchgnn.controller.p4runtime.rows import make_rows
from switchgnn.controller.p4runtime.wire import encode_rows
from switchgnn.host.wire.header import LAST_ROUND, Kind
from switchgnn.p4src import load_program
from switchgnn.topologies import Backend
from tests.fuzz.field import leaf_spine
from tests.fuzz.frames import LeafSpineGenerator
from tests.fuzz.links import OF_ALL_REDUCES, FiringLink, LyingLink, attack, forged_shots
from tests.fuzz.team import ALL, BRIEF, FRAGMENTS
from tests.planted.planting import changed_program, cut_branches
from tests.ptf.switchgnn_ptf.mistakes import let_anything_have_its_turn
from tests.support import leaf_spine_fabrics
from tests.support.markers import some_of

WORKERS = 4
BYZANTINE = WORKERS - 1
FRAMES = 200_000 if ALL else 8_000
LYING_ROUNDS = 30 if ALL else 3
# Outcomes of frames that a spine refuses and no leaf forwards.
REFUSED = (
    *("WRONG_PORT", "UNKNOWN_VERTEX", "UNKNOWN_BLOCK", "WRONG_COUNT", "WRONG_PLAN"),
    *("MALFORMED", "UNKNOWN_KIND"),
)
# Requests of workers that a leaf may forward.
ASKED = {
    "RECALLED": "recalls",
    "FETCHED": "fetches",
    "RESENT": "features_served",
    "NOTICED": "notices",
}


def complaints_after_forgeries(field, frames, **options):
    generator = LeafSpineGenerator(
        field.world,
        1,
        partial_sums=field.partial_sums(),
        workers=WORKERS,
        source=field.mac(BYZANTINE),
        target=field.world.network.switch.mac,
    )
    shots = forged_shots(field, generator, BYZANTINE, frames)
    firing = FiringLink(field, BYZANTINE, shots, end=BYZANTINE)
    return list(complaints(field, attack(field, firing, **options)))


def complaints(field, team):
    """Wrong sums, frames without an outcome, and forged frames that were accepted."""
    if team.errors:
        yield f"workers have errors: {team.errors}"
        return
    if wrong := team.wrong_rows():
        yield f"the sums of {wrong} differ"
    counted, arrived = field.counted_each(), field.arrived()
    if [sum(counts.values()) for counts in counted] != arrived:
        yield f"switches count {counted} of {arrived} frames"
    done = team.round * field.world.barriers
    for leaf, counts in enumerate(counted[: field.leaves]):
        own = [team.exchanges[worker].counters for worker in field.workers_of(leaf)]
        right = {
            "AGGREGATED": sum(counters.features_sent for counters in own),
            "DONE_COLLECTED": done * len(own),
            "NOTICED": sum(counters.notices for counters in own),
            "WRONG_PLAN": 0,
            **dict.fromkeys(OF_ALL_REDUCES, 0),
        }
        if (there := {name: counts[name] for name in right}) != right:
            yield f"leaf {leaf} counts {there}, not {right}"
    spines = counted[field.leaves :]
    above = {name: sum(spine[name] for spine in spines) for name in spines[0]}
    yield from (f"spines count {name}" for name in REFUSED if above[name])
    if above["DONE_COLLECTED"] != done * field.leaves:
        yield f"spines collect {above['DONE_COLLECTED']} reports, not {done * field.leaves}"
    workers = team.total()
    most = {outcome: workers[name] for outcome, name in ASKED.items()}
    most["AGGREGATED"] = team.round * FRAGMENTS * len(field.partial_sums())
    for outcome, limit in most.items():
        if above[outcome] > limit:
            yield f"spines count {outcome} {above[outcome]} times, not {limit}"


@pytest.mark.timeout(3000 if ALL else 300)
@pytest.mark.parametrize("spines", [1, 2])
def test_what_it_forges_ends_at_its_leaf(tmp_path, spines):
    with leaf_spine(tmp_path, workers=WORKERS, spines=spines) as field:
        assert complaints_after_forgeries(field, FRAMES // spines) == []


# Each check of a leaf by fields that occur together in its condition only, and how often it is
# made.
CHECKS = {
    "features are their owner's": (("_source_port", "_loop_port"), 1),
    "recalls and fetches are their destination's": (("_destination_port", "_loop_port"), 1),
    "reports, notices and contributions are in the own name": (("_is_worker", "src_id"), 3),
    "answers come from above": (('"0x0a"', '"0x07"', '"0x09"', "!="), 1),
}


def without(program, fields, times):
    """Cut off the branches that refuse."""

    def change(compiled):
        cut_branches(compiled, fields, times)
        # Else only packets for the block of the moment get as far as the check.
        let_anything_have_its_turn(compiled)

    return changed_program(program, "passage", change)


@pytest.mark.parametrize("check", some_of(lambda number: number == 0, list(CHECKS)))
def test_a_mistake_in_a_check_is_noticed(check, tmp_path, monkeypatch):
    # Compiling a program that is used once takes longer than its test.
    monkeypatch.setenv("SWITCHGNN_BACKEND", Backend.PYTHON.value)
    program = without(load_program(), *CHECKS[check])
    monkeypatch.setattr(leaf_spine_fabrics, "load_program", lambda: program)
    with leaf_spine(tmp_path, workers=WORKERS) as field:
        assert complaints_after_forgeries(field, 16_000, pace=BRIEF)


def test_a_mistake_in_the_entries_is_noticed(tmp_path):
    """A worker's port leads to a spine, for its leaf."""
    with leaf_spine(tmp_path, workers=WORKERS) as field:
        site = field.bed.site
        switch = site.switches[field.leaf_of_worker[BYZANTINE]]
        with P4RuntimeClient(switch.grpc_address) as client:
            table, port = WorkerPorts(client.get_layout()).table, {"port": site.port(BYZANTINE)}
            client.write_requests(encode_rows(MODIFY, make_rows(table, ABOVE, port, 1)))
        assert complaints_after_forgeries(field, 16_000, pace=BRIEF)


def test_its_lies_change_only_sums_of_its_own_features(tmp_path):
    """Also of sums that a spine completes."""
    with leaf_spine(tmp_path, workers=WORKERS) as field:
        team = field.team(LyingLink(field, BYZANTINE, seed=3))
        wrong = set()
        for _ in range(LYING_ROUNDS):
            team.play()
            assert not team.errors, team.errors
            wrong |= team.wrong_rows()
        assert wrong <= field.world.depends_on(BYZANTINE)
        elsewhere = [v for v in wrong if field.leaf_of(v) != field.leaf_of_worker[BYZANTINE]]
        assert elsewhere, "no lie went through a spine: the test shows nothing"


def test_no_slot_of_a_spine_is_taken_away(tmp_path):
    """The leaf does not forward tags ahead of the round."""
    with leaf_spine(tmp_path, workers=WORKERS) as field:
        team, above, refused = field.team(), set(field.completed_above()), 0
        for (block, vertex), (worker, _) in field.world.facts.sums.items():
            if worker == BYZANTINE and (block, vertex) in above:
                for kind in (Kind.RECALL, Kind.FETCH):
                    field.ask(worker, kind, vertex, block=block, round_number=LAST_ROUND)
                    refused += 1
        field.echo(BYZANTINE)
        team.play()
        team.check()
        assert sum(each["WRONG_TURN"] for each in field.counted_each()) == refused > 0


def test_a_done_ahead_at_a_leaf_is_refused(tmp_path):
    """It would count for all workers of the leaf, one of which has the largest feature."""
    with leaf_spine(tmp_path, workers=5) as field:
        _, late, byzantine = field.workers_of(0)
        team = field.team(pace=BRIEF)
        team.begin()
        team.features[team.world.plan.workers[late].vertices] *= np.float32(16)
        field.report_done(byzantine, block=1)
        team.start(range(5))
        team.join()
        team.check()
        assert sum(each["WRONG_TURN"] for each in field.counted_each()) == 1
