"""The switch, the controller or a worker dies at some moment of a round, on both switches.

A switch that keeps its tables comes back in the middle of a run without a controller. Many more
moments are in tests/virtual.
"""

import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from functools import partial

import numpy as np
import pytest
from finsy.proto import p4r

from switchgnn.base.machine import python_program
from switchgnn.controller import (
    DesiredStates,
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
from switchgnn.controller.p4runtime.rows import parse_default
from switchgnn.host.pace import Pace
from switchgnn.p4src import load_program
from switchgnn.planner.plan.files import write_plan
from switchgnn.softswitch.daemon.state_file import open_state
from switchgnn.topologies import Target
from switchgnn.topologies.child import Child
from switchgnn.topologies.targets import wait_until_serving
from tests.host.hybrid import crew as hybrid
from tests.recovery.conftest import BEDS, FEW_FAULTS, control, made_bed, restarting
from tests.support.commands import forkserver
from tests.support.fabrics import NO_FAULTS, Bed, Team, bed
from tests.support.markers import MININET_TARGETS, TARGETS
from tests.support.seeds import seeds
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

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
    on_block = stack.enter_context(restarting(seed, own_bed.restart))
    team = Team(own_bed, stack, on_block=on_block)
    assert team.run(4, seed=seed) == 0, team.errors


# A leaf, which has faults beside, and a spine.
@pytest.mark.parametrize(("switch", "faults"), [(1, FEW_FAULTS), (2, NO_FAULTS)])
@pytest.mark.parametrize("target", MININET_TARGETS)
def test_a_leaf_or_a_spine_is_killed_and_started_again(target, tmp_path, stack, switch, faults):
    with made_bed(("leaf-spine", target), tmp_path) as made, ExitStack() as stack:
        control(stack, made)
        made.disturb(faults)
        restart = partial(made.restart, switch)
        on_block = stack.enter_context(restarting(switch, restart, most=24))
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
        calls = [
            (hybrid.whole_numbers(own_bed, 40, each), way) for each in (0, 1) for way in hybrid.BOTH
        ]
        transports = stack.enter_context(hybrid.crew(own_bed, on_block=on_block))
        found = hybrid.run(own_bed, transports, calls)
        assert hybrid.wrong(own_bed, calls, found) == 0


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
    on_block = stack.enter_context(restarting(0, controller.kill))
    team = Team(own_bed, stack, on_block=on_block)
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


class KeepingBed(Bed):
    """A bed whose switch is `switchgnn switch --state`."""

    def start(self):
        ports = (f"{port}={self._switch_side(port)}" for port in range(1, self.workers + 1))
        command = python_program(
            *("switchgnn.commands", "switch", "--grpc", self.address),
            *("--state", str(self.folder / "state"), "--state-interval", "0"),
            *(word for port in ports for word in ("--port", port)),
        )
        log = self.folder / "switch.log"
        self.switch = Child("The switch", [*command], log, forkserver=forkserver())
        self.switch.start()
        wait_until_serving(self.switch, self.address)

    def begin_again(self, number):
        if number == signal.SIGKILL:
            self.kill()
        else:
            self.switch.stop()
        self.start()

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
def test_a_run_goes_on_by_itself(keeping, stack, number):
    on_block = stack.enter_context(restarting(0, partial(keeping.begin_again, number)))
    team = Team(keeping, stack, on_block=on_block)
    assert team.run(6) == 0, team.errors


def test_it_says_that_it_has_forgotten_whose_turn_it_is(keeping):
    assert keeping.any_tag() == 0
    keeping.begin_again(signal.SIGKILL)
    assert keeping.any_tag() == 1


def test_a_controller_has_nothing_to_do(keeping):
    plan = load_plan((keeping.plan.manifest, keeping.plan.switch))
    told, stop = [], threading.Event()
    with P4RuntimeClient(keeping.address, deadline=seconds_here(1)) as client:
        watching = threading.Thread(
            target=watch,
            args=([Share(plan, keeping.network, client)], DesiredStates(keeping.program)),
            kwargs={"on_event": told.append, "stop": stop, "interval": 0.05},
        )
        watching.start()
        try:
            wait_until(lambda: kinds(told)[:1] == [WatchEventKind.INSTALLED], "the watch")
            keeping.begin_again(signal.SIGTERM)
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
