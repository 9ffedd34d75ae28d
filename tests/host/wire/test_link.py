"""Links: batches, pauses, bandwidths and full sockets; what leaves arrives, in its order."""

import errno
import os
import socket
import subprocess
import threading
from contextlib import contextmanager
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.host import LinkError, UdpLink, open_link
from switchgnn.host.base.pace import TokenBucket
from switchgnn.host.direct.outbox import Departures
from switchgnn.host.wire import batches, link
from switchgnn.host.wire.addresses import DSCP_CONTROL, DSCP_EARLY, DSCP_LATE, TOS_AT
from switchgnn.host.wire.batches import FrameRows, ReceiveCoalescer
from switchgnn.host.wire.header import ETHERNET_BYTES, ETHERTYPE_IPV4, PROTOCOL
from switchgnn.host.wire.link import SocketLink
from switchgnn.host.wire.link import _wait_for_room as wait_for_room
from switchgnn.topologies.mininet_fabric import _limit
from switchgnn.topologies.rpc_address import free_udp_addresses
from tests.simulation.timing import SECOND, Scheduler, Task
from tests.support.markers import needs, needs_root, whole
from tests.support.networks import linked_ends
from tests.support.speed import seconds_here

SIZE = 188
SECONDS = seconds_here(5.0)


@pytest.fixture(params=["native", "plain"])
def links(request, monkeypatch):
    """Two links; plain ones take one frame out of each message, which the kernel has cut."""
    if request.param == "plain":
        monkeypatch.setattr(link, "native_frames", lambda: None)
    here, there = free_udp_addresses(2)
    with open_link(f"udp:{here}:{there}") as a, open_link(f"udp:{there}:{here}") as b:
        yield a, b


def some_rows(count, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, SIZE), dtype=np.uint8)


def received(end, count):
    frames = []
    while len(frames) < count:
        batch = end.receive_batch(SECONDS)
        assert batch is not None
        frames += [bytes(batch.frame(index)) for index in range(batch.first, batch.count)]
    return frames


def test_who_waits_is_woken(links):
    a, b = links
    sender = threading.Thread(target=a.send, args=(bytes(60),))
    assert b.receive_batch(0.001) is None
    sender.start()
    batch = b.receive_batch(SECONDS)
    sender.join()
    assert batch is not None and bytes(batch.frame(batch.first)) == bytes(60)


def test_frames_of_different_sizes(links):
    a, b = links
    sizes = (60, 188, 0, 88, 1, 1500, 9000)
    for size in sizes:
        a.send(bytes([size % 256]) * size)
    assert received(b, len(sizes)) == [bytes([size % 256]) * size for size in sizes]
    assert a.traffic[:2] == b.traffic[2:] == (len(sizes), sum(sizes))


@pytest.mark.parametrize("cut", [True, False])
@pytest.mark.parametrize("longest", [60, 1512, 9216])
def test_rows_of_which_some_are_shorter(links, monkeypatch, longest, cut):
    """In order, whole and counted, for every way to cut them and number per message."""
    a, b = links
    if not cut:
        monkeypatch.setattr(UdpLink, "_send_rows", SocketLink._send_rows)
    rng = np.random.default_rng(longest)
    frames = rng.integers(0, 256, (150, longest), dtype=np.uint8)
    sizes = np.full(150, longest, dtype=np.uint32)
    shorter = [0, 7, 8, 60, 148, 149]
    sizes[shorter] = rng.integers(1, longest, len(shorter))
    whole = [bytes(frame[:size]) for frame, size in zip(frames, sizes, strict=True)]
    rows = FrameRows(frames, sizes)
    assert [bytes(rows.frame(index)) for index in range(150)] == whole
    for first, count in ((0, 150), (7, 1), (8, 53), (100, 50)):
        a.send_rows(rows, first, count)
        expected = whole[first : first + count]
        assert received(b, count) == expected
        assert rows.bytes_of(first, count) == sum(map(len, expected))
    assert a.traffic[:2] == b.traffic[2:]


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EIO])
def test_a_kernel_that_does_not_cut(links, monkeypatch, number):
    a, b = links

    def refuse(*_):
        raise OSError(number, "no")

    monkeypatch.setattr(FrameRows, "send_cut", refuse)
    frames = some_rows(20)
    a.send_rows(FrameRows(frames), 0, 20)
    assert received(b, 20) == [bytes(row) for row in frames]


@pytest.mark.parametrize("cut", [True, False])
def test_nobody_listens(cut):
    """What is lost is asked for again later; nothing hangs, and nothing is raised."""
    here, there = free_udp_addresses(2)
    with open_link(f"udp:{here}:{there}") as alone:
        alone._cuts = cut
        for _ in range(3):
            alone.send_rows(FrameRows(some_rows(100)), 0, 100)
            assert alone.receive_batch(0.0) is None
            assert alone.receive_batch(0.01) is None


def test_a_wait_ends_although_another_thread_sends_to_nobody():
    here, there = free_udp_addresses(2)
    over = threading.Event()
    with open_link(f"udp:{here}:{there}") as alone:

        def go_on():
            while not over.wait(0.01):
                alone.send(b"a")

        thread = threading.Thread(target=go_on)
        thread.start()
        try:
            waiting = threading.Thread(target=alone.receive_batch, args=(0.1,), daemon=True)
            waiting.start()
            waiting.join(seconds_here(5))
            assert not waiting.is_alive()
        finally:
            over.set()
            thread.join()


def test_departures_keep_the_order(links):
    a, b = links
    one, other = FrameRows(some_rows(10)), FrameRows(some_rows(10, seed=1))
    order = [(one, 0), (one, 1), (other, 5), (other, 6), (one, 2), (one, 2), (one, 1)]
    departures = Departures()
    for rows, index in order:
        departures.add(rows, index)
    departures.leave(a)
    departures.leave(a)
    assert received(b, len(order)) == [bytes(rows.frame(index)) for rows, index in order]
    assert b.receive_batch(0.0) is None


SPACING = 50e-6
# The pause gathers this many frames, but lasts for a millisecond at most.
TOGETHER, LONGEST = 16, 1e-3
SILENCE = 2e-3


class SleepClock:
    """Stands for the module ``time``; it passes only while somebody sleeps, and each is late."""

    def __init__(self, late=0.0):
        self.now, self.late, self.slept = 50.0, late, []

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        assert seconds > 0
        self.slept.append(seconds)
        self.now += seconds + self.late


@pytest.fixture
def time(monkeypatch):
    found = SleepClock()
    monkeypatch.setattr(batches, "time", found)
    return found


@pytest.mark.parametrize(
    ("received", "spacing", "frames", "pause"),
    [
        *((received, SPACING, 1, 0) for received in (0, 1)),
        *((50, 10e-6, frames, TOGETHER * 10e-6) for frames in (1, 5)),
        *((50, spacing, 1, LONGEST) for spacing in (100e-6, 1e-3)),
    ],
)
def test_a_pause_gathers_a_batch_once_frames_trickle_in(time, received, spacing, frames, pause):
    coalescer = ReceiveCoalescer()

    def pause_at(now):
        time.now = now
        return 1.0 - coalescer.gather(1.0)

    for _ in range(received):
        time.now += spacing * frames
        coalescer.took(frames)
    now = time.now
    assert pause_at(now) == pytest.approx(pause, rel=0.01)
    if received < 2:
        return
    assert pause_at(now + SILENCE / 2) > 0
    assert pause_at(now + 2 * SILENCE) == 0
    # A silence says nothing about the line, and after a large batch there is no pause.
    time.now = now + 1.0
    coalescer.took(1)
    assert pause_at(now + 1.0) == pytest.approx(pause, rel=0.01)
    time.now = now + 1.001
    coalescer.took(TOGETHER)
    assert pause_at(now + 1.001) == 0


@pytest.fixture
def trickling(time):
    """A link on which frames have trickled in, the socket at its other end, and the time."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with SocketLink(ours, "test") as here, theirs:
        for _ in range(3):
            theirs.send(b"frame")
            assert here.receive(1.0) is not None
            time.now += SPACING
        yield here, theirs, time


def test_a_batch_is_gathered_where_frames_trickle_in(trickling):
    here, theirs, time = trickling
    assert not time.slept
    theirs.send(b"frame")
    assert here.receive_batch(1.0).count == 1
    (pause,) = time.slept
    assert SPACING < pause <= LONGEST


def test_neither_a_single_frame_nor_a_look_is_delayed(trickling):
    here, theirs, time = trickling
    theirs.send(b"frame")
    assert here.receive(1.0) is not None
    assert here.receive_batch(0.0) is None
    assert not time.slept


RATE, BURST = 1000.0, 300


@given(
    st.lists(st.tuples(st.integers(1, 900), st.floats(0, 2)), min_size=1, max_size=40),
    st.floats(0, 0.01),
)
def test_no_interval_has_more_than_the_rate_and_a_burst(sends, late):
    clock = SleepClock(late)
    bucket, left = TokenBucket(RATE, BURST, clock.monotonic, clock.sleep), []
    for size, pause in sends:
        clock.now += pause
        bucket.take(size)
        left.append((clock.now, size))
    for i, (begin, _) in enumerate(left):
        for j in range(i, len(left)):
            # What is longer than a burst may leave as soon as the bucket is full.
            most = max(BURST, left[j][1]) + (left[j][0] - begin) * RATE
            assert sum(size for _, size in left[i : j + 1]) <= most + 1e-6


@pytest.mark.parametrize("late", [0.0, 0.05])
def test_a_busy_sender_gets_the_whole_rate_even_if_sleeps_are_late(late):
    clock = SleepClock(late)
    bucket = TokenBucket(RATE, BURST, clock.monotonic, clock.sleep)
    begin = clock.now
    for _ in range(1000):
        bucket.take(100)
    assert clock.now - begin == pytest.approx((1000 * 100 - BURST) / RATE, abs=0.1 + 2 * late)


class Senders:
    """Tasks in virtual time that take tokens; `left`: when, of which task, and how many."""

    def __init__(self):
        self.scheduler = Scheduler()
        self.bucket = TokenBucket(RATE, BURST, lambda: self.scheduler.seconds, self._sleep)
        self.left, self._running = [], None

    def _sleep(self, seconds):
        task = self._running
        task.wait(seconds)
        self._running = task

    def add(self, level, sizes, at=0.0):
        def send(task):
            for size in sizes:
                self._running = task
                self.bucket.take(size, level)
                self.left.append((self.scheduler.seconds, level, size))

        Task(self.scheduler, str(level), send).start(int(at * SECOND))

    def run(self):
        self.scheduler.run(1000, lambda: False)
        return self.left


def test_a_higher_level_goes_first_whenever_it_comes():
    senders = Senders()
    senders.add(0, [100] * 30)
    senders.add(1, [100] * 10, at=0.55)
    senders.add(2, [100] * 4, at=0.75)
    left = senders.run()
    # Three leave at once, then one each 0.1 s.
    levels = "0" * 3 + "00000" + "11" + "2222" + "1" * 8 + "0" * 22
    assert "".join(str(level) for _, level, _ in left) == levels
    assert [at for at, *_ in left] == pytest.approx([0] * 3 + [0.1 * i for i in range(1, 42)])


@given(st.lists(st.integers(1, BURST), min_size=1, max_size=8), st.integers(0, 1))
def test_a_lower_level_gets_a_sixteenth_beside_a_flood(sizes, level):
    senders = Senders()
    senders.add(2, [100] * 400)
    senders.add(level, sizes, at=0.05)
    sent = {2: 0, level: 0}
    for _, each, size in senders.run():
        sent[each] += size
        if each == level:
            # In whole frames of the flood.
            assert 15 * sent[level] <= sent[2] <= 15 * sent[level] + BURST + 200 * len(sizes)


@pytest.fixture
def switch():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(seconds_here(5))
        yield receiver


def description(switch, *bandwidth):
    fields = "udp", *free_udp_addresses(1), "127.0.0.1", switch.getsockname()[1], *bandwidth
    return ":".join(map(str, fields))


@contextmanager
def slow_link(switch):
    """A link of 100 bytes in a millisecond, and its clock."""
    clock = SleepClock()
    with open_link(description(switch, 0.8)) as link:
        link._bucket = TokenBucket(100_000.0, 2000, clock.monotonic, clock.sleep)
        yield link, clock


def test_rows_leave_at_the_rate_and_in_order(switch):
    frames = np.arange(60, dtype=np.uint8).repeat(1000).reshape(60, 1000)
    sizes = np.full(60, 1000, dtype=np.uint32)
    sizes[::7] = 400
    with slow_link(switch) as (link, clock):
        begin = clock.now
        link.send_rows(FrameRows(frames, sizes), 0, 50)
        link.send(bytes(frames[50]))
        total = int(sizes[:50].sum()) + 1000
        assert link.traffic[:2] == (51, total)
    assert clock.now - begin == pytest.approx((total - 2000) / 100_000)
    came = [switch.recv(2000) for _ in range(51)]
    assert [frame[0] for frame in came] == list(range(51))
    assert [len(frame) for frame in came[:50]] == sizes[:50].tolist()


def test_frames_without_numbers_do_not_wait_but_take_their_time_from_others(switch):
    with slow_link(switch) as (link, clock):
        link.send(bytes(2000))
        begin = clock.now
        for _ in range(10):
            # Of 100 bytes, marked by its DSCP as one without numbers.
            link.send(bytes(15) + bytes([48 << 2]) + bytes(84))
        assert clock.now == begin
        link.send(bytes(1000))
    assert clock.now - begin == pytest.approx(2000 / 100_000)


@pytest.mark.parametrize("bandwidth", ["0", "nan", "fast", "1:2"])
def test_what_is_no_bandwidth_is_refused(switch, bandwidth):
    with pytest.raises(LinkError, match=r"SWITCH_PORT\[:MBIT\]"):
        open_link(description(switch, bandwidth))


FRAMES, FRAME_BYTES = 300, 188
HERE, THERE = f"f{os.getpid() % 0xFFFF:x}h", f"f{os.getpid() % 0xFFFF:x}t"
# Two frames at a time, and then 8 Mbit/s: the frames need 50 ms.
SHAPE = ("tbf", "rate", "8mbit", "burst", "400", "limit", "1mb")


@pytest.fixture
def cable():
    with linked_ends(HERE, THERE) as links:
        yield links


def frame(number, dscp=0, protocol=PROTOCOL):
    data = bytearray(FRAME_BYTES)
    data[:12] = b"\x02" * 12
    data[12:14] = ETHERTYPE_IPV4.to_bytes(2, "big")
    data[ETHERNET_BYTES] = 0x45
    data[TOS_AT] = dscp << 2
    data[ETHERNET_BYTES + 9] = protocol
    data[-4:] = number.to_bytes(4, "big")
    return bytes(data)


@whole
@needs_root
@needs("tc", "iproute2")
def test_frames_of_higher_classes_overtake_others_in_the_kernel(cable):
    link, other = cable
    _limit(HERE, 1.0, os.getpid())
    # Some leave at once, and one more of each lower class in sixteen; the others need 0.4 s.
    order = [*[DSCP_LATE] * 100, *[DSCP_EARLY] * 100, *[0] * 80, *[DSCP_CONTROL] * 10]
    for number, dscp in enumerate(order):
        link.send(frame(number, dscp))
    came = [bytes(other.receive(seconds_here(5))) for _ in order]
    numbers = [int.from_bytes(each[-4:], "big") for each in came]
    where = {}
    for dscp in dict.fromkeys(order):
        where[dscp] = [at for at, number in enumerate(numbers) if order[number] == dscp]
        own = [number for number in numbers if order[number] == dscp]
        assert own == sorted(own)
    last = {dscp: max(positions) for dscp, positions in where.items()}
    assert last[DSCP_CONTROL] < last[0] < last[DSCP_EARLY] < last[DSCP_LATE]
    while_numbers_wait = {dscp: sum(at < last[0] for at in where[dscp]) for dscp in where}
    assert 4 <= while_numbers_wait[DSCP_EARLY] < 40
    assert 4 <= while_numbers_wait[DSCP_LATE] < 40


@whole
@needs_root
@needs("tc", "iproute2")
def test_all_frames_arrive_in_order(cable, monkeypatch):
    link, other = cable
    words = ["tc", "qdisc", "add", "dev", HERE, "root", *SHAPE]
    subprocess.run(words, check=True, capture_output=True)
    link._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    waits = Mock(wraps=wait_for_room)
    monkeypatch.setattr("switchgnn.host.wire.link._wait_for_room", waits)
    for number in range(FRAMES):
        link.send(frame(number))
    assert waits.call_count > FRAMES // 20
    for number in range(FRAMES):
        came = other.receive(seconds_here(5))
        assert came is not None, number
        assert bytes(came) == frame(number)


@needs_root
@pytest.mark.parametrize("protocols", [(), (254,), (PROTOCOL, 254)])
def test_an_interface_has_the_protocols_that_it_is_opened_for(protocols):
    with linked_ends(HERE, THERE, *protocols) as (link, far):
        for number, protocol in enumerate((6, PROTOCOL, 254, 252)):
            far.send(frame(number, protocol=protocol))
        got = []
        while (one := link.receive(seconds_here(0.1))) is not None:
            got.append(one[23])
        assert got == list(protocols or (PROTOCOL,))
