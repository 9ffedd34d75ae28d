# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A gathering turns reports into snapshots."""

import json
from itertools import pairwise

import pytest

from switchgnn.controller.counters import SlotsInUse
from switchgnn.live.gather import EVERY, Gathering, LinkSeen, ThinnedSeries
from switchgnn.live.snapshot import Ending, Epoch, JobOutcome, QueueNow, WorkerState
from tests.live.pictures import LEAF_SPINE, STAR, reading, values
from tests.support.hand_clock import HandClock


@pytest.fixture
def clock():
    return HandClock(100.0)


@pytest.fixture
def gathering(clock):
    made = Gathering("run karate", clock=clock)
    made.begin(STAR)
    return made


def tell(gathering, clock, *told, seconds=EVERY):
    """Reports of all workers, `seconds` apart."""
    for each in zip(*told, strict=True):
        for worker, said in enumerate(each):
            gathering.worker(worker, said)
        clock.seconds += seconds
    clock.seconds -= seconds


def states(gathering):
    return [worker.state for worker in gathering.snapshot().workers]


def test_the_step_of_a_training_is_its_epochs(clock):
    gathering = Gathering("train karate", 12, clock)
    gathering.step("installing")
    for epoch in (1, 2, 3):
        gathering.epoch(Epoch(epoch, 0.5, None))
    assert gathering.snapshot().step == "training: 3 of 12 epochs done"


def test_bytes_and_their_rates(gathering, clock):
    tell(gathering, clock, *[[values(1, up=1000, down=400), values(4, up=3000, down=900)]] * 4)
    first = gathering.snapshot().workers[0]
    assert (first.link.bytes_up, first.link.bytes_down) == (3000, 900)
    assert first.link.rate_up == pytest.approx(2000 / EVERY)
    assert first.link.rate_down == pytest.approx(500 / EVERY)
    assert (first.rounds, first.blocks, first.window) == (2, 4, 16.0)
    assert first.link.lost is None


def test_who_is_waited_for_does_not_wait(gathering, clock):
    early = [values(2, up=1880, waited=1.0)] * 4
    late = [values(3, up=3760, waited=1.0 + share * EVERY) for share in (0.5, 0.1, 0.6, 0.4)]
    tell(gathering, clock, *zip(early, late, strict=True))
    assert states(gathering) == [
        WorkerState.WAITING,
        WorkerState.EXCHANGING,
        WorkerState.WAITING,
        WorkerState.WAITING,
    ]


@pytest.mark.parametrize(
    ("early", "late", "state"),
    [
        # All wait alike, so nobody waits for another one.
        (values(2, up=1880), values(3, up=3760, waited=0.55 * EVERY), WorkerState.EXCHANGING),
        (values(2, up=1880), values(2, up=1900, recalls=1), WorkerState.WAITING),
        (values(2, exchanging=0.0), values(2, exchanging=0.0), WorkerState.COMPUTING),
    ],
)
def test_what_all_of_them_do(gathering, clock, early, late, state):
    tell(gathering, clock, *[[early, late]] * 4)
    assert states(gathering) == [state] * 4
    repairing = [worker.repairing for worker in gathering.snapshot().workers]
    assert repairing == [state is WorkerState.WAITING] * 4


def test_who_is_silent_does_nothing_any_more(gathering, clock):
    tell(gathering, clock, *[[values(1, up=10), values(2, up=1000, recalls=3)]] * 4)
    before = gathering.snapshot().workers[0]
    assert before.repairing
    assert before.link.rate_up > 0
    clock.seconds += 5 * EVERY
    after = gathering.snapshot().workers[0]
    assert (after.state, after.repairing, after.link.rate_up) == (WorkerState.SILENT, False, 0.0)
    assert (after.recalls, after.link.bytes_up) == (3, 1000)


def test_who_says_nothing_is_silent(gathering, clock):
    assert states(gathering) == [WorkerState.STARTING] * 4
    tell(gathering, clock, *[[values(1), values(2)]] * 4)
    clock.seconds += 3 * EVERY
    for worker in (0, 1, 3):
        gathering.worker(worker, values(3))
    clock.seconds += 2 * EVERY
    assert states(gathering)[2] is WorkerState.SILENT
    assert WorkerState.SILENT not in {states(gathering)[worker] for worker in (0, 1, 3)}
    gathering.finish()
    assert states(gathering) == [WorkerState.FINISHED] * 4


def test_hosts_alone_say_what_passes(gathering, clock):
    def told(up):
        return {"link_bytes_total/up": up, "link_bytes_total/down": 0.0}

    tell(gathering, clock, [told(1), told(5)], *[[told(1), told(1)]] * 3)
    assert states(gathering) == [WorkerState.EXCHANGING] + [WorkerState.COMPUTING] * 3
    worker = gathering.snapshot().workers[0]
    assert worker.blocks is worker.recalls is worker.window is None


def test_what_switches_say(gathering):
    gathering.switches([reading(40, (5, 0, 0), 7)], [SlotsInUse(3, 8, 16)])
    gathering.switches([reading(90, (5, 6, 2), 9)], [SlotsInUse(4, 8, 16)])
    [seen] = gathering.snapshot().switches
    assert (seen.up, seen.session, seen.frames, seen.completed) == (True, 3, 90, 9)
    assert (seen.slots_used, seen.slots_seen, seen.slots) == (4, 8, 16)
    # Only what has come since: six that found one packet, two that found two.
    assert seen.queue == QueueNow(8, 10 / 8, 2)
    # A switch that was restarted counts from zero.
    gathering.switches([reading(4, (1, 0, 3))], [None])
    [seen] = gathering.snapshot().switches
    assert seen.queue == QueueNow(4, 6 / 4, 2)
    assert seen.slots_used is None
    gathering.switches([None], [None])
    [seen] = gathering.snapshot().switches
    assert seen.up is False
    assert seen.frames is None


def test_cables_and_queues(clock):
    gathering = Gathering("run karate", clock=clock)
    gathering.begin(LEAF_SPINE)
    queues = [LinkSeen(waiting_up=worker, waiting_down=10 * worker) for worker in range(4)]
    gathering.links(queues, [LinkSeen(100, 200, 1), LinkSeen()])
    clock.seconds += 2
    gathering.links(queues, [LinkSeen(300, 240, 4), LinkSeen()])
    seen = gathering.snapshot()
    assert [worker.link.waiting_down for worker in seen.workers] == [0, 10, 20, 30]
    assert (seen.cables[0].rate_up, seen.cables[0].rate_down) == (100.0, 20.0)
    assert seen.cables[1].bytes_up is None
    assert seen.points[-1].lost == 4


def test_another_network_begins_anew(gathering, clock):
    tell(gathering, clock, *[[values(1), values(2)]] * 4)
    gathering.epoch(Epoch(1, 0.5, None))
    assert len(gathering.snapshot().points) == 1
    gathering.begin(LEAF_SPINE)
    seen = gathering.snapshot()
    assert seen.picture == LEAF_SPINE
    assert seen.epochs == ()
    assert [worker.blocks for worker in seen.workers] == [None] * 4


def test_the_first_word_of_the_end_counts(gathering):
    gathering.end(Ending(JobOutcome.WRONG, "3 sums differ."))
    gathering.end(Ending(JobOutcome.DONE, "Done."))
    before = len(gathering.snapshot().points)
    told = json.loads(gathering.snapshot().to_json())
    assert told["ended"] == {"outcome": "wrong", "words": "3 sums differ."}
    assert len(told["points"]) == before
    assert b"\n" not in gathering.snapshot().to_json()


def test_an_hour_of_many_workers_is_bounded(clock):
    """The totals of a day with the most workers."""
    gathering = Gathering("run karate", clock=clock)
    many = STAR.__class__(**{**vars(STAR), "workers": tuple(STAR.workers[0] for _ in range(128))})
    gathering.begin(many)
    for step in range(2000):
        gathering.worker(step % 128, values(step))
        clock.seconds += EVERY
        # Each is a point of the charts; a few of them suffice for thinning.
        if step % 4 == 3:
            seen = gathering.snapshot()
    assert len(seen.to_json()) < 100_000
    assert seen.points[0].seconds < 10
    assert seen.points[-1].seconds == pytest.approx(2000 * EVERY)


def test_a_series_is_thinned_evenly():
    series = ThinnedSeries(10)
    assert series.values() == ()
    for number in range(1000):
        series.add(number)
        kept = series.values()
        assert kept[-1] == number
        assert kept[0] == 0
        assert len(kept) <= 11
        gaps = {late - early for early, late in pairwise(kept[:-1])}
        assert len(gaps) <= 1
