# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""On a leaf-spine any one switch, a worker or the controller dies at some moment of a round."""

import random
import re
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import pytest

from switchgnn.controller import P4RuntimeClient, Watched, WatchEventKind, watch
from switchgnn.host.pace import Pace
from switchgnn.planner.plan.files import write_plan
from tests.support.fabrics import Team
from tests.support.leaf_spine_fabrics import NO_FAULTS, leaf_spine_bed
from tests.support.markers import MININET_TARGETS, some_of
from tests.support.seeds import seeds
from tests.support.speed import seconds_here

WORKERS = 4
PATIENCE = 1.0
# From the last word of the one who died; a machine with two cores runs all of it.
BOUND = 20.0
FAULTS = "loss=0.02,duplicate=0.02,reorder=0.02,seed=8"


@pytest.fixture(scope="module", params=MININET_TARGETS)
def shared_bed(request, tmp_path_factory):
    """Two leaves and two spines; a switch that was killed is there again."""
    with leaf_spine_bed(tmp_path_factory.mktemp("bed"), request.param, spines=2) as made:
        yield made


class Controller:
    """Installs again whatever has restarted."""

    def __init__(self, bed, stack):
        self.stop, self.installed = threading.Event(), threading.Semaphore(0)
        shares = [
            Watched(share.plan, share.network, stack.enter_context(P4RuntimeClient(share.switch)))
            for share in bed.shares()
        ]
        self.thread = threading.Thread(target=self._watch, args=(bed, shares), daemon=True)
        self.thread.start()
        stack.callback(self.thread.join, seconds_here())
        stack.callback(self.stop.set)
        for _ in shares:
            assert self.installed.acquire(timeout=seconds_here())

    def _watch(self, bed, shares):
        watch(shares, program=bed.program, on_event=self._note, stop=self.stop, interval=0.1)

    def _note(self, event):
        if event.kind is WatchEventKind.INSTALLED:
            self.installed.release()


@pytest.mark.parametrize("seed", seeds(1, 10))
@pytest.mark.parametrize(
    ("switch", "faults"),
    some_of(lambda switch, faults: switch % 2 == faults, range(4), [NO_FAULTS, FAULTS]),
)
def test_any_one_switch_restarts(shared_bed, switch, faults, seed):
    """It is killed when the workers have got so far."""
    seen = random.Random(repr((switch, faults, seed))).randrange(1, 24)
    shared_bed.disturb(NO_FAULTS)
    shared_bed.install()
    with ExitStack() as stack:
        Controller(shared_bed, stack)
        shared_bed.disturb(faults)
        reached = threading.Semaphore(0)
        team = Team(shared_bed, stack, faults=faults, on_block=lambda *_: reached.release())
        wrong = []
        running = threading.Thread(target=lambda: wrong.append(team.run(4)), daemon=True)
        running.start()
        for _ in range(seen):
            assert reached.acquire(timeout=seconds_here())
        shared_bed.restart(switch)
        running.join(seconds_here(100))
        assert not running.is_alive()
        assert wrong == [0], (seen, team.errors)


@pytest.mark.parametrize(
    ("victim", "after"),
    # In `make test` one behind each leaf.
    some_of(lambda victim, after: (victim, after) in {(0, 1), (3, 0)}, range(WORKERS), [0, 1]),
)
def test_a_worker_dies(shared_bed, victim, after):
    """The others, also those behind another leaf, stop in time and say who is missing."""
    shared_bed.disturb(NO_FAULTS)
    shared_bed.install()
    died = []
    with ExitStack() as stack:
        team = Team(
            shared_bed,
            stack,
            pace=Pace(patience=PATIENCE),
            on_block=lambda *_: died.append(time.monotonic()),
        )
        started = time.monotonic()
        team.run(after + 2, stops={victim: after})
        ended = time.monotonic()
    assert ended - max([started, *died]) < seconds_here(BOUND)
    assert set(team.errors) == set(range(WORKERS)) - {victim}
    for error in team.errors.values():
        # From behind another leaf the whole leaf is missing: to a spine it has all its bits.
        named = re.search(r"for workers? ([\d, ]+)", str(error))
        assert named and str(victim) in named[1].split(", "), error


@pytest.mark.parametrize("seed", seeds(1, 10))
def test_the_controller_is_killed(shared_bed, tmp_path, seed):
    """Running rounds go on without it."""
    shared_bed.install()
    shared_bed.disturb("loss=0.02,seed=9")
    write_plan(shared_bed.plan, tmp_path / "plan")
    addresses = [switch.grpc_address for switch in shared_bed.site.switches]
    with (tmp_path / "log").open("w") as log:
        controller = subprocess.Popen(
            [
                *(sys.executable, "-m", "switchgnn.commands", "controller", "watch"),
                *(str(tmp_path / "plan"), "--leaves", "2", "--spines", "2"),
                *(word for address in addresses for word in ("--address", address)),
            ],
            stdout=log,
            stderr=log,
        )
    moment = random.Random(seed).randrange(1, 12)
    reached = []

    def on_block(*place):
        reached.append(place)
        if len(reached) == moment:
            controller.kill()

    with ExitStack() as stack:
        stack.callback(controller.wait, seconds_here(10))
        stack.callback(controller.kill)
        team = Team(shared_bed, stack, on_block=on_block, faults="loss=0.02,seed=9")
        assert team.run(4) == 0, team.errors
    assert controller.returncode == -9
