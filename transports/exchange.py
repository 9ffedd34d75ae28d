# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""One worker's exchange with the others, round after round."""

import time

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.congestion import Congestion
from switchgnn.host.errors import LinkError
from switchgnn.host.header import Header, Kind, fragments_of
from switchgnn.host.link import Link, Traffic
from switchgnn.host.pace import Pace
from switchgnn.host.round_trip import RoundTrip
from switchgnn.transports.arrivals import Arrivals
from switchgnn.transports.data_frames import (
    data_frames,
    join_fragments,
    send_order,
)
from switchgnn.transports.errors import SilentWorkerError
from switchgnn.transports.outbox import Outbox, asking_frames
from switchgnn.transports.tally import HostTally
from switchgnn.transports.wire import (
    CONTROL_FRAME_BYTES,
    DATA_FRAME_BYTES,
    Envelopes,
    Packet,
    Station,
    unpack,
)

# How long a worker that leaves answers those that may have missed its last acknowledgement.
_LINGER = 2.0
_AT_ONCE = 16


class HostExchange:
    """Sends rows to other workers and collects theirs.

    Args:
        worker: its number.
        stations: where the workers are.
        link: an open link to the switch, for ``wire.PROTOCOL``.
        pace: bounds on sending and waiting.
        peers: the workers with which rows are exchanged.
        one_way: those of them that only send to us, or only receive.
        session: what DONE carries; the same for all workers.
        first_round: number of the first round; must grow on the same links.
    """

    def __init__(
        self,
        worker: int,
        stations: tuple[Station, ...],
        link: Link,
        *,
        pace: Pace,
        peers: frozenset[int],
        one_way: frozenset[int],
        session: int,
        first_round: int,
    ) -> None:
        self.tally = HostTally()
        self._worker = worker
        self._link = link
        self._pace = pace
        self._peers = peers
        self._session = session
        self._round = first_round - 1
        self._finished = first_round - 1
        self._envelopes = Envelopes(worker, stations)
        self._round_trip = RoundTrip()
        self._congestion = Congestion(pace, self._round_trip)
        self._gone: dict[int, int] = {}
        self._closing = False
        self._heard: dict[int, float] = {}
        self._arrivals = Arrivals(
            link, self._envelopes, one_way=one_way, round_number=self._round, tally=self.tally
        )

    def run(
        self,
        rows: NDArray[np.float32],
        counts: NDArray[np.int64],
        out_indptr: NDArray[np.int64],
        in_indptr: NDArray[np.int64],
        mark: int,
    ) -> NDArray[np.float32]:
        """Exchange one round.

        Args:
            rows: float32[S, F], what is sent, receiver by receiver.
            counts: int64[S], how many rows of vertices each of them adds up.
            out_indptr: int64[W + 1], the rows for each worker.
            in_indptr: int64[W + 1], the rows that each worker sends.
            mark: 32 bits in which all workers must agree.

        Returns:
            float32[R, F], sender by sender.

        Raises:
            SilentWorkerError: nothing new for ``Pace.patience`` seconds, or a worker left.
            LinkError: the link is gone.
        """
        self._round += 1
        width = rows.shape[1]
        order = send_order(self._worker, out_indptr, fragments_of(width))
        asking = asking_frames(order, self._pace)
        frames = data_frames(
            order,
            rows,
            counts,
            worker=self._worker,
            envelopes=self._envelopes,
            round_number=self._round,
            mark=mark,
            asking=asking,
        )
        outbox = Outbox(
            self._link,
            frames,
            order,
            asking,
            self._envelopes,
            round_number=self._round,
            mark=mark,
            congestion=self._congestion,
            round_trip=self._round_trip,
            tally=self.tally,
        )
        self._arrivals.open_round(self._round, mark, np.diff(in_indptr) * fragments_of(width))
        self._drive(outbox)
        self._finished = self._round
        return join_fragments(self._arrivals.payloads, int(in_indptr[-1]), width)

    def expected_traffic(
        self, out_indptr: NDArray[np.int64], in_indptr: NDArray[np.int64], fragments: int
    ) -> Traffic:
        """Count the frames of one round without losses: rows, and what acknowledges them.

        Args:
            out_indptr: int64[W + 1], the rows for each worker.
            in_indptr: int64[W + 1], the rows that each worker sends.
            fragments: frames per row.
        """
        sent, acks_down = self._frames_and_acks(out_indptr, fragments)
        awaited, acks_up = self._frames_and_acks(in_indptr, fragments)
        return Traffic(
            frames_up=sent + acks_up,
            bytes_up=sent * DATA_FRAME_BYTES + acks_up * CONTROL_FRAME_BYTES,
            frames_down=awaited + acks_down,
            bytes_down=awaited * DATA_FRAME_BYTES + acks_down * CONTROL_FRAME_BYTES,
        )

    def _frames_and_acks(self, indptr: NDArray[np.int64], fragments: int) -> tuple[int, int]:
        asking = asking_frames(send_order(self._worker, indptr, fragments), self._pace)
        return len(asking), int(asking.sum())

    def close(self) -> None:
        """Tell the others that nothing is missing here, and wait for as much from them.

        Whoever misses an acknowledgement asks again meanwhile; after two seconds at most
        this worker is gone.
        """
        if self._closing:
            return
        self._closing = True
        deadline = time.monotonic() + _LINGER
        try:
            for peer in sorted(self._peers):
                self._say_farewell(peer)
            attempts = 0
            while self._peers - self._gone.keys() and time.monotonic() < deadline:
                again = time.monotonic() + self._round_trip.backed_off(attempts)
                self._linger(min(again, deadline))
                for peer in sorted(self._peers - self._gone.keys()):
                    self._say_farewell(peer, echo=True)
                attempts += 1
        except LinkError:
            # Nobody can be told any more.
            return

    def _drive(self, outbox: Outbox) -> None:
        now = time.monotonic()
        deadline = now + self._pace.patience
        while not (outbox.done and self._arrivals.done):
            now = time.monotonic()
            more = outbox.send_some(now)
            frame = self._link.receive(0.0 if more else self._wait(outbox, now, deadline))
            now = time.monotonic()
            budget = _AT_ONCE
            while frame is not None:
                if self._take(frame, outbox, now):
                    deadline = now + self._pace.patience
                budget -= 1
                frame = self._link.receive(0.0) if budget else None
            self._check_patience(outbox, now, deadline)
            outbox.ask_about_what_is_late(now)

    def _wait(self, outbox: Outbox, now: float, deadline: float) -> float:
        left = max(0.001, deadline - now)
        return left if outbox.done else min(left, max(0.001, outbox.next_timer(now)))

    def _take(self, frame: memoryview, outbox: Outbox | None, now: float) -> bool:
        """Hand a frame on; tell whether it is progress."""
        packet = unpack(frame, self._worker)
        if packet is None or packet.sender not in self._peers:
            self.tally.malformed += 1
            return False
        self._heard[packet.sender] = now
        if packet.kind is Kind.DONE:
            return self._take_farewell(packet, outbox)
        if packet.kind is Kind.ACK:
            if outbox is None or packet.round != self._round:
                return False
            return outbox.take_ack(packet, now)
        return self._arrivals.take(packet)

    def _take_farewell(self, packet: Packet, outbox: Outbox | None) -> bool:
        if packet.tag != self._session:
            self.tally.foreign += 1
            return False
        self._gone[packet.sender] = packet.round
        if packet.echo and self._closing:
            self._say_farewell(packet.sender)
        if outbox is None or packet.round < self._round:
            return False
        return outbox.take_farewell(packet.sender)

    def _linger(self, until: float) -> None:
        """Answer the others until all have taken leave, or until then."""
        while self._peers - self._gone.keys() and (left := until - time.monotonic()) > 0:
            frame = self._link.receive(left)
            if frame is not None:
                self._take(frame, None, time.monotonic())

    def _say_farewell(self, peer: int, *, echo: bool = False) -> None:
        header = Header(
            kind=Kind.DONE,
            is_ack=True,
            echo=echo,
            src_id=self._worker,
            dst_id=self._session,
            round=self._finished,
        )
        self._link.send(self._envelopes.control(peer, header))
        self.tally.farewells += 1

    def _check_patience(self, outbox: Outbox, now: float, deadline: float) -> None:
        if now <= deadline and all(last >= self._round for last in self._gone.values()):
            return
        owing, deaf = self._arrivals.waiting_for, outbox.waiting_for
        left = sorted(
            peer for peer, last in self._gone.items() if last < self._round and peer in owing | deaf
        )
        if left:
            raise SilentWorkerError(
                f"Round {self._round}: {_workers(left)} left after round {self._gone[left[0]]}."
            )
        if now <= deadline:
            return
        raise SilentWorkerError(self._complaint(owing, deaf, now))

    def _complaint(self, owing: set[int], deaf: set[int], now: float) -> str:
        long_ago = now - self._pace.patience
        # Who owes rows may itself wait for somebody; who was asked and does not answer is gone.
        silent = sorted(
            peer for peer in deaf or owing if self._heard.get(peer, float("-inf")) <= long_ago
        )
        parts = []
        if owing:
            parts.append(f"rows of {_workers(sorted(owing))} are missing")
        if deaf:
            parts.append(f"{_workers(sorted(deaf))} did not acknowledge theirs")
        told = f"Nothing was heard of {_workers(silent)}." if silent else "All of them answer."
        if self.tally.foreign:
            told += (
                " Frames of another schedule came: do all workers have the same graph, "
                "partition, sampling, epoch and direction?"
            )
        return (
            f"Round {self._round}: {' and '.join(parts)} after {self._pace.patience:g} s "
            f"without progress. {told}"
        )


def _workers(numbers: list[int]) -> str:
    return f"worker{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
