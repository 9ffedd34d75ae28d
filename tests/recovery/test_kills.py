"""The switch, the controller or a worker dies at some moment of a round, on both switches.

Many more moments are in tests/virtual.
"""

import re
import subprocess
import sys
import time
from contextlib import ExitStack
from functools import partial

import numpy as np
import pytest

from switchgnn.host.base.pace import Pace
from switchgnn.planner.plan.files import write_plan
from tests.host.direct.crew import BOTH
from tests.host.hybrid import crew as hybrid
from tests.recovery.conftest import BEDS, FEW_FAULTS, control, made_bed, restarting
from tests.support.fabrics import NO_FAULTS, Team, bed
from tests.support.markers import MININET_TARGETS, TARGETS
from tests.support.seeds import seeds
from tests.support.speed import seconds_here

WORKERS = 3


def those_of_few_edges(graph):
    return np.diff(graph.indptr) <= 3


@pytest.fixture(params=TARGETS)
def own_bed(request, tmp_path):
    with bed(request.param, WORKERS, tmp_path, slots=32, pools=2) as made:
        made.install()
        yield made


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_the_switch_is_killed_and_started_again(own_bed, stack, seed):
    control(stack, own_bed)
    team = Team(own_bed, stack, on_block=stack.enter_context(restarting(seed, own_bed.restart)))
    assert team.run(4, seed=seed) == 0, team.errors


# A leaf, which has faults beside, and a spine.
@pytest.mark.parametrize(("switch", "faults"), [(1, FEW_FAULTS), (2, NO_FAULTS)])
@pytest.mark.parametrize("target", MININET_TARGETS)
def test_a_leaf_or_a_spine_is_killed_and_started_again(target, tmp_path, stack, switch, faults):
    with made_bed(("leaf-spine", target), tmp_path) as made, ExitStack() as stack:
        control(stack, made)
        made.disturb(faults)
        on_block = stack.enter_context(restarting(switch, partial(made.restart, switch), most=24))
        team = Team(made, stack, faults=faults, on_block=on_block)
        assert team.run(4) == 0, team.errors


@pytest.mark.parametrize("target", TARGETS)
def test_the_switch_is_killed_in_a_mixed_exchange(target, tmp_path):
    """The switch also forwards the rows between hosts."""
    options = {"graph": "karate", "slots": 8, "directions": "both", "left": those_of_few_edges}
    with bed(target, WORKERS, tmp_path, **options) as own_bed, ExitStack() as stack:
        own_bed.install()
        control(stack, own_bed)
        on_block = stack.enter_context(restarting(0, own_bed.restart))
        calls = [(hybrid.whole_numbers(own_bed, 40, each), way) for each in (0, 1) for way in BOTH]
        transports = stack.enter_context(hybrid.crew(own_bed, on_block=on_block))
        assert hybrid.wrong(own_bed, calls, hybrid.run(own_bed, transports, calls)) == 0


def test_the_controller_is_killed(own_bed, tmp_path, stack):
    write_plan(own_bed.plan, tmp_path / "plan")
    controller = subprocess.Popen(
        [
            *(sys.executable, "-m", "switchgnn.commands", "controller", "watch"),
            *(str(tmp_path / "plan"), "--address", own_bed.address),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    team = Team(own_bed, stack, on_block=stack.enter_context(restarting(0, controller.kill)))
    assert team.run(5) == 0
    assert controller.wait(seconds_here(10)) != 0


@pytest.mark.parametrize("which", BEDS)
def test_a_worker_dies(which, tmp_path, stack):
    """The others, on either leaf, stop in time and name the missing worker."""
    victim, died = 3, []
    with made_bed(which, tmp_path) as made, ExitStack() as stack:
        made.install()
        note = lambda *_: died.append(time.monotonic())  # noqa: E731
        team = Team(made, stack, pace=Pace(timeout=1.0), on_block=note)
        team.run(9, stops={victim: 1})
        assert time.monotonic() - max(died) < seconds_here(20)
    assert set(team.errors) == set(range(made.workers)) - {victim}
    for error in team.errors.values():
        # From another leaf the whole leaf is missing: to a spine it has all its bits.
        named = re.search(r"for workers? ([\d, ]+)|Worker (\d) did not", str(error))
        assert named and str(victim) in (named[1] or named[2]), error
