# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""One fragment of one block: send the features, collect the sums.

The window bounds the features in flight: those sent beyond the last one that
the switch has acknowledged. The switch acknowledges a feature marked with
`echo` when it has been through all its slots, so the window follows the
switch's recirculation, not only its input.
"""

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.errors import ExchangeTimeoutError
from switchgnn.host.header import BODY_AT, FRAGMENT_BYTES, LANES, Header, Kind, unpack_header
from switchgnn.host.inbox import Inbox
from switchgnn.host.link import Link
from switchgnn.host.schedule import BlockSchedule

_BURST = 8


@dataclass(frozen=True)
class Pace:
    """Bounds on sending and waiting.

    Attributes:
        window: features in flight at most. BMv2 reads each port through a ring of about
            30 frames (libpcap in immediate mode) and loses what does not fit.
        retry: seconds without an answer after which a question is repeated.
        patience: seconds without any progress after which the worker gives up.
    """

    window: int = 16
    retry: float = 0.2
    patience: float = 20.0

    @property
    def echo_every(self) -> int:
        """The switch acknowledges every so many features: half a window."""
        return max(1, self.window // 2)


@dataclass
class Tally:
    """What a worker counted while exchanging.

    Attributes:
        features_sent, sums_received: packets that count.
        late: sums of an earlier round, block or fragment; ignored.
        repeated: sums that had arrived already; ignored.
        wrong: sums for nobody here, or with a wrong count; ignored.
        marked: packets with the ECN mark.
        echoes_repeated: features sent again because no acknowledgement came.
    """

    features_sent: int = 0
    sums_received: int = 0
    late: int = 0
    repeated: int = 0
    wrong: int = 0
    marked: int = 0
    echoes_repeated: int = 0


class BlockExchange:
    """Sends one fragment of a block and collects its sums."""

    def __init__(
        self,
        link: Link,
        inbox: Inbox,
        schedule: BlockSchedule,
        *,
        pace: Pace,
        tally: Tally,
        round_number: int,
    ) -> None:
        self._link = link
        self._inbox = inbox
        self._schedule = schedule
        self._pace = pace
        self._tally = tally
        self._round = round_number
        self._fragment = 0
        self._sent = 0
        self._acknowledged = 0
        self._missing: set[int] = set()
        self._staging = bytearray(FRAGMENT_BYTES * len(schedule.receive_vertex))
        self._deadline = 0.0

    def run(self, fragment: int, lanes: NDArray[np.int32]) -> NDArray[np.int32]:
        """Exchange one fragment.

        Args:
            fragment: the fragment's number, from 0.
            lanes: int32[S, 32], the fixed-point slices in send order.

        Returns:
            int32[Q, 32], one sum per awaited vertex.

        Raises:
            ExchangeTimeoutError: nothing arrived for ``Pace.patience`` seconds.
        """
        schedule = self._schedule
        self._fragment = fragment
        self._sent = self._acknowledged = 0
        self._missing = set(range(len(schedule.receive_vertex)))
        schedule.frames.fill(self._round, fragment, lanes)
        self._progress()
        for frame in self._inbox.take_kept():
            self._take(frame)
        while self._missing or self._acknowledged < len(schedule.frames.rows):
            self._send_burst()
            self._take_what_is_there()
        return np.frombuffer(self._staging, dtype=">i4").reshape(-1, LANES).astype(np.int32)

    def _send_burst(self) -> None:
        rows = self._schedule.frames.rows
        limit = min(len(rows), self._acknowledged + self._pace.window, self._sent + _BURST)
        for place in range(self._sent, limit):
            self._link.send(rows[place])
        self._tally.features_sent += limit - self._sent
        self._sent = limit

    def _take_what_is_there(self) -> None:
        rows = self._schedule.frames.rows
        may_send = self._sent < min(len(rows), self._acknowledged + self._pace.window)
        frame = self._inbox.receive(0.0 if may_send else self._pace.retry)
        if frame is None:
            if not may_send:
                self._nothing_came()
            return
        while frame is not None:
            self._take(frame)
            frame = self._inbox.receive(0.0)

    def _take(self, frame: memoryview) -> None:
        header = unpack_header(frame)
        if header is None:
            return
        if header.ecn:
            self._tally.marked += 1
        if header.kind is Kind.SUM:
            self._take_sum(header, frame)
        elif header.kind is Kind.ACK and self._is_current(header):
            place = self._schedule.send_place.get(header.src_id)
            if place is not None and place >= self._acknowledged:
                self._acknowledged = place + 1
                self._progress()

    def _take_sum(self, header: Header, frame: memoryview) -> None:
        if not self._is_current(header):
            self._tally.late += 1
            return
        place = self._schedule.receive_place.get(header.dst_id)
        if place is None or header.count != self._schedule.receive_count[place]:
            self._tally.wrong += 1
        elif place not in self._missing:
            self._tally.repeated += 1
        else:
            at = place * FRAGMENT_BYTES
            self._staging[at : at + FRAGMENT_BYTES] = frame[BODY_AT : BODY_AT + FRAGMENT_BYTES]
            self._missing.discard(place)
            self._tally.sums_received += 1
            self._progress()

    def _is_current(self, header: Header) -> bool:
        return (
            header.round == self._round
            and header.block_id == self._schedule.block_id
            and header.fragment == self._fragment
        )

    def _progress(self) -> None:
        self._deadline = time.monotonic() + self._pace.patience

    def _nothing_came(self) -> None:
        if time.monotonic() > self._deadline:
            raise ExchangeTimeoutError(self._complaint())
        if self._acknowledged < self._sent:
            self._repeat_echo()

    def _repeat_echo(self) -> None:
        # The switch counts a feature once, however often it comes, and answers each time.
        echoes = self._schedule.frames.echoes
        place = self._acknowledged + int(np.argmax(echoes[self._acknowledged : self._sent]))
        if echoes[place]:
            self._link.send(self._schedule.frames.rows[place])
            self._tally.echoes_repeated += 1

    def _complaint(self) -> str:
        where = f"Round {self._round}, block {self._schedule.block_id}, fragment {self._fragment}"
        vertices = [int(self._schedule.receive_vertex[place]) for place in sorted(self._missing)]
        unanswered = len(self._schedule.frames.rows) - self._acknowledged
        named = ", ".join(map(str, vertices[:10])) + (", …" if len(vertices) > 10 else "")
        missing = (
            f"{len(vertices)} sums are missing (vertices {named})"
            if vertices
            else (f"{unanswered} features were not acknowledged by the switch")
        )
        return (
            f"{where}: {missing} after {self._pace.patience:g} s without progress. "
            "A packet was lost, a worker is dead, or the switch was restarted; "
            "`switchgnn controller show` tells what the switch saw."
        )
