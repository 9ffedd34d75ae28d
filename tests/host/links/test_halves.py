"""A link split for two threads: each half gets its frames in order, in time, and unchanged."""

import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.host.base.errors import LinkError
from switchgnn.host.links.faults import Faults, FaultyLink
from switchgnn.host.links.recording import Recording, RecordingLink, begin_recording
from switchgnn.host.links.split import kinds_from, split_link
from switchgnn.host.wire import link as links
from switchgnn.host.wire.batches import FrameRows, new_batch
from switchgnn.host.wire.link import LARGEST_FRAME, Link, Traffic, open_link
from switchgnn.topologies.rpc_address import free_udp_addresses
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

# Offsets in a frame: IPv4 protocol; flags and kind; where the tests put a number.
PROTOCOL_AT, KIND_AT, NUMBER_AT = 23, 46, 50
PROTOCOL, DIRECT = 253, 254
FIRST_KIND = 11
SECONDS = seconds_here(10.0)
SHORT = 0.1


def frame(kind, number=0, *, protocol=PROTOCOL, size=60, flags=0):
    data = bytearray(size)
    data[PROTOCOL_AT], data[KIND_AT] = protocol, flags << 4 | kind
    data[NUMBER_AT : NUMBER_AT + 4] = number.to_bytes(4, "big")
    return bytes(data)


first, second = partial(frame, 2), partial(frame, 12)


class ScriptedLink(Link):
    """A link whose frames a test puts in; `keeps`: whether it has a second room for batches."""

    def __init__(self, *, keeps=True):
        self._keeps = keeps
        self._rooms = [new_batch(64, LARGEST_FRAME) for _ in range(2)]
        self._changed = threading.Condition()
        self._groups, self._error = deque(), None
        self.sent, self.closed, self.reading = [], 0, threading.Semaphore(0)
        self.waits, self._one_reader = [], threading.Lock()

    name = "scripted"
    traffic = Traffic(0, 0, 0, 0)

    def arrive(self, *frames):
        with self._changed:
            self._groups.append(frames)
            self._changed.notify_all()

    def fail(self):
        with self._changed:
            self._error = LinkError("The link is down.")
            self._changed.notify_all()

    def send(self, frame):
        self.sent.append(bytes(frame))

    def receive(self, seconds):
        raise NotImplementedError

    def receive_batch(self, seconds):
        assert self._one_reader.acquire(blocking=False)
        try:
            return self._receive_batch(seconds)
        finally:
            self._one_reader.release()

    def _receive_batch(self, seconds):
        self.waits.append(seconds)
        self.reading.release()
        batch = self._rooms[0]
        batch.first = batch.count = 0
        batch.room[:100] = 0xEE
        with self._changed:
            self._changed.wait_for(lambda: self._groups or self._error, seconds)
            if self._error:
                error, self._error = self._error, None
                raise error
            if not self._groups:
                return None
            for each in self._groups.popleft():
                batch.put(each)
        return batch

    def keep_batch(self):
        if self._keeps:
            self._rooms.reverse()
        return self._keeps

    def close(self):
        self.closed += 1


@pytest.fixture(params=["passes", "copies", "recorded"])
def scripted(request, tmp_path):
    link = ScriptedLink(keeps=request.param != "copies")
    how = "recorded" if request.param == "recorded" else "plain"
    return link, *split_link(wrapped(link, how, tmp_path), kinds_from(FIRST_KIND))


def wrapped(link, how, folder):
    if how == "recorded":
        begin_recording(folder / "frames.pcap")
        return RecordingLink(link, Recording(folder / "frames.pcap"))
    return FaultyLink(link, Faults(), 0) if how == "faulty" else link


@contextmanager
def elsewhere():
    with ThreadPoolExecutor(4) as pool:
        yield pool.submit


def views_of(batch):
    return [] if batch is None else [batch.frame(i) for i in range(batch.first, batch.count)]


def frames_of(batch):
    return list(map(bytes, views_of(batch)))


def batch_of(half, seconds=0.0):
    return frames_of(half.receive_batch(seconds))


@contextmanager
def both_receiving(link, one, other, seconds=SECONDS):
    """Let `one` read the link and `other` wait for it; yield `elsewhere` and what they return."""
    with elsewhere() as run:
        reading = run(lambda: batch_of(one, seconds))
        assert link.reading.acquire(timeout=seconds_here(10.0))
        waiting = run(lambda: batch_of(other, SECONDS))
        wait_until(lambda: other._waits)
        yield run, reading, waiting


def test_frames_of_the_second_half():
    batch = new_batch(8, LARGEST_FRAME)
    chosen = [
        (first(), False),
        (frame(10), False),
        (frame(11), True),
        (frame(13, flags=0xF), True),
        (frame(12, protocol=DIRECT), False),
        (frame(1, flags=0xF), False),
        (second()[: KIND_AT + 1], True),
        (second()[:KIND_AT], False),
    ]
    for index in range(len(chosen)):
        batch.put(second(index))
    batch.count = 0
    for each, _ in chosen:
        batch.put(each)
    batch.first = 1
    assert kinds_from(FIRST_KIND)(batch).tolist() == [expected for _, expected in chosen][1:]


def test_a_batch_of_one_half_passes_without_a_copy():
    link = ScriptedLink()
    one, other = split_link(link, kinds_from(FIRST_KIND))
    for half, make in ((one, first), (other, second)):
        link.arrive(make(1), make(2))
        batch = half.receive_batch(0.0)
        assert frames_of(batch) == [make(1), make(2)]
        assert any(batch is room for room in link._rooms)


@pytest.mark.parametrize("ending", ["time", "frames", "error", "close"])
def test_a_follower_takes_over_in_the_same_wait(scripted, ending):
    link, one, other = scripted
    seconds = SHORT if ending in ("time", "close") else SECONDS
    with both_receiving(link, one, other, seconds) as (run, reading, follower):
        waiting = follower
        if ending == "frames":
            link.arrive(first(1))
            assert reading.result(SECONDS) == [first(1)]
        elif ending == "error":
            link.fail()
            for each in (reading, waiting):
                with pytest.raises(LinkError, match=r"The link is down\."):
                    each.result(SECONDS)
            waiting = run(lambda: batch_of(other, SECONDS))
        else:
            if ending == "close":
                one.close()
            assert reading.result(SECONDS) == []
        assert link.reading.acquire(timeout=seconds_here(10.0))
        link.arrive(second(2))
        assert waiting.result(SECONDS) == [second(2)]


def test_the_leader_keeps_reading_while_the_other_half_waits():
    """Batches of the busy half pass; its idle companion does not read them for it."""
    link = ScriptedLink()
    one, other = split_link(link, kinds_from(FIRST_KIND))
    with both_receiving(link, other, one) as (_, waiting, reading):
        link.arrive(first(0))
        assert reading.result(SECONDS) == [first(0)]
        passed = 0
        for number in range(1, 101):
            link.arrive(first(number))
            batch = one.receive_batch(SECONDS)
            assert frames_of(batch) == [first(number)]
            passed += any(batch is room for room in link._rooms)
        assert passed > 50
        link.arrive(second(7))
        assert waiting.result(SECONDS) == [second(7)]


@pytest.mark.parametrize("role", ["reader", "follower"])
@pytest.mark.parametrize("theirs", [False, True])
def test_a_wait_takes_its_time(scripted, role, theirs):
    """Whether or not frames of the other half come in between."""
    link, one, other = scripted
    with elsewhere() as run:
        if role == "follower":
            longer = run(lambda: batch_of(one, 3 * SHORT))
            assert link.reading.acquire(timeout=seconds_here(10.0))
        began = time.monotonic()
        waiting = run(lambda: (batch_of(other, SHORT), time.monotonic()))
        for _ in range(4 * theirs):
            threading.Event().wait(SHORT / 5)
            link.arrive(first())
        frames, over = waiting.result(SECONDS)
        assert not frames
        assert SHORT <= over - began < SHORT + seconds_here(0.1)
        if role == "reader":
            assert link.waits == sorted(link.waits, reverse=True)
            assert len(link.waits) == len(set(link.waits))
        if role == "follower":
            longer.result(SECONDS)


def test_the_oldest_frames_are_dropped():
    link = ScriptedLink()
    one, other = split_link(link, kinds_from(FIRST_KIND), kept_at_most=3)
    link.arrive(*map(second, range(5)))
    assert batch_of(one) == []
    assert batch_of(other) == [second(2), second(3), second(4)]


def test_the_link_is_closed_with_the_second_half(scripted):
    link, one, other = scripted
    one.close()
    one.close()
    assert not link.closed
    link.arrive(first(1), second(2))
    assert batch_of(other) == [second(2)]
    assert one.traffic.frames_down == 0
    for call in (one.receive, one.receive_batch):
        with pytest.raises(LinkError, match="closed"):
            call(0.0)
    with pytest.raises(LinkError, match="closed"):
        one.send(first())
    other.close()
    other.close()
    assert link.closed == 1


def test_a_link_is_not_closed_while_it_is_read(scripted):
    link, one, other = scripted
    with both_receiving(link, one, other) as (_, reading, waiting):
        other.close()
        with pytest.raises(LinkError, match="closed"):
            waiting.result(SECONDS)
        one.close()
        assert not link.closed
        link.arrive(first())
        reading.result(SECONDS)
    assert link.closed == 1


@pytest.mark.parametrize("how", ["plain", "faulty", "recorded"])
def test_a_half_that_waits_for_the_line_does_not_keep_the_other_one_waiting(how, tmp_path):
    link = ScriptedLink()
    one, other = split_link(wrapped(link, how, tmp_path), kinds_from(FIRST_KIND))
    waiting, free = threading.Event(), threading.Event()

    def send(frame):
        if bytes(frame) == second():
            waiting.set()
            assert free.wait(seconds_here(10.0))
        link.sent.append(bytes(frame))

    link.send = send
    with elsewhere() as run:
        low = run(lambda: other.send(second()))
        assert waiting.wait(seconds_here(10.0))
        one.send(first())
        assert link.sent == [first()]
        free.set()
        low.result(SECONDS)
    assert link.sent == [first(), second()]
    assert one.traffic[:2] == other.traffic[:2] == (1, 60)


@pytest.fixture
def turns():
    link = ScriptedLink()
    return link, *split_link(link, kinds_from(0, DIRECT))


def test_the_other_exchange_goes_on_while_nothing_comes(turns):
    link, one, other = turns
    calls = []

    def meanwhile():
        calls.append(other.arrived)
        if len(calls) == 2:
            link.arrive(first(1, protocol=DIRECT))
        if len(calls) == 4:
            link.arrive(second(2))
        return 0.001

    one.take_turns(meanwhile)
    assert bytes(one.receive(SECONDS)) == second(2)
    # It is asked again as soon as it has a frame.
    assert calls[:3] == [False, False, True]


def test_a_busy_link_leaves_the_other_exchange_its_turns(turns):
    link, one, other = turns
    calls = []
    one.take_turns(lambda: calls.append(other.receive(0.0)) or float("inf"))
    for number in range(1000):
        link.arrive(first(number))
        assert bytes(one.receive(SECONDS)) == first(number)
    assert 0 < len(calls) < 1000


HALVES = st.sampled_from((0, 1))
STEPS = st.lists(
    st.one_of(st.lists(HALVES, min_size=1, max_size=8), st.tuples(HALVES, st.booleans())),
    max_size=40,
)


@given(STEPS, st.booleans())
def test_any_order_of_arrivals_and_reads(steps, keeps):
    """Against two lists: nothing is lost, repeated, reordered, or changed while it is held."""
    link = ScriptedLink(keeps=keeps)
    halves = split_link(link, kinds_from(FIRST_KIND))
    arrived, taken, number = ([], []), ([], []), 0
    held = [([], []), ([], [])]

    def read(which, batches):
        if batches:
            views = views_of(halves[which].receive_batch(0.0))
        else:
            view = halves[which].receive(0.0)
            views = [] if view is None else [view]
        held[which] = views, [bytes(view) for view in views]
        taken[which].extend(held[which][1])
        return bool(views)

    for step in steps:
        if isinstance(step, list):
            frames = [(first, second)[which](number + i) for i, which in enumerate(step)]
            for which, each in zip(step, frames, strict=True):
                arrived[which].append(each)
            number += len(step)
            link.arrive(*frames)
            continue
        read(*step)
        for views, copies in held:
            assert [bytes(view) for view in views] == copies
    for which in (0, 1):
        # A look may end early on a busy machine.
        while read(which, True) or link._groups:
            pass
    assert taken == arrived
    assert [half.traffic.frames_down for half in halves] == [len(each) for each in arrived]


FRAMES, AT_ONCE, UNDER_WAY = 1500, 20, 60


def received(half, window):
    """Receive all frames as numbers; those that are held stay while the other thread receives."""
    numbers = []
    while len(numbers) < FRAMES:
        views = views_of(half.receive_batch(SECONDS))
        assert views
        copies = list(map(bytes, views))
        window.release(len(copies))
        if len(numbers) % 7 == 0:
            time.sleep(0)
        assert copies == list(map(bytes, views))
        numbers += [int.from_bytes(each[NUMBER_AT : NUMBER_AT + 4], "big") for each in copies]
    return numbers


def send_all(half, window, make):
    frames = b"".join(map(make, range(FRAMES)))
    rows = FrameRows(np.frombuffer(frames, dtype=np.uint8).reshape(FRAMES, -1).copy())
    for at in range(0, FRAMES, AT_ONCE):
        for _ in range(AT_ONCE):
            assert window.acquire(timeout=seconds_here(10.0))
        half.send_rows(rows, at, AT_ONCE)


@pytest.mark.parametrize("how", ["plain", "faulty", "recorded"])
@pytest.mark.parametrize("code", ["native", "python"])
def test_two_threads_on_one_socket(how, code, monkeypatch, tmp_path):
    """Both send and receive at the same time, and the other end returns all frames."""
    if code == "python":
        monkeypatch.setattr(links, "native_frames", lambda: None)
    here, there = free_udp_addresses(2)
    with open_link(f"udp:{there}:{here}") as far, elsewhere() as run:
        link = wrapped(open_link(f"udp:{here}:{there}"), how, tmp_path)
        halves = split_link(link, kinds_from(FIRST_KIND))
        with halves[0], halves[1]:
            getting, sending = [], []
            for half, make in zip(halves, (first, second), strict=True):
                window = threading.Semaphore(UNDER_WAY)
                getting.append(run(received, half, window))
                sending.append(run(send_all, half, window, make))
            for _ in range(2 * FRAMES):
                each = far.receive(SECONDS)
                assert each is not None
                far.send(bytes(each))
            for each in sending:
                each.result(SECONDS)
            assert [each.result(SECONDS) for each in getting] == [list(range(FRAMES))] * 2
        for half in halves:
            assert half.traffic == (FRAMES, 60 * FRAMES) * 2
        assert link.traffic == (2 * FRAMES, 2 * 60 * FRAMES) * 2
