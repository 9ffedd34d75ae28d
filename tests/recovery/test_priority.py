"""Packets without numbers overtake sums, and no worker can misuse that against others."""

import os
import signal
import threading
from contextlib import ExitStack

import numpy as np
import pytest

from switchgnn.host.links import WrappedLink
from switchgnn.host.wire.addresses import TOS_AT, ipv4_envelope
from switchgnn.host.wire.batches import FrameRows
from switchgnn.host.wire.header import KIND_AT, KIND_MASK, LANE_KINDS, Header, Kind
from switchgnn.topologies import Target
from tests.support.fabrics import Team, bed
from tests.support.markers import needs_compiler
from tests.support.reducing import Crew
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

pytestmark = needs_compiler
WORKERS = 4
WIDTH = 256
# One block, with some fifty sums of a kilobyte for each worker: half a second on these links.
ONE_BLOCK = {"graph": "random:200:600:1", "slots": 4096, "lanes": WIDTH, "bandwidth": 1.0}
EVIL = 3
MOST_BESIDE_SUMS, BURST = 0.1, 500
PROTOCOL_AT, UDP = 23, 17
DATA = frozenset(map(int, LANE_KINDS))


class Watched(WrappedLink):
    """A link that remembers the kinds and sizes of the frames that come."""

    def __init__(self, link):
        super().__init__(link)
        self.came = []

    def receive(self, seconds):
        frame = self._link.receive(seconds)
        if frame is not None:
            self.came.append((frame[KIND_AT] & KIND_MASK, len(frame)))
        return frame


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with bed(Target.EMBEDDED, WORKERS, tmp_path_factory.mktemp("bed"), **ONE_BLOCK) as each:
        yield each


class WatchedBed:
    """A bed with watched links."""

    def __init__(self, bed):
        self._bed, self.links = bed, {}

    def __getattr__(self, name):
        return getattr(self._bed, name)

    def link(self, worker):
        self.links[worker] = Watched(self._bed.link(worker))
        return self.links[worker]


def exchange(made, meanwhile=None):
    watched = WatchedBed(made)
    with ExitStack() as stack:
        made.install()
        team = Team(watched, stack)
        if meanwhile is not None:
            stack.enter_context(meanwhile(team))
        assert team.run(1, width=WIDTH) == 0
        assert not team.errors, team.errors
    return {worker: each.came for worker, each in watched.links.items()}


def while_sums_wait(came, kinds=DATA):
    """Return the frames between the middle and the last sum: by then all are in the queue."""
    positions = [position for position, (kind, _) in enumerate(came) if kind in kinds]
    return came[positions[len(positions) // 2] : positions[-1] + 1]


def test_acknowledgements_overtake_sums(made):
    for came in exchange(made).values():
        kinds = [kind for kind, _ in came]
        last = max(position for position, kind in enumerate(kinds) if kind == Kind.ACK)
        assert kinds[:last].count(Kind.SUM) < kinds.count(Kind.SUM) / 2


class Flood:
    """NOTICEs of one worker, as many as its processor can send."""

    def __init__(self, team):
        endpoint = team.exchanges[EVIL]._endpoint
        header = Header(kind=Kind.NOTICE, src_id=EVIL, count=0xFFFF, block_id=1, round=1)
        self._frame = endpoint.frame(header)
        self._link = endpoint.link
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)
        self.sent = 0

    def _send(self):
        while not self._stop.is_set():
            self._link.send(self._frame)
            self.sent += 1

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()


def test_a_flood_of_notices_takes_a_tenth_of_the_sums_of_others(made):
    came = exchange(made, Flood)
    del came[EVIL]
    for frames in came.values():
        block = while_sums_wait(frames)
        sums = sum(size for kind, size in block if kind in DATA)
        notices = sum(size for kind, size in block if kind == Kind.NOTICE)
        assert notices >= MOST_BESIDE_SUMS * sums / 4, "the flood was too slow to test anything"
        assert notices <= MOST_BESIDE_SUMS * sums + BURST


@pytest.mark.parametrize("late", [False, True])
def test_sums_overtake_an_all_reduce_but_for_a_sixteenth(made, late):
    watched = WatchedBed(made)
    with ExitStack() as stack:
        made.install()
        crew = Crew(watched, stack).begun()
        values = np.ones(256 * 400, dtype=np.int32)
        futures = [each.submit(values, late=late) for each in crew.reducers.values()]
        wait_until(lambda: crew.streams[0].counters.sums, "sums of the all-reduce")
        team = Team(watched, stack, link=lambda worker: crew.halves[worker][0])
        assert team.run(1, width=WIDTH) == 0
        assert not team.errors, team.errors
        assert not any(future.done() for future in futures)
        for link in watched.links.values():
            block = [kind for kind, _ in while_sums_wait(link.came, {Kind.SUM})]
            assert block.count(Kind.REDUCED) <= block.count(Kind.SUM) / 15 + 2


def test_ordinary_packets_lower_their_class_by_dscp(made):
    order = [1] * 20 + [8] * 20 + [0] * 20
    made.install()
    with made.link(0) as sender, made.link(1) as receiver:
        own, to = made.addresses(0).worker, made.addresses(1).worker
        heads = [ipv4_envelope(own, to, 966, protocol=UDP, dscp=dscp) for dscp in order]
        frames = np.frombuffer(b"".join(head + bytes(966) for head in heads), dtype=np.uint8)
        # The switch sleeps until all are there, so all but the first one wait in it.
        os.kill(made.switch.pid, signal.SIGSTOP)
        try:
            sender.send_rows(FrameRows(frames.reshape(len(order), 1000)), 0, len(order))
        finally:
            os.kill(made.switch.pid, signal.SIGCONT)
        came = []
        while len(came) < len(order):
            frame = receiver.receive(seconds_here(10.0))
            # Others may be left of an all-reduce.
            came += [frame[TOS_AT] >> 2] if frame[PROTOCOL_AT] == UDP else []
    assert sorted(came) == sorted(order)
    for dscp, lower in ((0, {8, 1}), (8, {1})):
        last = max(at for at, each in enumerate(came) if each == dscp)
        # The first one, and a sixteenth.
        assert sum(each in lower for each in came[:last]) <= 1 + 3
