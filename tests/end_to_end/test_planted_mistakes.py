# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The comparison with the reference fails when the tables are wrong."""

from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.network import star_network
from switchgnn.commands.run.reference import RoundResult, judge
from switchgnn.commands.shared.workers import run_workers
from switchgnn.controller import install
from switchgnn.host.pace import Pace
from switchgnn.host.worker import WorkerTask, result_file
from switchgnn.p4src import load_program
from switchgnn.planner.build import build_plan
from switchgnn.planner.graphs.graph import FIRST_RESERVED_ID
from switchgnn.planner.graphs.load import load_graph
from switchgnn.planner.plan.files import write_plan
from switchgnn.topologies import FabricKind, Star, Target, build_fabric, socket_address
from tests.host.innetwork.test_partial_sums import (
    add_a_row_twice,
    claim_one_more,
    speak_for_another,
)
from tests.support.commands import nursery
from tests.support.fabrics import Team, bed
from tests.support.markers import TARGETS
from tests.support.speed import pace_here

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


@pytest.mark.parametrize(
    "mistake", [drop_a_contribution, add_one_twice, swap_two_destinations, unchanged]
)
def test_the_oracle_fails_on(mistake, tmp_path):
    assert verdict_on(mistake, "multicast", tmp_path) == (mistake is unchanged)


@pytest.mark.parametrize(
    "mistake", [refuse_a_partial_sum, give_a_partial_sum_to_another, unchanged]
)
def test_the_oracle_fails_with_partial_sums_on(mistake, tmp_path):
    assert verdict_on(mistake, "cover", tmp_path) == (mistake is unchanged)


def verdict_on(mistake, send, tmp_path):
    graph = load_graph("karate")
    program = load_program()
    plan = build_plan(graph, workers=WORKERS, slots=64, program=program.digest, send=send)
    write_plan(plan, tmp_path / "plan")
    features = np.random.default_rng(0).standard_normal((34, 4)).astype(np.float32)
    star = Star(star_network(WORKERS), Target.EMBEDDED, socket_address(tmp_path))
    with build_fabric(FabricKind.LOOPBACK, star, tmp_path, nursery=nursery()) as fabric:
        report = install(
            (plan.manifest, mistake(plan.switch)),
            [star.grpc_address],
            star.network,
            program=program,
        )
        return exchange_once(fabric, plan, graph, features, tmp_path, report.session)


@pytest.mark.parametrize("target", TARGETS)
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
        wrong = Team(made, stack, pace=Pace(patience=1.0)).run(1)
    assert (wrong == 0) == (mistake is unchanged)


def exchange_once(fabric, plan, graph, features, folder, session):
    """Return whether one round is exact; False too when a worker refuses a sum."""
    tasks = []
    for worker in range(fabric.site.workers):
        mine = {"features": features[plan.assignment == worker]}
        save_file(mine, folder / f"f{worker}.safetensors")
        tasks.append(
            WorkerTask(
                plan=folder / "plan",
                worker=worker,
                session=session,
                link=fabric.worker_link(worker),
                addresses=fabric.site.addresses(worker),
                features=folder / f"f{worker}.safetensors",
                rounds=1,
                output=folder / f"s{worker}.safetensors",
                rounds_per_file=1,
                pace=pace_here(Pace(patience=1.0)),
            )
        )
    try:
        run_workers(fabric, tasks, lambda done, total: None)
    except SwitchGNNError:
        return False
    fixed = np.zeros(features.shape, dtype=np.int32)
    sums = np.zeros(features.shape, dtype=np.float32)
    for worker in range(WORKERS):
        result = load_file(result_file(folder / f"s{worker}.safetensors", 0))
        fixed[plan.assignment == worker] = result["fixed"][0]
        sums[plan.assignment == worker] = result["sums"][0]
        scale = float(result["scale"][0])
    verdict = judge(graph, plan.assignment, features, RoundResult(fixed, sums, scale))
    return verdict.wrong_sums == 0 and verdict.max_error <= verdict.error_bound
