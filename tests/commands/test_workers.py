"""Whose silence ends a command, and whose does not."""

import os
import signal
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from switchgnn.base.interruptible import Interruption
from switchgnn.controller import Counters, Outcome
from switchgnn.controller.base.place import Place
from switchgnn.controller.controls.banks import BankEvents, Passes
from switchgnn.controller.counters import JobCounters
from switchgnn.host.base.pace import Pace
from switchgnn.jobs import workers
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.topologies import child
from switchgnn.topologies.child import Child

PROGRAM = """
import os, signal, sys, threading, time
from switchgnn.base.tasks import EventWriter, heartbeat
sys.stdin.readline()
events = EventWriter(sys.stdout)
with heartbeat(events, every=0.05):
    events.write("ready", pid=os.getpid())
    {does}
events.write("finished")
"""
COMPUTES = """
    ends = 1.6 + time.monotonic()
    while time.monotonic() < ends: pass
"""
LOOKS = """
    for _ in range(30): time.sleep(0.05)
"""
HANGS = """
    threading.Lock().acquire(); threading.Event().wait()
"""


def follow(tmp_path, programs, listen=lambda worker, event: None):
    children = [
        Child(
            f"Worker {worker}",
            [sys.executable, "-c", PROGRAM.replace("{does}", does.strip())],
            tmp_path / f"{worker}.log",
            pipe=True,
        )
        for worker, does in enumerate(programs)
    ]
    return workers.follow_workers(children, [{}] * len(programs), Pace(timeout=0.5), listen)


FAILED_LINE = b'{"event": "failed", "message": "it was I", "details": ""}\n'


class FakeWorker:
    """One that says something and ends when it is told to."""

    def __init__(self):
        reader, self._writer = os.pipe()
        self.stdout = os.fdopen(reader)

    def end(self, said=b""):
        os.write(self._writer, said)
        os.close(self._writer)


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    """In place of ten seconds."""
    monkeypatch.setattr(workers, "_SILENCE_SECONDS", 0.5)
    monkeypatch.setattr(workers, "_LOOK_SECONDS", 0.05)
    monkeypatch.setattr(child, "_STOP_SECONDS", 0.2)


@pytest.mark.whole
def test_a_worker_that_works_may_be_silent_about_it(tmp_path):
    """A long computation and a long wait have no event, for longer than the patience."""
    heard = []
    finished = follow(tmp_path, [COMPUTES, LOOKS], lambda worker, event: heard.append(event))
    assert [event["event"] for event in finished] == ["finished"] * 2
    assert [event["event"] for event in heard] == ["ready"] * 2


@pytest.mark.whole
def test_a_worker_that_hangs_is_named_alone(tmp_path):
    with pytest.raises(workers.WorkerError, match=r"of worker 1 for 1 s:"):
        follow(tmp_path, [COMPUTES, HANGS, LOOKS])


@pytest.mark.whole
def test_a_worker_that_was_stopped_is_named_alone(tmp_path):
    def stop(worker, event):
        if worker == 2:
            os.kill(event["pid"], signal.SIGSTOP)

    began = time.monotonic()
    with pytest.raises(workers.WorkerError, match="of worker 2 for"):
        follow(tmp_path, [COMPUTES, LOOKS, LOOKS], stop)
    assert time.monotonic() - began < 10


@pytest.mark.whole
def test_a_worker_that_says_why_it_fails_is_the_cause(tmp_path, monkeypatch):
    """Others may end first, or seem to: they miss it."""
    fails = "events.write('failed', message='my own fault', details='Traceback of mine')"
    with pytest.raises(workers.WorkerError, match=r"^Worker 1: my own fault$") as raised:
        follow(tmp_path, [LOOKS, f"{fails}; time.sleep(30)"])
    assert raised.value.details == "Traceback of mine"
    # What the second says comes after the end of the first has been seen.
    children = first, second = FakeWorker(), FakeWorker()
    first.end()
    read = workers.ChildLines.read

    def read_first(output, timeout):
        monkeypatch.setattr(workers.ChildLines, "read", read)
        found = read(output, timeout)
        second.end(FAILED_LINE)
        return found

    monkeypatch.setattr(workers.ChildLines, "read", read_first)
    with pytest.raises(workers.WorkerError, match=r"^Worker 1: it was I$"):
        workers._follow(children, 5.0, lambda worker, event: None)


@pytest.mark.whole
def test_a_traceback_that_a_worker_leaves_is_told(tmp_path):
    with pytest.raises(
        workers.WorkerError, match=r"Worker 0 stopped with code 1: .*no such"
    ) as raised:
        follow(tmp_path, ["raise RuntimeError('no such thing')"])
    assert raised.value.details.startswith("Traceback (most recent call last):")
    assert raised.value.details.endswith("RuntimeError: no such thing")


@pytest.mark.whole
@pytest.mark.parametrize(
    ("does", "sentence"),
    [
        ("os._exit(3)", "stopped with code 3"),
        ("sys.exit('Error: Round 1 failed.')", "stopped with code 1: Round 1 failed.$"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "was killed by signal 9, probably for lack"),
        ("os.kill(os.getpid(), signal.SIGTERM)", "was killed by signal 15: "),
    ],
)
def test_a_worker_that_ends_without_a_word_is_named(tmp_path, does, sentence):
    with pytest.raises(workers.WorkerError, match=f"^Worker 1 {sentence}"):
        follow(tmp_path, [LOOKS, does])


def counters(*cells):
    return SimpleNamespace(releases=(*cells, 0, 0, 0))


@pytest.mark.parametrize(
    ("counts", "named"),
    [
        *((counts, []) for counts in ((0, 0, 0), (99, 0, 0), (1000, 100, 100), (500, 500))),
        ((0, 100, 0), [1]),
        *((counts, [0]) for counts in ((1001, 100, 100), (700,))),
    ],
)
def test_who_is_far_from_the_others_is_named(counts, named):
    sentence = workers.too_many_releases(counts)
    for worker, number in enumerate(counts):
        assert (f"Worker {worker} had {number:,} slots released" in sentence) == (worker in named)
    assert bool(sentence) == bool(named)


def test_leaves_count_their_workers_and_spines_are_left_out():
    """Its cells stand for leaves."""
    topology = LeafSpine(leaf_of_worker=(0, 0, 1), spines=1)
    before = [counters(0, 1, 0), counters(0, 0, 2), counters(5, 5, 5)]
    after = [counters(3, 9, 0), counters(0, 0, 6), counters(50, 50, 50)]
    assert workers.releases_between(topology, 3, before, after) == (3, 8, 4)


def test_a_job_counts_what_is_its_own():
    jobs = tuple(JobCounters({Outcome.DUPLICATE: job}, Passes((job, 0))) for job in range(4))
    banks = (BankEvents(1, 2, 3, 4, 5),)
    both = Counters(jobs, banks, unrouted=6, marked=7, releases=(*range(9),), port_queue=(8, 9))
    own = both.of_job(Place(job=2, first_worker=4, workers=3))
    assert own == replace(both, jobs=jobs[2:3], releases=(4, 5, 6))
    assert workers.releases_between(None, 3, [own], [own]) == (0, 0, 0)


@pytest.mark.parametrize(("number", "more"), [(99, ""), (100, " Worker 1 had 100 slots")])
def test_the_error_of_a_run_names_them(number, more):
    cells = iter([[counters(0, 0)], [counters(0, number)]])
    with (
        pytest.raises(workers.WorkerError, match="^Worker 0 waited." + more),
        workers.naming_who_releases(lambda: next(cells), None, 2),
    ):
        raise workers.WorkerError("Worker 0 waited.")


SIGNALS = [signal.SIGINT, signal.SIGTERM]


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_the_first_one_ends_work_and_others_are_noted(number):
    with Interruption() as interruption:
        interruption.at_once()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        try:
            for again in SIGNALS:
                signal.raise_signal(again)
        except KeyboardInterrupt:
            pytest.fail("The cleaning up was interrupted.")
        assert interruption.came
