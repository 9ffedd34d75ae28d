# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The switch, the controller or a worker dies at some moment of a round, on both switches.

A switch that keeps its tables comes back in the middle of a run without a controller. Many more
moments are in tests/virtual/matrix.
"""

import random
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from functools import partial

import numpy as np
import pytest
from finsy.proto import p4r

from switchgnn.base.machine import python_program
from switchgnn.controller import (
    P4RuntimeClient,
    Share,
    WatchEventKind,
    install,
    load_plan,
    show,
    watch,
)
from switchgnn.controller.controls.session import Session
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.controller.p4runtime.messages import parse_default
from switchgnn.host.pace import Pace
from switchgnn.p4src import load_program
from switchgnn.planner.plan.files import write_plan
from switchgnn.softswitch.daemon.state_file import open_state
from switchgnn.topologies import Target
from switchgnn.topologies.targets import wait_until_serving
from tests.host.mixed import crew as mixed
from tests.recovery.conftest import control, restarting
from tests.support.commands import forkserver
from tests.support.fabrics import Bed, Team, bed
from tests.support.markers import TARGETS, full
from tests.support.seeds import seeds
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

WORKERS = 3


def those_of_few_edges(graph):
    return np.diff(graph.indptr) <= 3


@pytest.fixture(params=TARGETS)
def own_bed(request, send, tmp_path):
    with bed(request.param, WORKERS, tmp_path, send=send) as made:
        made.install()
        yield made


def control_star(stack, bed):
    client = stack.enter_context(P4RuntimeClient(bed.address))
    plan = load_plan((bed.plan.manifest, bed.plan.switch))
    control(stack, [Share(plan, bed.network, client)], bed.program)


@pytest.mark.parametrize("send", ["multicast", pytest.param("cover", marks=full)], indirect=True)
@pytest.mark.parametrize("seed", seeds(1, 4))
def test_the_switch_is_killed_and_started_again(own_bed, seed):
    with ExitStack() as stack:
        control_star(stack, own_bed)
        on_block = stack.enter_context(restarting(own_bed, seed, own_bed.kill))
        team = Team(own_bed, stack, on_block=on_block)
        assert team.run(4, seed=seed) == 0, team.errors


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", seeds(1, 4))
def test_the_switch_is_killed_in_a_mixed_exchange(target, tmp_path, seed):
    """The switch also forwards the rows between hosts."""
    options = {"graph": "karate", "slots": 8, "directions": "both", "left": those_of_few_edges}
    with bed(target, WORKERS, tmp_path, **options) as own_bed, ExitStack() as stack:
        own_bed.install()
        control_star(stack, own_bed)
        on_block = stack.enter_context(restarting(own_bed, seed, own_bed.kill))
        calls = [
            (mixed.whole_numbers(own_bed, 40, each), way) for each in (0, 1) for way in mixed.BOTH
        ]
        transports = stack.enter_context(mixed.crew(own_bed, on_block=on_block))
        found = mixed.run(own_bed, transports, calls)
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


class KeepingBed(Bed):
    """A bed whose switch is `switchgnn switch --state`."""

    def start(self):
        ports = (f"{port}={self._switch_side(port)}" for port in range(1, self.workers + 1))
        command = python_program(
            *("switchgnn.commands", "switch", "--grpc", self.address),
            *("--state", str(self.folder / "state"), "--state-interval", "0"),
            *(word for port in ports for word in ("--port", port)),
        )
        self.switch = forkserver().child("The switch", [*command], self.folder / "switch.log")
        self.switch.start()
        wait_until_serving(self.switch, self.address)

    def end(self, number):
        if number == signal.SIGKILL:
            self.kill()
        else:
            self.switch.stop()

    def any_tag(self):
        with P4RuntimeClient(self.address, primary=False) as client:
            return show(client).session.any_tag


@pytest.fixture
def keeping(tmp_path):
    made = KeepingBed(Target.EMBEDDED, WORKERS, tmp_path)
    try:
        made.start()
        made.install()
        wait_until(lambda: session_in(tmp_path / "state") == made.session, "the file")
        yield made
    finally:
        made.switch.stop()


def session_in(path):
    """The session in the file, which an install writes last."""
    table = Session(Layout.from_text(load_program().p4info))
    with open_state(path) as messages:
        for message in list(messages or ())[1:]:
            for entity in p4r.ReadResponse.FromString(message).entities:
                entry = entity.table_entry
                if entry.is_default_action and entry.table_id == table.table.id:
                    return table.decode(parse_default(table.table, entry)).session
    return None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda n: n.name)
@pytest.mark.parametrize("seed", seeds(1, 4))
def test_a_run_goes_on_by_itself(keeping, number, seed):
    with ExitStack() as stack:
        end = partial(keeping.end, number)
        on_block = stack.enter_context(restarting(keeping, seed, end))
        team = Team(keeping, stack, on_block=on_block)
        assert team.run(6, seed=seed) == 0, team.errors


def test_it_says_that_it_has_forgotten_whose_turn_it_is(keeping):
    assert keeping.any_tag() == 0
    keeping.end(signal.SIGKILL)
    keeping.start()
    assert keeping.any_tag() == 1


def test_a_controller_has_nothing_to_do(keeping):
    plan = load_plan((keeping.plan.manifest, keeping.plan.switch))
    told, stop = [], threading.Event()
    with P4RuntimeClient(keeping.address, deadline=seconds_here(1)) as client:
        watching = threading.Thread(
            target=watch,
            args=([Share(plan, keeping.network, client)],),
            kwargs={
                "program": keeping.program,
                "on_event": told.append,
                "stop": stop,
                "interval": 0.05,
            },
        )
        watching.start()
        try:
            wait_until(lambda: kinds(told)[:1] == [WatchEventKind.INSTALLED], "the watch")
            keeping.end(signal.SIGTERM)
            keeping.start()
            wait_until(lambda: kinds(told).count(WatchEventKind.INSTALLED) == 2, "it is back")
        finally:
            stop.set()
            watching.join(seconds_here())
    assert WatchEventKind.LOST in kinds(told)
    assert [each.message.endswith("nothing to do, the plan is installed.") for each in told][-1]
    made = (keeping.plan.manifest, keeping.plan.switch)
    report = install(made, [keeping.address], keeping.network, program=keeping.program)
    assert not report.changed
    assert report.session == keeping.session


def kinds(events):
    return [event.kind for event in events if event.kind is not WatchEventKind.COUNTED]
