# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The exchange: features in, sums over remote neighbours out, in either direction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.clock import SYSTEM_CLOCK, Clock
from switchgnn.host.congestion import Waiting
from switchgnn.host.errors import FeatureError
from switchgnn.host.innetwork.barrier import NEXT_ROUND, Barrier, Following, Largest
from switchgnn.host.innetwork.block import BlockExchange, ShareListener
from switchgnn.host.innetwork.endpoint import new_endpoint
from switchgnn.host.innetwork.errors import MagnitudeError, PlanMismatchError, RoundMismatchError
from switchgnn.host.innetwork.fixed_point import (
    ExchangeKind,
    FixedPoint,
    Foreseen,
    Foresight,
    largest_magnitude,
    magnitude_from_bits,
)
from switchgnn.host.innetwork.opening import Opening
from switchgnn.host.innetwork.receiver import SumReceiver, sieves
from switchgnn.host.innetwork.responder import (
    Fragments,
    Inbox,
    Notifier,
    Responder,
    features_per_sum,
)
from switchgnn.host.innetwork.schedule import block_schedules
from switchgnn.host.pace import Pace
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.header import (
    BARRIER_FRAME_BYTES,
    BODY_AT,
    LAST_FRAGMENT,
    LAST_ROUND,
    OPENING_BLOCK,
    feature_frame_bytes,
    fragment_number,
    fragment_words,
    lanes_of,
)
from switchgnn.host.wire.link import Link, Traffic
from switchgnn.planner.direction import Direction
from switchgnn.planner.lanes import fragment_lanes
from switchgnn.planner.plan.manifest import Manifest
from switchgnn.planner.plan.plan import WorkerPart


def expected_traffic(
    part: WorkerPart, blocks: range, width: int, group_size: int, *, lanes: int
) -> Traffic:
    """Count the frames of one exchange, from the plan alone.

    Up: the features and partial sums, and one DONE per barrier. Down: the sums, one ACK per group
    of features, and one ADVANCE per barrier. There is a barrier at the opening, and one behind each
    fragment of each block, or one behind the opening where there is no block.

    Returns frames and bytes of this worker, up and down.
    """
    widths = fragment_lanes(width, lanes)
    fragments = len(widths)
    bytes_of_row = sum(map(feature_frame_bytes, widths))
    inside = slice(blocks.start - 1, blocks.stop - 1)
    sent = np.diff(part.send_indptr)[inside]
    features = int(sent.sum())
    acks = fragments * int((-(-sent // group_size)).sum())
    sums = int(np.diff(part.receive_indptr)[inside].sum())
    barriers = 1 + max(fragments * len(blocks), 1)
    barrier_bytes = barriers * BARRIER_FRAME_BYTES
    return Traffic(
        frames_up=fragments * features + barriers,
        bytes_up=features * bytes_of_row + barrier_bytes,
        frames_down=fragments * sums + acks + barriers,
        bytes_down=sums * bytes_of_row + acks * BODY_AT + barrier_bytes,
    )


# In steps of the fixed point: what is smaller is rounded to zero.
_HALF_A_STEP = 0.5


class Scales:
    """Chooses scales, and refuses what this worker's features would not survive."""

    def __init__(self, worker: int, max_fan_in: int) -> None:
        self._worker = worker
        self._max_fan_in = max_fan_in
        self._peaks: dict[Direction, float] = {}

    def check_own(self, direction: Direction, own: int) -> None:
        """Take note of this worker's features, and refuse those whose sums would overflow.

        `own`: float32 bits of the largest magnitude.
        """
        magnitude = magnitude_from_bits(own)
        try:
            FixedPoint.for_exchange(self._max_fan_in, magnitude)
        except FeatureError as error:
            raise FeatureError(
                f"Worker {self._worker} has features of up to {magnitude:g}. {error}"
            ) from error
        self._peaks[direction] = max(self._peaks.get(direction, 0.0), magnitude)

    def choose(self, round_number: int, largest: Largest) -> FixedPoint:
        """Choose the scale of a round by its largest feature."""
        fan_in, magnitude = self._max_fan_in, magnitude_from_bits(largest.bits)
        try:
            return FixedPoint.for_exchange(fan_in, magnitude)
        except FeatureError as error:
            raise MagnitudeError(
                f"Round {round_number}: worker {largest.worker} reports features of up to "
                f"{magnitude:g}, of which a sum of {fan_in} overflows float32; those of worker "
                f"{self._worker} do not. If that worker is not broken, scale its features "
                "down. If it reports less, the switch is broken."
            ) from error

    def check(
        self, round_number: int, direction: Direction, largest: Largest, fixed_point: FixedPoint
    ) -> None:
        """Refuse a scale that is made for another worker's features alone.

        Features may become small: gradients do. What counts are the largest of this worker so far.
        """
        magnitude = self._peaks[direction]
        # Where all features are zero, there is no scale.
        if magnitude and largest.bits and magnitude * fixed_point.scale < _HALF_A_STEP:
            raise MagnitudeError(
                f"Round {round_number}: worker {largest.worker} reports features of up to "
                f"{magnitude_from_bits(largest.bits):g}. Beside them all features of worker "
                f"{self._worker}, of up to {magnitude:g}, would be rounded to zero. If that "
                "worker is not broken, scale its features down."
            )


BlockListener = Callable[[int, int, int], None]


@dataclass(frozen=True)
class Standing:
    """How far a worker has come, and how fast it may go.

    Attributes:
        rounds: exchanges that are complete.
        blocks: fragments of blocks that are complete, in all rounds.
        window: features that may be in flight.
        exchanging: whether an exchange is under way.
        waiting: seconds in which it had reported a block, or opened a round, and others had not.
    """

    rounds: int
    blocks: int
    window: float
    exchanging: bool = False
    waiting: float = 0.0


@dataclass(frozen=True)
class FixedSums:
    """Sums as the switch made them.

    Attributes:
        values: int32[n, F], one row per vertex of the worker; 0 without remote neighbours.
        fixed_point: the scale of this round.
    """

    values: NDArray[np.int32]
    fixed_point: FixedPoint

    def decode(self) -> NDArray[np.float32]:
        """Return the sums as float32[n, F]."""
        return self.fixed_point.decode(self.values)


@dataclass(frozen=True)
class _Work:
    """What one call exchanges.

    Attributes:
        features: float32[n, F].
        own: float32 bits of the largest magnitude of them.
        kind: direction and width.
        blocks: the numbers of the direction's blocks.
        steps: the barriers behind the opening of a round.
    """

    features: NDArray[np.float32]
    own: int
    kind: ExchangeKind
    blocks: range
    steps: list[Following]


@dataclass(frozen=True)
class _Started:
    """A round that all workers have opened.

    Attributes:
        fixed_point: its scale.
        lanes: the features as integers, by fragment.
        received: int32[Q, W], the sums of the first step, where they are here already.
    """

    fixed_point: FixedPoint
    lanes: Fragments
    received: NDArray[np.int32] | None = None


class InNetworkExchange:
    """One worker's part in the neighbour aggregation of all workers.

    All workers of the plan call :meth:`aggregate` together, once per round and with the
    same direction.

    Args:
        manifest: the plan's manifest.
        part: this worker's part of the plan.
        link: an open link to the switch.
        addresses: this worker's addresses.
        session: the number that the install of the plan returned.
        pace: bounds on sending and waiting.
        first_round: number of the first round; must grow within a session, which ends with the
            processes that have announced early features.
        on_block: called with (round, block, fragment) after each one.
        on_share: called meanwhile, with the share of it that is done.
        clock: what time it is where the link is.
        incarnation: of this process, 32 bits; None: it is drawn.

    Raises:
        PlanMismatchError: the plan is for the other kind of switch.
    """

    _strawman = False
    _receiver: type[SumReceiver] = SumReceiver

    def __init__(
        self,
        manifest: Manifest,
        part: WorkerPart,
        link: Link,
        addresses: Addresses,
        *,
        session: int,
        pace: Pace | None = None,
        first_round: int = 1,
        on_block: BlockListener | None = None,
        on_share: ShareListener | None = None,
        clock: Clock = SYSTEM_CLOCK,
        incarnation: int | None = None,
    ) -> None:
        if manifest.strawman != self._strawman:
            raise PlanMismatchError(
                f"The plan is {'' if manifest.strawman else 'not '}the strawman's, but worker "
                f"{part.worker} is started {'for' if self._strawman else 'without'} it: plan again "
                "for the transport that is wanted."
            )
        pace = pace or Pace()
        endpoint = new_endpoint(
            part.worker, session, link, addresses, pace, clock=clock, incarnation=incarnation
        )
        self.tally = endpoint.tally
        self._congestion = endpoint.congestion
        self._rounds = self._blocks = 0
        self._exchanging = False
        self._waiting = Waiting(clock)
        self._manifest = manifest
        self._part = part
        self._group_size = pace.group_size
        self._foresight = Foresight(manifest.max_fan_in)
        self._foreseen: Foreseen | None = None
        self._scales = Scales(part.worker, manifest.max_fan_in)
        self._round = first_round
        self._on_block = on_block
        self._responder = Responder(endpoint, part.vertices)
        self._schedules = block_schedules(part, addresses, pace.group_size, session)
        notifier = Notifier(endpoint, features_per_sum(manifest, self._schedules))
        inbox = Inbox(endpoint, self._responder, notifier)
        self._sieves = sieves(self._schedules)
        self._barrier = Barrier(
            endpoint,
            inbox,
            workers=manifest.workers,
            plan_id=plan_id(manifest),
        )
        self._block = BlockExchange(
            endpoint,
            inbox,
            barrier=self._barrier,
            receiver=self._receiver,
            on_share=on_share,
        )

    def aggregate(
        self, features: NDArray[np.float32], direction: Direction = Direction.FORWARD
    ) -> NDArray[np.float32]:
        """Sum the features of each vertex's remote in-neighbours, or out-neighbours.

        Args:
            features: float32[n, F], one row per vertex of this worker, in the order
                of ``WorkerPart.vertices``; any F from 1, the same for all workers.
            direction: FORWARD sums in-neighbours; BACKWARD out-neighbours, which the
                gradients of forward sums flow from. The same for all workers.

        Returns:
            float32[n, F]; off by at most ``FixedPoint.error_bound()`` per element.

        Raises:
            FeatureError: wrong shape or type, NaN, infinity, or an overflow.
            MagnitudeError: beside another worker's features these would vanish, or sums overflow.
            ExchangeTimeoutError: a packet was lost or a worker is gone.
            PlannerError: the plan was made without that direction.
        """
        return self.aggregate_fixed(features, direction).decode()

    def aggregate_fixed(
        self, features: NDArray[np.float32], direction: Direction = Direction.FORWARD
    ) -> FixedSums:
        """Return the integers that the switch summed; otherwise as :meth:`aggregate`."""
        self._check(features)
        if self._round > LAST_ROUND:
            raise RoundMismatchError(
                f"A session has {LAST_ROUND:,} rounds, and they are over: start all workers "
                "anew after `switchgnn controller install --new-session`."
            )
        self._exchanging = True
        try:
            return self._aggregate(features, direction)
        finally:
            self._exchanging = False

    def _aggregate(self, features: NDArray[np.float32], direction: Direction) -> FixedSums:
        own = largest_magnitude(features)
        # What would be refused of all is better said by its own worker.
        self._scales.check_own(direction, own)
        kind = ExchangeKind(direction, features.shape[1])
        foreseen, self._foreseen = self._foreseen, None
        work = _Work(features, own, kind, *self._steps(kind))
        started = None
        if foreseen is not None and foreseen.kind == kind:
            started = self._start_early(work, foreseen.fixed_point)
        return self._finish(work, started or self._start(work))

    def _start(self, work: "_Work") -> "_Started":
        """Open the round, and choose the scale by its largest features."""
        with self._waiting:
            largest = self._barrier.open_round(self._round, work.own, work.steps[0])
        fixed_point = self._scales.choose(self._round, largest)
        self._scales.check(self._round, work.kind.direction, largest, fixed_point)
        self._foresight.note(work.kind, largest.bits)
        return _Started(fixed_point, self._lanes(work, fixed_point))

    def _start_early(self, work: "_Work", fixed_point: FixedPoint) -> "_Started | None":
        """Open the round while its first features are sent, at a scale that was foreseen.

        Returns the first sums; None where some worker's features did not fit: nothing that was sent
        is. Returns used, and the next round is open for them.
        """
        first = work.steps[0]
        fits = magnitude_from_bits(work.own) <= fixed_point.magnitude
        if fits:
            opening = Opening(self._barrier, self._waiting, fixed_point.magnitude)
            lanes = self._lanes(work, fixed_point)
            opening.begin(self._round, work.own, first)
            received = self._run(first, lanes, opening)
            largest = opening.largest
        else:
            with self._waiting:
                largest = self._barrier.open_round(self._round, work.own, first)
        if largest is None or magnitude_from_bits(largest.bits) > fixed_point.magnitude:
            self._give_up(first)
            return None
        self.tally.early += 1
        self._scales.check(self._round, work.kind.direction, largest, fixed_point)
        self._foresight.note(work.kind, largest.bits)
        return _Started(fixed_point, lanes, received)

    def _give_up(self, first: Following) -> None:
        """Leave a round that is void: the next one opens as if nothing had been foreseen."""
        self.tally.void += 1
        with self._waiting:
            self._barrier.close_block((self._round, first.block, first.fragment), NEXT_ROUND)
        self._round += 1

    def _finish(self, work: "_Work", started: "_Started") -> FixedSums:
        """Exchange what is left of a round, and foresee the next one."""
        sums = {word: np.zeros_like(part) for word, part in started.lanes.items()}
        received = started.received
        for number, step in enumerate(work.steps):
            if received is None and step.block in work.blocks:
                received = self._run(step, started.lanes)
            if received is not None:
                sums[step.fragment][self._schedules[step.block - 1].receive_row] += received
            received = None
            last = number + 1 == len(work.steps)
            following = self._foresee() if last else work.steps[number + 1]
            self._close(step, following)
        self._round += 1
        self._rounds += 1
        width = work.kind.width
        return FixedSums(np.hstack(list(sums.values()))[:, :width], started.fixed_point)

    def _run(
        self, step: Following, lanes: Fragments, opening: Opening | None = None
    ) -> NDArray[np.int32]:
        schedule = self._schedules[step.block - 1]
        payloads = schedule.payloads(lanes[step.fragment])
        sieve = self._sieves[step.block - 1]
        return self._block.run(
            schedule, sieve, self._round, step.fragment, payloads, opening=opening
        )

    def _close(self, step: Following, following: Following) -> None:
        with self._waiting:
            self._barrier.close_block((self._round, step.block, step.fragment), following)
        self._blocks += 1
        if self._on_block is not None:
            self._on_block(self._round, step.block, fragment_number(step.fragment))

    def _foresee(self) -> Following:
        """Return what comes behind the round: its successor's first block, where that is known."""
        self._foreseen = self._foresight.next()
        # One that turns out to be void needs another round behind it.
        if self._foreseen is None or self._round >= LAST_ROUND - 1:
            self._foreseen = None
            return NEXT_ROUND
        blocks, steps = self._steps(self._foreseen.kind)
        if not blocks:
            self._foreseen = None
            return NEXT_ROUND
        return steps[0]._replace(early=True)

    def _steps(self, kind: ExchangeKind) -> "tuple[range, list[Following]]":
        """Return the blocks of an exchange, and its barriers behind the opening.

        Without blocks there is one in their place: nobody may open the next round while another
        still waits for the opening of this one.
        """
        blocks = self._manifest.direction(kind.direction).block_numbers
        words = fragment_words(kind.width, self._manifest.lanes)
        steps = [Following(block, word) for block in blocks for word in words]
        return blocks, steps or [Following(OPENING_BLOCK + 1, 0)]

    def _lanes(self, work: "_Work", fixed_point: FixedPoint) -> Fragments:
        """Return the features as integers, by fragment, and answer for them from now on."""
        words = fragment_words(work.kind.width, self._manifest.lanes)
        lanes = _cut_into_fragments(fixed_point.encode(work.features), words)
        self._responder.serve(self._round, work.blocks, lanes)
        return lanes

    @property
    def standing(self) -> Standing:
        """How far it is now; other threads may ask, too."""
        return Standing(
            self._rounds,
            self._blocks,
            self._congestion.window,
            self._exchanging,
            self._waiting.seconds,
        )

    def expected_traffic(self, width: int, direction: Direction = Direction.FORWARD) -> Traffic:
        """Return what one exchange of that width puts on the link when nothing is lost."""
        blocks = self._manifest.direction(direction).block_numbers
        return expected_traffic(
            self._part, blocks, width, self._group_size, lanes=self._manifest.lanes
        )

    def _check(self, features: NDArray[np.float32]) -> None:
        rows = len(self._part.vertices)
        if features.ndim != 2 or features.shape[0] != rows or features.shape[1] < 1:
            raise FeatureError(
                f"Worker {self._part.worker} holds {rows} vertices: features must have the shape "
                f"({rows}, F) with F from 1, not {features.shape}."
            )
        if features.dtype != np.float32:
            raise FeatureError(f"Features must be float32, not {features.dtype}.")
        widest = self._manifest.lanes * (LAST_FRAGMENT + 1)
        if features.shape[1] > widest:
            raise FeatureError(
                f"A row of {features.shape[1]:,} numbers is too wide: a header counts the frames "
                f"of at most {widest:,}."
            )


def plan_id(manifest: Manifest) -> int:
    """Return the 32 bits of the plan's digest that barrier packets carry."""
    return int(manifest.digest[:8], 16)


def _cut_into_fragments(values: NDArray[np.int32], words: Sequence[int]) -> Fragments:
    """Return the slice of each row in each fragment, by word; the last one is padded with zeros."""
    ends = np.cumsum([lanes_of(word) for word in words])
    padded = np.zeros((len(values), ends[-1]), dtype=np.int32)
    padded[:, : values.shape[1]] = values
    return dict(zip(words, np.split(padded, ends[:-1], axis=1), strict=True))
