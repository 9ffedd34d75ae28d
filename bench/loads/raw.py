"""Saturates a switch: one process sends on all ports as fast as acknowledgements arrive."""

import select
import time
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from bench.errors import BenchError
from bench.testbeds.testbed import Testbed
from switchgnn.host.base.operations import Operation
from switchgnn.host.innetwork.schedule import FeatureFrames
from switchgnn.host.wire.header import HEADER_AT, Kind, fragment_words, lanes_of
from switchgnn.host.wire.link import Link, open_link
from switchgnn.planner import WorkerPart

# BMv2 reads a port through a ring of about 30 frames and loses frames that do not fit.
WINDOW = 16
_SILENCE = 0.1
_PATIENCE = 20.0
_SRC_ID = slice(HEADER_AT, HEADER_AT + 4)
_KIND = HEADER_AT + 12
_GROUP = WINDOW // 2


@dataclass(frozen=True)
class Rate:
    """The result of a load."""

    # contributions, sums: their numbers per second, as the switch counted them
    contributions: float
    numbers: float  # what is added per second, a number for each lane of a contribution
    sums: float
    lost: float  # the share of the sums that did not become complete


class RawLoad:
    """Features of a plan's only block on all ports of a testbed. Use it as a context manager."""

    def __init__(self, testbed: Testbed, *, maxima: bool = False) -> None:
        if testbed.served.plan.manifest.blocks != 1:
            raise BenchError("The raw load needs a plan with one block.")
        self._testbed = testbed
        self._operation = Operation.MAX if maxima else Operation.SUM
        self._stack = ExitStack()
        self._round = 0

    def __enter__(self) -> "RawLoad":
        with self._stack:
            self._ports = [self._open(part) for part in self._testbed.served.plan.workers]
            self._stack = self._stack.pop_all()
        self._poll = select.epoll()
        self._by_fd = {port.link._socket.fileno(): port for port in self._ports}
        for descriptor in self._by_fd:
            self._poll.register(descriptor, select.EPOLLIN)
        return self

    def __exit__(self, *_: object) -> None:
        self._poll.close()
        self._stack.close()

    def run(self, seconds: float) -> Rate:
        """Load the switch for at least ``seconds`` seconds, in whole rounds."""
        before = self._testbed.counters()
        rounds, started = 0, time.perf_counter()
        while rounds == 0 or time.perf_counter() - started < seconds:
            self._one_round()
            rounds += 1
        elapsed = time.perf_counter() - started
        after = self._testbed.counters()
        sums = after["completed"] - before["completed"]
        wanted = rounds * len(self._testbed.served.switch.result_vertex)
        contributions = (after["contributions"] - before["contributions"]) / elapsed
        return Rate(
            contributions=contributions,
            numbers=contributions * self._testbed.served.plan.manifest.lanes,
            sums=sums / elapsed,
            lost=1 - sums / wanted,
        )

    def _open(self, part: WorkerPart) -> "_Port":
        link = self._stack.enter_context(open_link(self._testbed.fabric.worker_link(part.worker)))
        frames = FeatureFrames(
            self._testbed.addresses(part.worker),
            1,
            part.send_source,
            group_size=_GROUP,
            destinations=part.send_destination,
            session=self._testbed.session,
        )
        lanes = self._testbed.served.plan.manifest.lanes
        word, *_ = fragment_words(lanes, lanes, operation=self._operation)
        return _Port(link, frames, part, word)

    def _one_round(self) -> None:
        self._round += 1
        for port in self._ports:
            port.fill(self._round)
        heard = time.monotonic()
        while not all(port.finished for port in self._ports):
            for port in self._ports:
                port.send()
            ready = self._poll.poll(_SILENCE)
            for descriptor, _ in ready:
                self._by_fd[descriptor].take()
            now = time.monotonic()
            if ready:
                heard = now
            elif now - heard > _PATIENCE:
                raise BenchError(f"The switch has been silent for {_PATIENCE:g} s.")
            else:
                for port in self._ports:
                    port.ask_again()


class _Port:
    """One port: what was sent there and what the switch has acknowledged of it."""

    def __init__(self, link: Link, frames: FeatureFrames, part: WorkerPart, word: int) -> None:
        self.link, self._word, lanes = link, word, lanes_of(word)
        self._frames = frames
        self._index_of = {
            int(source).to_bytes(4, "big"): index for index, source in enumerate(part.send_source)
        }
        self._lanes = np.arange(frames.count * lanes, dtype=np.int32).reshape(-1, lanes)
        self._rows = frames.fill(1, self._word, self._lanes)
        self._sent = self._acknowledged = 0

    @property
    def finished(self) -> bool:
        """Whether the switch has acknowledged everything."""
        return self._acknowledged == self._rows.count

    def fill(self, round_number: int) -> None:
        """Prepare the next round."""
        self._rows = self._frames.fill(round_number, self._word, self._lanes)
        self._sent = self._acknowledged = 0

    def send(self) -> None:
        """Send what the window allows."""
        rows = self._rows
        limit = min(rows.count, self._acknowledged + WINDOW)
        if limit > self._sent:
            self.link.send_rows(rows, self._sent, limit - self._sent)
        self._sent = max(self._sent, limit)

    def take(self) -> None:
        """Take all frames that have arrived; only acknowledgements matter."""
        while (frame := self.link.receive(0.0)) is not None:
            if frame[_KIND] & 15 == Kind.ACK:
                index = self._index_of[bytes(frame[_SRC_ID])]
                self._acknowledged = max(self._acknowledged, index + 1)

    def ask_again(self) -> None:
        """Repeat the first feature whose acknowledgement is missing."""
        if self._acknowledged < self._sent:
            last = (self._acknowledged // _GROUP + 1) * _GROUP - 1
            self.link.send(self._rows.frame(min(last, self._rows.count - 1)))
