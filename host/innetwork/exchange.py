# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The exchange: features in, sums over remote neighbours out, in either direction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from switchgnn.clock import SYSTEM_CLOCK, Clock
from switchgnn.host.errors import FeatureError
from switchgnn.host.innetwork.barrier import NEXT_ROUND, Barrier, Largest
from switchgnn.host.innetwork.block import BlockExchange, ShareListener
from switchgnn.host.innetwork.endpoint import new_endpoint
from switchgnn.host.innetwork.errors import (
    MagnitudeError,
    PlanMismatchError,
    RoundMismatchError,
)
from switchgnn.host.innetwork.expected_traffic import expected_traffic
from switchgnn.host.innetwork.fixed_point import FixedPoint, largest_magnitude, magnitude_from_bits
from switchgnn.host.innetwork.inbox import Inbox
from switchgnn.host.innetwork.notice import Notifier, features_per_sum
from switchgnn.host.innetwork.responder import Fragments, Responder
from switchgnn.host.innetwork.schedule import block_schedules
from switchgnn.host.innetwork.sums.receiver import SumReceiver
from switchgnn.host.innetwork.sums.sieve import sieves
from switchgnn.host.pace import Pace
from switchgnn.host.waiting import Waiting
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.header import (
    LAST_FRAGMENT,
    LAST_ROUND,
    OPENING_BLOCK,
    fragment_number,
    fragment_words,
    lanes_of,
)
from switchgnn.host.wire.link import Link, Traffic
from switchgnn.planner.direction import Direction
from switchgnn.planner.plan.manifest import Manifest
from switchgnn.planner.plan.plan import WorkerPart

BlockListener = Callable[[int, int, int], None]


# In steps of the fixed point: what is smaller is rounded to zero.
_HALF_A_STEP = 0.5


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
        first_round: number of the first round; must grow within a session.
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
        self._peaks: dict[Direction, float] = {}
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
        blocks = self._manifest.direction(direction).block_numbers
        round_number = self._round
        own = largest_magnitude(features)
        # What would be refused of all is better said by its own worker.
        self._check_own(own)
        words = fragment_words(features.shape[1], self._manifest.lanes)
        steps = [*_steps(blocks, words), NEXT_ROUND]
        with self._waiting:
            largest = self._barrier.open_round(round_number, own, steps[0])
        fixed_point = self._fixed_point(largest)
        self._check_scale(direction, own, largest, fixed_point)
        lanes = _cut_into_fragments(fixed_point.encode(features), words)
        self._responder.serve(round_number, blocks, lanes)
        sums = {word: np.zeros_like(part) for word, part in lanes.items()}
        for (block, fragment), following in pairwise(steps):
            if block in blocks:
                schedule = self._schedules[block - 1]
                received = self._block.run(
                    schedule,
                    self._sieves[block - 1],
                    round_number,
                    fragment,
                    schedule.payloads(lanes[fragment]),
                )
                sums[fragment][schedule.receive_row] += received
            with self._waiting:
                self._barrier.close_block((round_number, block, fragment), following)
            self._blocks += 1
            if self._on_block is not None:
                self._on_block(round_number, block, fragment_number(fragment))
        self._round += 1
        self._rounds += 1
        width = features.shape[1]
        return FixedSums(np.hstack(list(sums.values()))[:, :width], fixed_point)

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

    def _check_own(self, own: int) -> None:
        """Refuse features of this worker whose sums would overflow."""
        try:
            FixedPoint.for_exchange(self._manifest.max_fan_in, magnitude_from_bits(own))
        except FeatureError as error:
            raise FeatureError(
                f"Worker {self._part.worker} has features of up to {magnitude_from_bits(own):g}. "
                f"{error}"
            ) from error

    def _fixed_point(self, largest: Largest) -> FixedPoint:
        """Choose the scale of the round."""
        fan_in, magnitude = self._manifest.max_fan_in, magnitude_from_bits(largest.bits)
        try:
            return FixedPoint.for_exchange(fan_in, magnitude)
        except FeatureError as error:
            raise MagnitudeError(
                f"Round {self._round}: worker {largest.worker} reports features of up to "
                f"{magnitude:g}, of which a sum of {fan_in} overflows float32; those of worker "
                f"{self._part.worker} do not. If that worker is not broken, scale its features "
                "down. If it reports less, the switch is broken."
            ) from error

    def _check_scale(
        self, direction: Direction, own: int, largest: Largest, fixed_point: FixedPoint
    ) -> None:
        """Refuse a scale that is made for another worker's features alone.

        Features may become small: gradients do. What counts are the largest of this worker so far.
        """
        self._peaks[direction] = max(self._peaks.get(direction, 0.0), magnitude_from_bits(own))
        magnitude = self._peaks[direction]
        # Where all features are zero, there is no scale.
        if magnitude and largest.bits and magnitude * fixed_point.scale < _HALF_A_STEP:
            raise MagnitudeError(
                f"Round {self._round}: worker {largest.worker} reports features of up to "
                f"{fixed_point.magnitude:g}. Beside them all features of worker "
                f"{self._part.worker}, of up to {magnitude:g}, would be rounded to zero. If that "
                "worker is not broken, scale its features down."
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


def _steps(blocks: range, fragments: Sequence[int]) -> list[tuple[int, int]]:
    """Return the barriers behind the opening of a round: (block, fragment) for each.

    Without blocks there is one in their place: nobody may open the next round while another still
    waits for the opening of this one.
    """
    steps = [(block, fragment) for block in blocks for fragment in fragments]
    return steps or [(OPENING_BLOCK + 1, 0)]


def plan_id(manifest: Manifest) -> int:
    """Return the 32 bits of the plan's digest that barrier packets carry."""
    return int(manifest.digest[:8], 16)


def _cut_into_fragments(values: NDArray[np.int32], words: Sequence[int]) -> Fragments:
    """Return the slice of each row in each fragment, by word; the last one is padded with zeros."""
    ends = np.cumsum([lanes_of(word) for word in words])
    padded = np.zeros((len(values), ends[-1]), dtype=np.int32)
    padded[:, : values.shape[1]] = values
    return dict(zip(words, np.split(padded, ends[:-1], axis=1), strict=True))
