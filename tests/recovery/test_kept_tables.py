# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A switch that keeps its tables comes back in the middle of a run, and no controller is there."""

import random
import signal
import threading
from contextlib import ExitStack

import pytest
from finsy.proto import p4r

from switchgnn.base.machine import python_program
from switchgnn.controller import (
    P4RuntimeClient,
    Watched,
    WatchEventKind,
    install,
    load_plan,
    show,
    watch,
)
from switchgnn.controller.controls.session import Session
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.controller.p4runtime.messages import parse_default
from switchgnn.p4src import load_program
from switchgnn.softswitch.daemon.state_file import open_state
from switchgnn.topologies import Target
from switchgnn.topologies.targets import wait_until_serving
from tests.support.commands import nursery
from tests.support.fabrics import Bed, Team
from tests.support.seeds import seeds
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

WORKERS = 3


class KeepingBed(Bed):
    """A bed whose switch is `switchgnn switch --state`."""

    def start(self):
        ports = (f"{port}={self._switch_side(port)}" for port in range(1, self.workers + 1))
        command = python_program(
            *("switchgnn.commands", "switch", "--grpc", self.address),
            *("--state", str(self.folder / "state"), "--state-interval", "0"),
            *(word for port in ports for word in ("--port", port)),
        )
        self.switch = nursery().child("The switch", [*command], self.folder / "switch.log")
        self.switch.start()
        wait_until_serving(self.switch, self.address)

    def end(self, number):
        if number == signal.SIGKILL:
            self.kill()
        else:
            self.switch.stop()

    def any_turn(self):
        with P4RuntimeClient(self.address, primary=False) as client:
            return show(client).session.any_turn


@pytest.fixture
def bed(tmp_path):
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
def test_a_run_goes_on_by_itself(bed, number, seed):
    moments = random.Random(seed)
    end_after = moments.randrange(1, 12)
    blocks, reached = [], threading.Event()

    def on_block(*place):
        blocks.append(place)
        if len(blocks) >= end_after:
            reached.set()

    with ExitStack() as stack:
        team = Team(bed, stack, on_block=on_block)
        done = threading.Event()

        def restart():
            reached.wait(seconds_here(60))
            done.wait(moments.random() * 0.02)
            bed.end(number)
            bed.start()
            # The switch dies with the thread that started it (PR_SET_PDEATHSIG).
            done.wait(seconds_here(100))

        restarting = threading.Thread(target=restart)
        restarting.start()
        try:
            wrong = team.run(6, seed=seed)
        finally:
            done.set()
            restarting.join(seconds_here(60))
        assert not team.errors, team.errors
        assert wrong == 0


def test_it_says_that_it_has_forgotten_whose_turn_it_is(bed):
    assert bed.any_turn() == 0
    bed.end(signal.SIGKILL)
    bed.start()
    assert bed.any_turn() == 1


def test_a_controller_has_nothing_to_do(bed):
    plan = load_plan((bed.plan.manifest, bed.plan.switch))
    told, stop = [], threading.Event()
    with P4RuntimeClient(bed.address, deadline=seconds_here(1)) as client:
        watching = threading.Thread(
            target=watch,
            args=([Watched(plan, bed.network, client)],),
            kwargs={
                "program": bed.program,
                "on_event": told.append,
                "stop": stop,
                "interval": 0.05,
            },
        )
        watching.start()
        try:
            wait_until(lambda: kinds(told)[:1] == [WatchEventKind.INSTALLED], "the watch")
            bed.end(signal.SIGTERM)
            bed.start()
            wait_until(lambda: kinds(told).count(WatchEventKind.INSTALLED) == 2, "it is back")
        finally:
            stop.set()
            watching.join(seconds_here())
    assert WatchEventKind.LOST in kinds(told)
    assert [each.message.endswith("nothing to do, the plan is installed.") for each in told][-1]
    report = install(
        (bed.plan.manifest, bed.plan.switch), [bed.address], bed.network, program=bed.program
    )
    assert not report.changed
    assert report.session == bed.session


def kinds(events):
    return [event.kind for event in events if event.kind is not WatchEventKind.COUNTED]
