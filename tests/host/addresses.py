"""The addresses of the first worker and of its switch, and links without a network."""

import queue

from switchgnn.base.network import Station
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.header import unpack_header
from switchgnn.host.wire.link import Link, Traffic

SWITCH = Station("02:00:00:00:ff:fe", "10.0.255.254")
SESSION = 1


def station(worker):
    return Station(f"02:00:00:00:00:{worker + 1:02x}", f"10.0.0.{worker + 1}")


def addresses_of(worker):
    return Addresses(station(worker), SWITCH)


WORKER, ADDRESSES = station(0), addresses_of(0)


class Recorder:
    """A link that keeps what is sent."""

    name = "nowhere"

    def __init__(self):
        self.frames = []

    @property
    def sent(self):
        return [unpack_header(frame) for frame in self.frames]

    def send(self, frame):
        self.frames.append(bytes(frame))

    def send_rows(self, rows, first, count):
        for index in range(first, first + count):
            self.send(rows.frame(index))


class QueueLink(Link):
    """A link of one worker to a network in memory, which takes frames and fills an inbox."""

    def __init__(self, worker, take, inbox):
        self.worker, self.take, self.inbox = worker, take, inbox
        self.counts = [0, 0, 0, 0]

    @property
    def name(self):
        return f"model:{self.worker}"

    @property
    def traffic(self):
        return Traffic(*self.counts)

    def send(self, frame):
        self.counts[0] += 1
        self.counts[1] += len(frame)
        self.take(bytes(frame))

    def receive(self, seconds):
        try:
            frame = self.inbox.get(block=seconds > 0, timeout=max(seconds, 0) or None)
        except queue.Empty:
            return None
        self.counts[2] += 1
        self.counts[3] += len(frame)
        return memoryview(frame)

    def close(self):
        pass
