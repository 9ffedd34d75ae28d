"""Nothing lost, nothing counted twice, whatever the network does; nobody is left hanging."""

import re
import threading
import time

import numpy as np
import pytest

from switchgnn.host.base.errors import SilentWorkerError
from switchgnn.host.base.pace import Pace
from switchgnn.host.direct import copy_schedules, partial_schedules
from switchgnn.host.direct.framing import LARGEST_MTU, Framing
from switchgnn.host.wire.header import HEADER_AT, KIND_AT, Kind
from switchgnn.planner.base.direction import Direction
from tests.host.direct.crew import (
    BOTH,
    Hub,
    check_round,
    exchange,
    features_for,
    mac_bytes,
    on_hub,
    parts_of,
    random_case,
    together,
    wrong,
)
from tests.support.seeds import seed_of, seeds
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until


@pytest.mark.parametrize("number", seeds(1, 3))
@pytest.mark.parametrize(
    ("faults", "mtu", "directed"),
    [
        ("loss=0.1,duplicate=0.05,reorder=0.05,corrupt=0.01", 150, True),
        ("duplicate=0.3", 100, False),
        ("reorder=0.3", 1500, True),
        ("corrupt=0.1", 190, False),
        ("w1.up.loss=0.2,w1.down.loss=0.2", LARGEST_MTU, False),
    ],
)
def test_every_sum_is_right(faults, mtu, directed, number):
    """Also of many frames that have parts of rows."""
    seed = seed_of(faults, directed, number)
    graph, assignment = random_case(60, 300, 3, seed, directed=directed)
    transports = on_hub(
        partial_schedules(graph, assignment, 3),
        faults=f"{faults},seed={seed % 10**6}",
        framing=Framing(mtu),
    )
    widths = enumerate((40, 7, 1, 33))
    calls = [(features_for(graph, width, turn), BOTH[turn % 2], False) for turn, width in widths]
    sums = exchange(transports, parts_of(assignment, 3), calls)
    for (features, direction, _), got in zip(calls, sums, strict=True):
        assert wrong(graph, assignment, features, got, direction) == 0


def test_only_what_is_missing_is_sent_again():
    """Each lost data frame costs one more, as long as no answer is lost, too."""
    graph, assignment = random_case(200, 2000, 3, 1, directed=False)
    first, lost = set(), []

    def lose_every_tenth(frame):
        key = frame[6:12], frame[HEADER_AT : HEADER_AT + 26]
        if frame[KIND_AT] & 0xF == Kind.FEATURE and key not in first:
            first.add(key)
            if len(first) % 10 == 0:
                lost.append(frame)
                return None
        return frame

    transports = on_hub(copy_schedules(graph, assignment, 3), hub=Hub(3, lose_every_tenth))
    check_round(transports, graph, assignment, features_for(graph, 33))
    assert len(lost) <= sum(each.counters.data_resent for each in transports) <= 1.1 * len(lost)


def test_a_silent_worker_is_named():
    graph, assignment = random_case(60, 400, 3, 3, directed=False)
    transports = on_hub(copy_schedules(graph, assignment, 3), pace=Pace(timeout=0.25))
    own, features = parts_of(assignment, 3), features_for(graph, 3)

    def work(worker):
        if worker == 2:
            return
        with pytest.raises(SilentWorkerError, match="Nothing was heard of worker 2") as caught:
            transports[worker].aggregate(features[own[worker]], Direction.FORWARD)
        assert re.search(r"rows of workers? .*2 are missing", str(caught.value))

    together(work, 3)


def test_a_worker_that_leaves_early_is_named_at_once():
    graph, assignment = random_case(60, 400, 3, 3, directed=False)
    transports = on_hub(copy_schedules(graph, assignment, 3))
    own, features = parts_of(assignment, 3), features_for(graph, 3)
    started = time.monotonic()

    def work(worker):
        transports[worker].aggregate(features[own[worker]], Direction.FORWARD)
        if worker != 2:
            with pytest.raises(SilentWorkerError, match=r"workers? .*2 left after round 1"):
                transports[worker].aggregate(features[own[worker]], Direction.FORWARD)
        transports[worker].close()

    together(work, 3)
    assert time.monotonic() - started < seconds_here(10)


@pytest.mark.parametrize("number", seeds(1, 3))
def test_the_last_acknowledgement_may_be_lost(number):
    """Who has left leaves nobody waiting: 30 % of the control frames are lost."""
    graph, assignment = random_case(60, 300, 3, number, directed=True)
    generator = np.random.default_rng(number)
    lock = threading.Lock()

    def touch(frame):
        with lock:
            control = frame[KIND_AT] & 0xF != Kind.FEATURE
            return None if control and generator.random() < 0.3 else frame

    transports = on_hub(copy_schedules(graph, assignment, 3), hub=Hub(3, touch))
    check_round(transports, graph, assignment, features_for(graph, 3))


class NothingAcknowledged:
    """Two workers. Worker 1 acknowledges nothing before it is done with the round."""

    def __init__(self, pace):
        self.graph = graph, assignment = random_case(20, 40, 2, 1, directed=False)
        self.done, self.dropped = threading.Event(), 0
        hub = Hub(2, self._touch)
        self._mute = mac_bytes(hub.stations[1])
        self.transports = on_hub(copy_schedules(graph, assignment, 2), hub=hub, pace=pace)
        self.features, self._parts = features_for(graph, 3), parts_of(assignment, 2)

    def _touch(self, frame):
        acknowledges = frame[KIND_AT] & 0xF == Kind.ACK and frame[6:12] == self._mute
        if not acknowledges or self.done.is_set():
            return frame
        self.dropped += 1
        return None

    def exchange(self, worker):
        self.transports[worker].aggregate(self.features[self._parts[worker]], BOTH[0])
        if worker == 1:
            self.done.set()


@pytest.mark.parametrize("in_background", [False, True])
def test_who_attends_answers_for_the_rounds_behind_it(in_background):
    """Workers wait for each other after a round, as they do to add up gradients."""
    case, over = NothingAcknowledged(Pace(timeout=2.0)), []

    def all_over():
        return len(over) == 2

    def work(worker):
        transport = case.transports[worker]
        if not in_background:
            case.exchange(worker)
            over.append(worker)
            transport.attend(all_over)
            return
        with transport.in_background() as driver:
            case.exchange(worker)
            over.append(worker)
            with driver.attending():
                wait_until(all_over)

    together(work, 2)
    assert sorted(over) == [0, 1]


def test_a_farewell_acknowledges_all_that_came_before():
    """That a worker leaves is as good as its lost acknowledgements; the rows fit the window."""
    case = NothingAcknowledged(Pace(timeout=1.5))
    check_round(case.transports, *case.graph, case.features)
    assert case.dropped


@pytest.mark.whole
def test_who_computes_is_waited_for():
    """It says nothing meanwhile, for longer than the patience."""
    graph, assignment = random_case(20, 40, 2, 1, directed=False)
    schedules, parts = copy_schedules(graph, assignment, 2), parts_of(assignment, 2)
    transports = on_hub(schedules, pace=Pace(timeout=0.2, skew=20.0))
    features = features_for(graph, 3)
    results = {}

    def work(worker):
        time.sleep(0.8 * worker)
        results[worker] = transports[worker].aggregate(features[parts[worker]], BOTH[0])

    together(work, 2)
    assert set(results) == {0, 1}


def test_marks_slow_the_sender_down():
    """A mark in the IPv4 header comes back in the acknowledgement and halves the window."""
    graph, assignment = random_case(300, 3000, 2, 5, directed=False)

    def touch(frame):
        if frame[KIND_AT] & 0xF != Kind.FEATURE:
            assert frame[15] & 3 == 0, "acknowledgements are not to be marked"
            return frame
        assert frame[15] & 3 == 2
        return frame[:15] + bytes([frame[15] | 3]) + frame[16:]

    transports = on_hub(copy_schedules(graph, assignment, 2), hub=Hub(2, touch))
    check_round(transports, graph, assignment, features_for(graph, 64))
    for transport in transports:
        assert transport.counters.marked > 0
        assert transport.counters.slowed > 0
        assert transport._exchange._outbox.congestion.cuts > 0
