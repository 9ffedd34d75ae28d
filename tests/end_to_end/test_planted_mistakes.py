# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The comparison with the reference fails when the tables are wrong."""

from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest

from switchgnn.commands.run.reference import RoundResult, judge
from switchgnn.host.pace import Pace
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.graph import FIRST_RESERVED_ID
from switchgnn.topologies import Target
from tests.support.fabrics import Team, bed
from tests.support.markers import TARGETS, full

WORKERS = 3


def unchanged(part):
    return part


def drop_a_contribution(part):
    """One source's contribution to one slot is dropped, and a stranger's added instead.

    Without the stranger the count would be short, and the worker would sum itself.
    """
    entry, bank = _shared_slot(part)
    involved = part.entry_source[_same_slot(part, entry, bank)]
    strangers = (part.entry_block == part.entry_block[entry]) & ~np.isin(
        part.entry_source, involved
    )
    return _replace_contribution(part, entry, bank, int(np.flatnonzero(strangers)[0]))


def add_one_twice(part):
    entry, bank = _shared_slot(part)
    others = [other for other in np.flatnonzero(_same_slot(part, entry, bank)) if other != entry]
    return _replace_contribution(part, entry, bank, int(others[0]))


def _replace_contribution(part, entry, bank, other):
    """Take one contribution away and give the source of entry `other` one more."""
    expected = part.entry_expected.copy()
    wanted = expected[entry, bank]
    expected[entry, bank] = 0
    source = part.entry_source[other]
    hops = part.entry_hop[
        (part.entry_block == part.entry_block[other]) & (part.entry_source == source)
    ]
    last = part.entry_last.copy()
    last[(part.entry_block == part.entry_block[other]) & (part.entry_source == source)] = False
    slot = np.zeros((1, expected.shape[1]), dtype=part.entry_slot.dtype)
    slot[0, bank] = part.entry_slot[entry, bank]
    more = np.zeros((1, expected.shape[1]), dtype=expected.dtype)
    more[0, bank] = wanted
    return replace(
        part,
        entry_block=np.append(part.entry_block, part.entry_block[other]),
        entry_source=np.append(part.entry_source, source),
        entry_hop=np.append(part.entry_hop, np.uint16(hops.max() + 1)),
        entry_last=np.append(last, True),
        entry_count=np.append(part.entry_count, part.entry_count[other]),
        entry_slot=np.vstack([part.entry_slot, slot]),
        entry_expected=np.vstack([expected, more]),
    )


def swap_two_destinations(part):
    """Two slots of one worker with equal Counts exchange their vertices."""
    vertex = part.result_vertex.copy()
    counts = {}
    for row in range(len(vertex)):
        at = np.flatnonzero(
            (part.entry_block == part.result_block[row])
            & (part.entry_slot[:, part.result_bank[row]] == part.result_slot[row])
            & (part.entry_expected[:, part.result_bank[row]] > 0)
        )
        key = (int(part.result_worker[row]), len(at))
        if key in counts:
            other = counts[key]
            vertex[[row, other]] = vertex[[other, row]]
            return replace(part, result_vertex=vertex)
        counts[key] = row
    raise AssertionError("no two slots to swap")


def refuse_a_partial_sum(part):
    """No entry expects a worker's partial sum."""
    at = np.flatnonzero(part.entry_source >= FIRST_RESERVED_ID)[0]
    names = [name for name in vars(part) if name.startswith("entry_")]
    return replace(part, **{name: np.delete(getattr(part, name), at, axis=0) for name in names})


def give_a_partial_sum_to_another(part):
    owner = part.source_worker.copy()
    at = np.flatnonzero(part.source_vertex >= FIRST_RESERVED_ID)[0]
    owner[at] = (owner[at] + 1) % WORKERS
    return replace(part, source_worker=owner)


def _shared_slot(part):
    """An entry that is the source's last, and a bank whose slot has several sources."""
    for entry, bank in np.argwhere(part.entry_expected > 1):
        if part.entry_last[entry] and part.entry_expected[entry].astype(bool).sum() > 1:
            return int(entry), int(bank)
    raise AssertionError("no slot with several sources")


def _same_slot(part, entry, bank):
    return (
        (part.entry_block == part.entry_block[entry])
        & (part.entry_slot[:, bank] == part.entry_slot[entry, bank])
        & (part.entry_expected[:, bank] > 0)
    )


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    with bed(Target.EMBEDDED, WORKERS, tmp_path_factory.mktemp("bed"), slots=64) as made:
        yield made


@pytest.mark.parametrize(
    ("send", "mistake"),
    [
        *(
            ("multicast", each)
            for each in (drop_a_contribution, add_one_twice, swap_two_destinations)
        ),
        *(("cover", each) for each in (refuse_a_partial_sum, give_a_partial_sum_to_another)),
        ("multicast", unchanged),
        ("cover", unchanged),
    ],
)
def test_the_oracle_fails_on(embedded, send, mistake):
    embedded.send = send
    embedded.plan = embedded.plan_for(64)
    embedded.plan = replace(embedded.plan, switch=mistake(embedded.plan.switch))
    embedded.install()
    assert is_exact(embedded) == (mistake is unchanged)


def is_exact(bed):
    """Whether one round is exact; False too when a worker refuses a sum."""
    features = np.random.default_rng(0).standard_normal((34, 4)).astype(np.float32)
    with ExitStack() as stack:
        team = Team(bed, stack, pace=Pace(timeout=1.0))
        [result] = team.exchange([features], [Direction.FORWARD])
        if team.errors:
            return False
    fixed = np.zeros(features.shape, dtype=np.int64)
    for worker, sums in result.items():
        fixed[bed.plan.assignment == worker] = sums.values
    scale = result[0].fixed_point.scale
    given = RoundResult(fixed, (fixed / scale).astype(np.float32), scale)
    verdict = judge(bed.graph, bed.plan.assignment, features, given)
    return verdict.wrong_sums == 0 and verdict.max_error <= verdict.error_bound


def a_partial_sum(part):
    """(index, first of its rows) of a partial sum."""
    index = int(np.flatnonzero(part.send_source >= FIRST_RESERVED_ID)[0])
    return index, int(part.send_row_indptr[index])


def add_a_row_twice(part):
    """Instead of another, so that the Count is right."""
    _, low = a_partial_sum(part)
    rows = part.send_row.copy()
    rows[low + 1] = rows[low]
    return replace(part, send_row=rows)


def claim_one_more(part):
    index, low = a_partial_sum(part)
    bounds = part.send_row_indptr + (np.arange(len(part.send_row_indptr)) > index)
    return replace(
        part, send_row=np.insert(part.send_row, low, part.send_row[low]), send_row_indptr=bounds
    )


def speak_for_another(part):
    """Under the id of the next worker's first partial sum."""
    source = part.send_source.copy()
    source[a_partial_sum(part)[0]] = FIRST_RESERVED_ID + (part.worker + 1) % 3
    return replace(part, send_source=source)


@pytest.mark.parametrize(
    "target",
    [TARGETS[0], pytest.param(*TARGETS[1].values, id="bmv2", marks=[*TARGETS[1].marks, full])],
)
@pytest.mark.parametrize(
    "mistake",
    [unchanged, add_a_row_twice, claim_one_more, speak_for_another],
)
def test_a_worker_that_sends_other_partial_sums_is_noticed(target, mistake, tmp_path):
    options = {"graph": "random:60:120:1", "slots": 64, "send": "cover"}
    with bed(target, WORKERS, tmp_path, **options) as made, ExitStack() as stack:
        made.install()
        first, *others = made.plan.workers
        made.plan = replace(made.plan, workers=(mistake(first), *others))
        wrong = Team(made, stack, pace=Pace(timeout=1.0)).run(1)
    assert (wrong == 0) == (mistake is unchanged)
