# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The switch, the controller or a worker dies at some moment of a round, on both switches.

Many more moments are in tests/virtual/matrix.
"""

import random
import subprocess
import sys
import threading
from contextlib import ExitStack

import numpy as np
import pytest

from switchgnn.controller import P4RuntimeClient, Watched, WatchEventKind, load_plan, watch
from switchgnn.host.pace import Pace
from switchgnn.planner.plan.files import write_plan
from tests.host.mixed import crew as mixed
from tests.support.fabrics import Team, bed
from tests.support.markers import TARGETS, full
from tests.support.seeds import seeds
from tests.support.speed import seconds_here

WORKERS = 3


def those_of_few_edges(graph):
    return np.diff(graph.indptr) <= 3


@pytest.fixture(params=TARGETS)
def own_bed(request, send, tmp_path):
    with bed(request.param, WORKERS, tmp_path, send=send) as made:
        made.install()
        yield made


class Controller:
    """Installs again when the switch has restarted."""

    def __init__(self, bed, stack):
        self.bed = bed
        self.stop = threading.Event()
        self.installed = threading.Event()
        client = stack.enter_context(P4RuntimeClient(bed.address))
        self.thread = threading.Thread(target=self._watch, args=(client,), daemon=True)
        self.thread.start()
        assert self.installed.wait(seconds_here())
        stack.callback(self.thread.join, seconds_here())
        stack.callback(self.stop.set)

    def _note(self, event):
        if event.kind is WatchEventKind.INSTALLED:
            self.installed.set()

    def _watch(self, client):
        plan = load_plan((self.bed.plan.manifest, self.bed.plan.switch))
        watch(
            [Watched(plan, self.bed.network, client)],
            program=self.bed.program,
            on_event=self._note,
            stop=self.stop,
            interval=0.1,
        )


@pytest.mark.parametrize("send", ["multicast", pytest.param("cover", marks=full)], indirect=True)
@pytest.mark.parametrize("seed", seeds(1, 4))
def test_the_switch_is_killed_and_started_again(own_bed, seed):
    moments = random.Random(seed)
    kill_after = moments.randrange(1, 12)
    blocks = []
    reached = threading.Event()

    def on_block(*place):
        blocks.append(place)
        if len(blocks) >= kill_after:
            reached.set()

    with ExitStack() as stack:
        Controller(own_bed, stack)
        team = Team(own_bed, stack, on_block=on_block)
        done = threading.Event()

        def kill():
            reached.wait(seconds_here(60))
            done.wait(moments.random() * 0.02)
            own_bed.kill()
            own_bed.start()
            # The switch dies with the thread that started it (PR_SET_PDEATHSIG).
            done.wait(seconds_here(100))

        killer = threading.Thread(target=kill)
        killer.start()
        wrong = team.run(4, seed=seed)
        done.set()
        killer.join(seconds_here(60))
        assert not team.errors, team.errors
        assert wrong == 0


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", seeds(1, 4))
def test_the_switch_is_killed_in_a_mixed_exchange(target, tmp_path, seed):
    """The switch also forwards the rows between hosts."""
    moments = random.Random(seed)
    kill_after = moments.randrange(1, 12)
    blocks, reached, done = [], threading.Event(), threading.Event()

    def on_block(*place):
        blocks.append(place)
        if len(blocks) >= kill_after:
            reached.set()

    options = {"graph": "karate", "slots": 8, "directions": "both", "left": those_of_few_edges}
    with bed(target, WORKERS, tmp_path, **options) as own_bed, ExitStack() as stack:
        own_bed.install()
        Controller(own_bed, stack)

        def kill():
            reached.wait(seconds_here(60))
            done.wait(moments.random() * 0.02)
            own_bed.kill()
            own_bed.start()
            done.wait(seconds_here(100))

        calls = [
            (mixed.whole_numbers(own_bed, 40, each), way) for each in (0, 1) for way in mixed.BOTH
        ]
        transports = stack.enter_context(mixed.crew(own_bed, on_block=on_block))
        killer = threading.Thread(target=kill)
        killer.start()
        found = mixed.run(own_bed, transports, calls)
        done.set()
        killer.join(seconds_here(60))
        assert mixed.wrong(own_bed, calls, found) == 0


@pytest.mark.parametrize("seed", seeds(1, 2))
def test_the_controller_is_killed(own_bed, tmp_path, seed):
    moment = random.Random(seed).randrange(12)
    reached = []
    write_plan(own_bed.plan, tmp_path / "plan")
    controller = subprocess.Popen(
        [
            *(sys.executable, "-m", "switchgnn.commands", "controller", "watch"),
            *(str(tmp_path / "plan"), "--address", own_bed.address),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def on_block(*place):
        reached.append(place)
        if len(reached) > moment:
            controller.kill()

    with ExitStack() as stack:
        team = Team(own_bed, stack, on_block=on_block)
        assert team.run(5) == 0
    assert controller.wait(seconds_here(10)) != 0


@pytest.mark.parametrize(
    ("victim", "after"), [(1, 1), *(pytest.param(*each, marks=full) for each in [(0, 0), (2, 3)])]
)
def test_a_worker_dies(own_bed, victim, after):
    """The others stop in time and name the missing worker."""
    with ExitStack() as stack:
        team = Team(own_bed, stack, pace=Pace(patience=1.0))
        team.run(9, stops={victim: after})
    assert set(team.errors) == set(range(WORKERS)) - {victim}
    for error in team.errors.values():
        assert f"worker {victim}" in str(error).lower(), error
