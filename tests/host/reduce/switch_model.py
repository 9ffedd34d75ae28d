"""A reducing switch of a dictionary, and a network on a hand clock; the header codec is ours."""

import heapq
import random
from collections import deque
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

import numpy as np

from switchgnn.host.reduce.stream import ReduceStream
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.header import BODY_AT, BarrierBody, Header, Kind, unpack_header
from switchgnn.host.wire.link import Link, Traffic
from tests.host.addresses import SWITCH, addresses_of, station
from tests.support.hand_clock import HandClock

SESSION, PLAN = 3, 0xBEEF


def largest_error(workers, exponent, bits=48):
    """The largest error of docs/allreduce.md, before the rounding to float32."""
    if bits == 32:
        return workers**2 * Fraction(2) ** exponent / (2 * (2**31 - workers))
    k, b = int(np.log2(workers)) + 1, 16 - int(np.ceil(np.log2(workers)))
    return workers * Fraction(2) ** (exponent - 32 + k - b)


def scaled_alike(size, workers, slots, bits=48, lanes=256):
    """The slices of a tensor that have one scale each, as docs/allreduce.md has them."""
    held = 32 * lanes // bits
    ahead = min(slots // 2, -(-size // held))
    each = max(1, -(-ahead // (1 + 4 * (lanes // workers))))
    begins = [at * held for at in (*range(0, ahead, each), *range(ahead, -(-size // held)))]
    return [slice(*ends) for ends in pairwise([*begins, size])]


@dataclass
class Slot:
    number: int
    lanes: np.ndarray
    code: int = 0
    seen: set = field(default_factory=set)


class ModelSwitch:
    """Takes a frame of a worker, and returns the frames that leave, each with its receiver."""

    def __init__(self, workers, slots):
        self.workers, self.size = workers, slots
        self.announced = slots
        self.heartbeats = 0
        self.restart()

    def restart(self):
        self.slots = {}
        self.newest = 0

    def take(self, worker, frame):
        header = unpack_header(frame)
        if header is None or header.session != SESSION or header.src_id != worker:
            return []
        number = header.round << 16 | header.block_id
        if header.kind is Kind.REDUCE:
            return self.add(worker, number, header, frame)
        if header.kind is Kind.REDUCED:
            assert header.resend
            return self.to_all(header, bytes(frame[BODY_AT:]))
        assert header.kind is Kind.REDUCING
        heartbeat = BarrierBody.unpack(frame, header.kind).heartbeats >> worker & 1
        self.heartbeats = self.heartbeats & ~(1 << worker) | heartbeat << worker
        return [(worker, self.waiting(number, resend=False))]

    def add(self, worker, number, header, frame):
        lanes = np.frombuffer(frame, dtype=">i4", offset=BODY_AT).astype(np.uint32)
        slot = self.slots.get(number % self.size)
        if slot is None or number > slot.number:
            slot = Slot(number, np.zeros_like(lanes))
            self.slots[number % self.size] = slot
            self.newest = max(self.newest, number)
        if number != slot.number or len(lanes) != len(slot.lanes):
            return self.not_yet(worker, number, header)
        fresh = worker not in slot.seen
        if fresh:
            slot.seen.add(worker)
            slot.lanes = slot.lanes + lanes
            slot.code = max(slot.code, header.feature_group)
        if len(slot.seen) < self.workers:
            return [] if fresh and not header.resend else self.not_yet(worker, number, header)
        fields = {"count": self.workers, "feature_group": slot.code, "resend": False}
        total = header._replace(kind=Kind.REDUCED, src_id=0, **fields)
        body = slot.lanes.astype(">u4").tobytes()
        return self.to_all(total, body) if fresh else [(worker, self.frame(worker, total, body))]

    def not_yet(self, worker, number, header):
        receivers = range(self.workers) if header.resend else [worker]
        return [(each, self.waiting(number, resend=header.resend)) for each in receivers]

    def waiting(self, number, *, resend):
        slot = self.slots.get(number % self.size)
        seen = slot.seen if slot is not None and slot.number == number else ()
        header = Header(
            kind=Kind.REDUCING,
            count=self.announced,
            resend=resend,
            round=number >> 16,
            block_id=number & 0xFFFF,
            session=SESSION,
        )
        body = BarrierBody(
            magnitude=self.newest >> 32,
            plan=PLAN,
            round=self.newest & 0xFFFFFFFF,
            workers=sum(1 << each for each in seen),
            heartbeats=self.heartbeats,
        )
        return self.frame(0, header, body.pack())

    def to_all(self, header, body):
        return [(each, self.frame(each, header, body)) for each in range(self.workers)]

    def frame(self, worker, header, body):
        return Addresses(SWITCH, station(worker)).frame(header.pack(body))


@dataclass
class Weather:
    """What a network does to frames.

    `loss`, `repeats`, `strays`: the shares of those that are lost, arrive twice, and arrive once
    more after up to a second. In seconds: `delay`, `jitter`, and `service`, which the switch takes
    for each frame.
    """

    loss: float = 0.0
    repeats: float = 0.0
    strays: float = 0.0
    delay: float = 0.0002
    jitter: float = 0.0
    service: float = 0.0


class Network:
    """Carries frames between links and a model switch."""

    def __init__(self, switch, weather=None, seed=0):
        self.switch, self.weather = switch, weather or Weather()
        self.clock = HandClock(1000.0)
        self.random = random.Random(seed)
        self.inboxes = [deque() for _ in range(switch.workers)]
        self.cut = set()
        self.lose = lambda up, worker, header: False  # true loses the frame
        self.events = []
        self.order = 0
        self.free_at = 0.0

    def link(self, worker):
        return ModelLink(self, worker)

    def send(self, worker, frame, *, up):
        if worker in self.cut or self.lose(up, worker, unpack_header(frame)):
            return
        weather, drawn = self.weather, self.random.random
        jitters = [weather.jitter] * (2 if drawn() < weather.repeats else 1)
        jitters += [1.0] if drawn() < weather.strays else []
        for jitter in jitters:
            if drawn() >= weather.loss:
                self.order += 1
                arrival = self.clock.seconds + weather.delay + drawn() * jitter
                if up and weather.service:
                    arrival = self.free_at = max(self.free_at, arrival) + weather.service
                heapq.heappush(self.events, (arrival, self.order, worker, frame, up))

    def deliver(self):
        while self.events and self.events[0][0] <= self.clock.seconds:
            _, _, worker, frame, up = heapq.heappop(self.events)
            if not up:
                self.inboxes[worker].append(frame)
                continue
            for receiver, answer in self.switch.take(worker, frame):
                self.send(receiver, answer, up=False)

    def advance(self, seconds):
        """Go on to the next event, at most that far."""
        until = self.clock.seconds + seconds
        if self.events:
            until = min(until, max(self.clock.seconds, self.events[0][0]))
        self.clock.seconds = until
        self.deliver()


def stream_of(link, worker, workers, plan_id=PLAN, **options):
    numbers = {"worker": worker, "workers": workers, "session": SESSION, "plan_id": plan_id}
    return ReduceStream(link, addresses_of(worker), **numbers, **options)


def started_streams(link_of, workers, **options):
    """Streams of workers that have agreed on the first number."""
    streams = [stream_of(link_of(worker), worker, workers, **options) for worker in range(workers)]
    first = max(stream.query().first for stream in streams)
    for stream in streams:
        stream.start(first)
    return streams


class ModelLink(Link):
    name = "model"
    traffic = Traffic(0, 0, 0, 0)

    def __init__(self, network, worker):
        self.network, self.worker = network, worker

    def send(self, frame):
        self.network.send(self.worker, bytes(frame), up=True)

    def receive(self, seconds):
        inbox = self.network.inboxes[self.worker]
        end = self.network.clock.seconds + seconds
        while not inbox and self.network.clock.seconds < end:
            self.network.advance(end - self.network.clock.seconds)
        return memoryview(inbox.popleft()) if inbox else None

    def close(self):
        pass
