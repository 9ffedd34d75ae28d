# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""One fragment of one block: send the features, collect the sums."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.innetwork.barrier import Barrier
from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.innetwork.errors import ExchangeTimeoutError
from switchgnn.host.innetwork.inbox import Inbox, Packet
from switchgnn.host.innetwork.opening import Opening
from switchgnn.host.innetwork.schedule import BlockSchedule
from switchgnn.host.innetwork.sender import FeatureSender
from switchgnn.host.innetwork.sums.fetched import FetchedFeatures
from switchgnn.host.innetwork.sums.receiver import SumReceiver
from switchgnn.host.innetwork.sums.sieve import sift
from switchgnn.host.wire.batches import FrameBatch
from switchgnn.host.wire.header import Kind, fragment_number
from switchgnn.host.wire.native.sums import SumSieve

_NAMED_AT_MOST = 10
# Called with the share of the fragment that is done, between 0 and 1.
ShareListener = Callable[[float], None]


@dataclass(frozen=True)
class _Fragment:
    """A fragment of a block that is under way."""

    place: tuple[int, int, int]
    sender: FeatureSender
    receiver: SumReceiver
    sieve: SumSieve | None
    opening: Opening | None = None

    @property
    def open(self) -> bool:
        """Whether all workers are in the round."""
        return self.opening is None or self.opening.done

    @property
    def done(self) -> bool:
        """Whether there is nothing left to do, or no use in it."""
        if self.opening is not None and self.opening.void:
            return True
        return self.sender.done and self.receiver.done and self.open


class BlockExchange:
    """Exchanges the fragments of blocks, one at a time.

    Args:
        endpoint: this worker.
        inbox: what comes for it.
        barrier: its last `done` is repeated, once per beat: others see that this worker is alive,
            a switch that was restarted may have forgotten it, and one that was installed anew
            says so in its answer.
        receiver: makes the sums of one fragment.
        on_share: called once per beat.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        inbox: Inbox,
        *,
        barrier: Barrier,
        receiver: type[SumReceiver] = SumReceiver,
        on_share: ShareListener | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._inbox = inbox
        self._pace = endpoint.pace
        self._clock = endpoint.clock
        self._tally = endpoint.tally
        self._barrier = barrier
        self._receiver = receiver
        self._fetched = FetchedFeatures()
        self._on_share = on_share

    def run(
        self,
        schedule: BlockSchedule,
        sieve: SumSieve | None,
        round_number: int,
        fragment: int,
        lanes: NDArray[np.int32],
        *,
        opening: Opening | None = None,
    ) -> NDArray[np.int32]:
        """Exchange one fragment of one block.

        Args:
            schedule: the block.
            sieve: takes the sums of the block that are plainly right; None: nobody does.
            round_number: the round, from 1.
            fragment: the fragment's word.
            lanes: int32[S, W], the fixed-point slices in send order.
            opening: of the round, where that goes on meanwhile; nothing is asked for before it is
                done, as others may still compute.

        Returns:
            int32[Q, W], one sum per awaited vertex; of no use if the round turned out to be void.

        Raises:
            ExchangeTimeoutError: nothing arrived for ``Pace.patience`` seconds.
        """
        place = (round_number, schedule.block_id, fragment)
        sender = FeatureSender(self._endpoint, schedule.frames.fill(round_number, fragment, lanes))
        receiver = self._receiver(
            self._endpoint,
            schedule,
            place=place,
            began=self._clock.now(),
            fetched=self._fetched.of(round_number, fragment),
        )
        if sieve is not None:
            sieve.open(self._endpoint.session, place, receiver.awaited, receiver.payloads)
        self._drive(_Fragment(place, sender, receiver, sieve, opening))
        return receiver.sums()

    def _drive(self, under_way: _Fragment) -> None:
        sender, receiver = under_way.sender, under_way.receiver
        now = self._clock.now()
        deadline, beat_at = now + self._pace.patience, now + self._beat
        for kept in self._inbox.take_kept():
            self._take(under_way, kept, now)
        while not under_way.done:
            now = self._clock.now()
            more = sender.send_some(now)
            batch = self._inbox.receive_batch(0.0 if more else self._wait(under_way, now))
            now = self._clock.now()
            news = batch is not None and self._take_batch(under_way, batch, now)
            if news or not under_way.open:
                deadline = now + self._pace.patience
            if now > deadline:
                raise ExchangeTimeoutError(self._complaint(under_way))
            sender.repeat_what_is_late(now)
            if not under_way.open:
                self._tend(under_way, now)
                continue
            asked = sender.done and receiver.ask_for_what_is_late(now)
            if asked or now > beat_at:
                self._barrier.repeat_last()
                beat_at = now + self._beat
                if self._on_share is not None:
                    self._on_share((sender.share + receiver.share) / 2)

    def _tend(self, under_way: _Fragment, now: float) -> None:
        """Go on with the opening of the round."""
        opening, sender, receiver = under_way.opening, under_way.sender, under_way.receiver
        if opening is not None:
            opening.tend(idle=sender.done)
            if opening.done:
                # What the others have kept it waiting for says nothing of how long the block takes.
                receiver.begin_again(now)

    @property
    def _beat(self) -> float:
        """Seconds between two `done`s, of which others must hear enough on bad links."""
        return min(self._pace.beat, self._endpoint.round_trip.longest())

    def _wait(self, under_way: _Fragment, now: float) -> float:
        timer, sender, opening = self._beat, under_way.sender, under_way.opening
        if not sender.done:
            timer = min(timer, sender.next_timer(now))
        elif under_way.open:
            timer = min(timer, under_way.receiver.next_timer(now))
        if opening is not None and not opening.done:
            timer = min(timer, opening.next_timer(now))
        return max(0.001, min(timer, self._endpoint.congestion.wait() or timer))

    def _take_batch(self, under_way: _Fragment, batch: FrameBatch, now: float) -> bool:
        """Hand on what has come; tell whether there is progress."""
        sifted = sift(under_way.sieve, batch)
        news = under_way.receiver.took(sifted.taken, now)
        for group, count in sifted.acknowledged:
            self._tally.heard += 1
            news |= under_way.sender.take_ack(group, count, now)
        for place in sifted.left:
            packet = self._inbox.open(batch.frame(place))
            if packet is not None:
                news |= self._take(under_way, packet, now)
        return news

    def _take(self, under_way: _Fragment, packet: Packet, now: float) -> bool:
        """Hand a packet on; tell whether it is progress."""
        sender, receiver = under_way.sender, under_way.receiver
        header, frame = packet
        answer = header.kind in (Kind.WAITING, Kind.ADVANCE)
        awaited = answer and self._barrier.heed(header, frame)
        if awaited or (header.round, header.block_id, header.fragment) != under_way.place:
            self._tally.late += not awaited
            return False
        if header.ecn and header.kind in (Kind.SUM, Kind.FEATURE):
            receiver.note_mark()
        if header.kind is Kind.SUM:
            return receiver.take_sum(header, frame, now)
        if header.kind is Kind.FEATURE:
            take = receiver.take_feature if header.resend else receiver.take_overflow
            return take(header, frame, now)
        if header.kind is Kind.ACK:
            self._tally.heard += 1
            return sender.take_ack(header.feature_group, header.count, now)
        if header.kind is Kind.MISSING:
            self._tally.heard += 1
            return receiver.take_missing(header, now)
        self._tally.ignored += 1
        return False

    def _complaint(self, under_way: _Fragment) -> str:
        sender, receiver = under_way.sender, under_way.receiver
        round_number, block, fragment = under_way.place
        where = f"Round {round_number}, block {block}, fragment {fragment_number(fragment)}"
        after = f"after {self._pace.patience:g} s without progress"
        if not sender.done:
            return (
                f"{where}: the switch on {self._endpoint.link.name} has not acknowledged "
                f"{sender.unconfirmed} features {after}. Is it running, with the plan installed "
                "(`switchgnn controller show`)?"
            )
        vertices = receiver.missing_vertices
        named = ", ".join(map(str, vertices[:_NAMED_AT_MOST]))
        more = ", …" if len(vertices) > _NAMED_AT_MOST else ""
        blame = self._blame(receiver.silent_workers)
        return (
            f"{where}: {len(vertices)} sums are missing (vertices {named}{more}) {after}. {blame}"
        )

    def _blame(self, silent: list[int]) -> str:
        if behind := self._barrier.left_behind:
            # Who waits there, too, cannot answer before that.
            return (
                f"The switch, which was restarted, waits at the barrier before it for "
                f"{_named(behind)}."
            )
        if silent:
            return f"{_named(silent).capitalize()} did not answer."
        return "The switch did not answer."


def _named(workers: list[int]) -> str:
    return f"worker{'s' if len(workers) > 1 else ''} {', '.join(map(str, workers))}"
