"""Polling of switches and workers that are there, go away and come back."""

import json
import threading
from contextlib import contextmanager
from dataclasses import replace

import pytest

from switchgnn.base.metrics import MetricsError, ask_metrics, serve_metrics
from switchgnn.base.network import network_on
from switchgnn.controller import Outcome, P4RuntimeClient, program_cookie
from switchgnn.host.metrics import WorkerView
from switchgnn.host.wire.link import Traffic
from switchgnn.live import polling
from switchgnn.live.board import Board
from switchgnn.live.polling import PolledSwitch, polling_machines, read_slots
from switchgnn.softswitch import SoftSwitch
from tests.controller.conftest import client, fake, network, program  # noqa: F401  fixtures
from tests.controller.plans import install, make_plan
from tests.host.test_metrics import Exchange
from tests.network.usual import described_star
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

PLAN = make_plan()


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(polling, "EVERY", 0.02)


class Worker:
    """The parts of a worker that its metrics read."""

    def __init__(self, number):
        self.number = number
        self.exchange = Exchange()
        self.port = 0

    @contextmanager
    def serving(self):
        """Serve its metrics, on the same port every time."""
        view = WorkerView(self.number, self.exchange)
        with serve_metrics(view, "127.0.0.1", self.port) as self.port:
            yield

    def done(self, blocks, passed):
        self.exchange.now(blocks, blocks, 16.0)
        self.exchange.traffic = Traffic(1, passed, 2, 2 * passed)


def install_job(name, first_port, client, program, **options):  # noqa: F811
    around = network_on(range(first_port, first_port + 4))
    install(PLAN, [client], around, name, program=program, **options)


def with_metrics(star, *addresses):
    """A network whose workers serve metrics on these ports."""
    pairs = zip(star.workers, addresses, strict=True)
    return replace(star, workers=tuple(replace(each, metrics=place) for each, place in pairs))


@contextmanager
def watched(described, slots=()):
    board = Board("4 workers")
    with polling_machines(described, board, slots):
        yield lambda: json.loads(board.read())
    assert "live poll" not in {each.name for each in threading.enumerate()}


@pytest.mark.whole
def test_a_worker_that_takes_its_time_holds_up_nobody_and_not_the_end(monkeypatch):
    worker, asked, over = Worker(1), threading.Event(), threading.Event()

    def ask(host, port):
        if host == "slow":
            asked.set()
            over.wait()
            raise MetricsError("slow")
        return ask_metrics(host, port, seconds=seconds_here(10))

    monkeypatch.setattr(polling, "ask_metrics", ask)
    board = Board("2 workers")

    def seen():
        return json.loads(board.read())

    with worker.serving():
        star = with_metrics(
            described_star(2, grpc="127.0.0.1:1"), "slow:1", f"127.0.0.1:{worker.port}"
        )
        try:
            with polling_machines(star, board):
                assert asked.wait(seconds_here(20))
                for blocks in (1, 2, 3):
                    worker.done(blocks, blocks)
                    told = {"blocks_total": blocks}.items()
                    wait_until(
                        lambda told=told: told <= seen()["workers"][1]["values"].items(), "blocks"
                    )
                wait_until(lambda: seen()["switches"][0]["at"], "the switch")
            assert seen()["workers"][0]["at"] is None
            assert not over.is_set()
        finally:
            over.set()
    wait_until(lambda: "live poll" not in {each.name for each in threading.enumerate()}, "its end")


@pytest.mark.whole
def test_a_switch_that_is_gone_and_back_and_another_session(fake, client, program):  # noqa: F811
    worker = Worker(0)
    worker.done(5, 100)
    with worker.serving():
        star = with_metrics(described_star(1, grpc=fake.address), f"127.0.0.1:{worker.port}")
        with watched(replace(star, job="blue")) as seen:

            def switch():
                return seen()["switches"][0]["values"]

            wait_until(lambda: switch().get("switch_up"), "a switch without a program")
            assert switch() == {"switch_up": 1.0}
            assert seen()["step"] == "no session yet"
            install_job("blue", 1, client, program)
            fake.contents.counters = {("outcome", Outcome.AGGREGATED): 41}
            wait_until(lambda: switch().get("frames_total/aggregated") == 41, "what it counts")
            assert (switch()["session/blue"], seen()["step"]) == (1, "session 1")
            wait_until(lambda: seen()["workers"][0]["at"], "the worker")
            networks = seen()["network"]
            install_job("red", 9, client, program)
            wait_until(lambda: switch().get("session/red") == 2, "another job")
            fake.stop()
            wait_until(lambda: switch() == {"switch_up": 0.0}, "a switch that is gone")
            fake.restart()
            client.close()
            client.open()
            wait_until(lambda: switch().get("switch_up"), "the switch again")
            # Neither another job nor a switch that is gone is another session.
            assert (seen()["network"], seen()["step"]) == (networks, "session 1")
            install_job("blue", 1, client, program, new_session=True)
            install_job("blue", 1, client, program, new_session=True)
            wait_until(lambda: seen()["step"] == "session 2", "the next session")
            assert seen()["network"] > networks


@pytest.fixture
def switch(program):  # noqa: F811
    services, running = [], SoftSwitch()
    running.start(services.append)
    with running, P4RuntimeClient(running.grpc_address) as opened:
        opened.set_pipeline(program, program_cookie(program))
        opened.configs = services[0].configs
        yield opened


def fill(switch, bank, index, tag, count):
    """Write the state of a slot, as the program does."""
    registers = switch.configs.installed().state.registers
    name = next(each for each in registers if each.endswith(f"bank{bank}.state"))
    registers[name].cells[index] = tag << 16 | count


def test_only_the_newest_block_counts(switch):
    def slots(used):
        return {"slots_in_use": used, "slots_read": 32, "slots": 32}

    assert read_slots(switch, 0, 4) == slots(0)
    fill(switch, 0, 0, 7, 1)
    fill(switch, 1, 3, 7, 2)
    fill(switch, 2, 2, 6, 9)
    # Beyond what the plan uses.
    fill(switch, 3, 4, 7, 1)
    assert read_slots(switch, 0, 4) == slots(2)
    fill(switch, 7, 1, 8, 1)
    assert read_slots(switch, 0, 4) == slots(1)
    # Those of the next job.
    assert read_slots(switch, 4, 4) == slots(1)
    assert read_slots(switch, 5, 4) == slots(0)


def test_of_many_slots_some_are_looked_at(switch):
    for index in range(0, 1000, 2):
        fill(switch, 5, index, 7, 1)
    found = read_slots(switch, 0, 1000)
    assert found["slots"] == 8000
    assert 128 <= found["slots_read"] <= 256
    assert 0 < found["slots_in_use"] <= found["slots_read"] / 8


def test_a_switch_that_does_not_say(fake, client, network, program):  # noqa: F811
    install(make_plan(), [client], network, program=program)
    assert "slots" not in PolledSwitch(client, "default", 4).values()


def test_the_slots_are_those_of_the_job(switch, program):  # noqa: F811
    install_job("red", 1, switch, program)
    install_job("blue", 9, switch, program)
    values = {name: PolledSwitch(switch, name, 4).values() for name in ("red", "blue", "none")}
    first = int(values["blue"]["job_first_slot/blue"])
    assert first == values["red"]["job_slots/red"] > 4
    fill(switch, 3, first, 7, 1)
    used = {name: PolledSwitch(switch, name, 4).values().get("slots_in_use") for name in values}
    assert used == {"red": 0, "blue": 1, "none": None}
