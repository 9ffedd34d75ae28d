# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Polling of switches and workers that are there, go away and come back."""

import threading
from contextlib import contextmanager
from dataclasses import replace

import pytest

from switchgnn.base.described import SwitchTarget
from switchgnn.base.metrics import NoAnswerError, ask_metrics, serve_metrics
from switchgnn.controller import Outcome, install
from switchgnn.host.innetwork.exchange import ExchangeStatus
from switchgnn.host.metrics import WorkerView
from switchgnn.host.wire.link import Traffic
from switchgnn.live import machines
from switchgnn.live.gather import Gathering
from switchgnn.live.machines import Machines, picture_of
from switchgnn.live.snapshot import WorkerState
from tests.controller.conftest import client, fake, network, program  # noqa: F401  fixtures
from tests.controller.plans import make_plan
from tests.host.test_metrics import Exchange
from tests.metrics.test_ask import saying
from tests.network.usual import described_leaf_spine, described_star
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

pytest.importorskip("h11")
pytest.importorskip("prometheus_client")
PLAN = make_plan()


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(machines, "EVERY", 0.02)
    monkeypatch.setattr(machines, "_PARTING_SECONDS", 0.1)


class Worker:
    """The parts of a worker that its metrics read."""

    def __init__(self, number):
        self.number = number
        self.bytes = 0
        self.exchange = Exchange()
        self.port = 0

    @contextmanager
    def serving(self):
        """Serve its metrics, on the same port every time."""
        view = WorkerView(
            self.number, lambda: Traffic(1, self.bytes, 2, 2 * self.bytes), self.exchange
        )
        with serve_metrics(lambda: list(view.metrics()), "127.0.0.1", self.port) as self.port:
            yield

    def done(self, blocks, passed):
        self.exchange.status = ExchangeStatus(blocks, blocks, 16.0)
        self.bytes = passed


def placed(star, *places):
    """A network whose workers serve metrics on these ports."""
    pairs = zip(star.workers, places, strict=True)
    return replace(star, workers=tuple(replace(each, metrics=place) for each, place in pairs))


@contextmanager
def watched(described, slots=()):
    gathering = Gathering("4 workers", clock=_Clock())
    with Machines(described, gathering, slots).asking():
        yield gathering
    assert not [
        each for each in threading.enumerate() if each.name.startswith(("switch", "worker"))
    ]


class _Clock:
    """Slow enough that a busy machine makes no worker silent."""

    def __init__(self):
        self.looks = 0

    def now(self):
        self.looks += 1
        return self.looks * 1e-6


def worker_of(gathering, number):
    return gathering.snapshot().workers[number]


@pytest.mark.whole
def test_workers_that_tell_that_say_nothing_and_that_have_nowhere():
    worker = Worker(0)
    worker.done(3, 1000)
    with worker.serving(), saying(b"HTTP/1.0 200 OK\r\n\r\nnonsense") as (other, _):
        there, free = f"127.0.0.1:{worker.port}", "127.0.0.1:1"
        star = placed(described_star(4, grpc="127.0.0.1:1"), there, free, f"127.0.0.1:{other}", "")
        with watched(star) as gathering:
            wait_until(lambda: worker_of(gathering, 0).blocks == 3, "what worker 0 says")
            wait_until(lambda: worker_of(gathering, 2).state is WorkerState.SILENT, "worker 2")
            wait_until(lambda: worker_of(gathering, 1).state is WorkerState.SILENT, "worker 1")
            seen = gathering.snapshot()
            assert [each.state for each in seen.workers] == [
                *(WorkerState.COMPUTING, WorkerState.SILENT, WorkerState.SILENT, WorkerState.UNTOLD)
            ]
            link = seen.workers[0].link
            assert (link.bytes_up, link.bytes_down) == (1000, 2000)
            assert seen.workers[3].blocks is seen.workers[3].link.bytes_up is None
            wait_until(lambda: gathering.snapshot().switches[0].up is False, "the switch")
            assert gathering.snapshot().step == "no answer from s0"


@pytest.mark.whole
def test_a_worker_that_takes_its_time_holds_up_nobody(monkeypatch):
    worker, asked, over = Worker(1), threading.Event(), threading.Event()

    def ask(host, port):
        if host == "slow":
            asked.set()
            over.wait()
            raise NoAnswerError("slow")
        return ask_metrics(host, port, seconds=seconds_here(10))

    monkeypatch.setattr(machines, "ask_metrics", ask)
    with worker.serving():
        star = placed(described_star(2, grpc="127.0.0.1:1"), "slow:1", f"127.0.0.1:{worker.port}")
        with watched(star) as gathering:
            try:
                assert asked.wait(seconds_here(20))
                for blocks in (1, 2, 3):
                    worker.done(blocks, blocks)
                    wait_until(lambda now=blocks: worker_of(gathering, 1).blocks == now, "blocks")
                wait_until(lambda: gathering.snapshot().switches[0].up is False, "the switch")
                assert worker_of(gathering, 0).state is WorkerState.STARTING
            finally:
                over.set()


@pytest.mark.whole
def test_one_that_hangs_does_not_hold_up_the_end(monkeypatch):
    asked, over, left = threading.Event(), threading.Event(), threading.Event()

    def ask(host, port):
        asked.set()
        over.wait()
        left.set()
        raise NoAnswerError("slow")

    monkeypatch.setattr(machines, "ask_metrics", ask)
    star = placed(described_star(1, grpc="127.0.0.1:1"), "slow:1")
    try:
        with Machines(star, Gathering("1 worker")).asking():
            assert asked.wait(seconds_here(20))
        assert not left.is_set()
    finally:
        over.set()
    wait_until(lambda: "worker 0" not in {each.name for each in threading.enumerate()}, "its end")


@pytest.mark.whole
def test_a_process_that_begins_anew_counts_from_zero():
    worker = Worker(0)
    with worker.serving():
        star = placed(described_star(1, grpc="127.0.0.1:1"), f"127.0.0.1:{worker.port}")
    with watched(star) as gathering:
        with worker.serving():
            worker.done(30, 10**9)
            wait_until(lambda: worker_of(gathering, 0).blocks == 30, "the first process")
        worker.done(1, 10)
        with worker.serving():
            wait_until(lambda: worker_of(gathering, 0).blocks == 1, "the second one")
            seen = worker_of(gathering, 0)
            assert (seen.link.bytes_up, seen.repairing) == (10, False)
            assert seen.link.rate_up >= 0


@pytest.mark.whole
def test_a_switch_that_is_gone_and_back_and_another_session(fake, client, network, program):  # noqa: F811
    worker = Worker(0)
    worker.done(5, 100)
    with worker.serving():
        star = placed(described_star(1, grpc=fake.address), f"127.0.0.1:{worker.port}")
        with watched(star) as gathering:

            def switch():
                (seen,) = gathering.snapshot().switches
                return seen

            wait_until(lambda: switch().up, "a switch without a program")
            assert switch().frames is None
            assert gathering.snapshot().step == "no session yet"
            install(PLAN, [client], network, program=program)
            fake.contents.counters = {("outcome", Outcome.AGGREGATED): 41}
            wait_until(lambda: switch().frames == 41, "what it counts")
            assert (switch().session, gathering.snapshot().step) == (1, "session 1")
            wait_until(lambda: worker_of(gathering, 0).blocks == 5, "the worker")
            for _ in range(20):
                before = gathering.snapshot()
            fake.stop()
            wait_until(lambda: switch().up is False, "a switch that is gone")
            assert gathering.snapshot().step == "no answer from s0"
            # A switch that is gone is no other session.
            assert gathering.snapshot().seconds > before.seconds
            fake.restart()
            client.close()
            client.open()
            wait_until(lambda: switch().up, "the switch again")
            install(PLAN, [client], network, program=program, new_session=True)
            install(PLAN, [client], network, program=program, new_session=True)
            wait_until(lambda: gathering.snapshot().step == "session 2", "the next session")
            after = gathering.snapshot()
            assert worker_of(gathering, 0).link.rate_up >= 0
            assert len(after.points) < 10 < len(before.points)


def test_the_picture_of_leaves_and_spines():
    described = described_leaf_spine((0, 0, 1), 2)
    picture = picture_of(described, with_slots=True)
    assert [(each.switch, each.port, each.told) for each in picture.workers] == [
        *((0, 1, False), (0, 2, False), (1, 1, False))
    ]
    assert [(each.name, each.tier) for each in picture.switches] == [
        *(("leaf0", 0), ("leaf1", 0), ("spine0", 1), ("spine1", 1))
    ]
    assert [(each.lower, each.upper) for each in picture.cables] == [(0, 2), (0, 3), (1, 2), (1, 3)]
    assert picture.no_slots == "not told by the embedded switch"
    one, *others = described.switches
    mixed = replace(described, switches=(replace(one, target=SwitchTarget.BMV2), *others))
    assert picture_of(mixed, with_slots=False).target == "BMv2 and the embedded switch"
    assert picture_of(mixed, with_slots=False).no_slots == "not told without a plan"
