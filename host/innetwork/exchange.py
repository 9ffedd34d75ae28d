"""The exchange: features in, sums over remote neighbours out, in either direction."""

from collections.abc import Callable, Mapping

from switchgnn.base.array_types import Bools, Float32s
from switchgnn.base.clock import SYSTEM_CLOCK, Clock
from switchgnn.host.base.compression import NO_COMPRESSION, Compression, Savings, SkipMasks
from switchgnn.host.base.errors import FeatureError
from switchgnn.host.base.operations import Operation
from switchgnn.host.base.pace import Pace
from switchgnn.host.base.status import ExchangeStatus
from switchgnn.host.innetwork import fixed_point as fixed
from switchgnn.host.innetwork.barrier import Barrier, Following
from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.innetwork.errors import PlanMismatchError, RoundMismatchError
from switchgnn.host.innetwork.outgoing import Rounding, RowCache, Tensor, forget
from switchgnn.host.innetwork.receiver import SumReceiver
from switchgnn.host.innetwork.responder import Inbox, Notifier, Responder
from switchgnn.host.innetwork.round import OwnRows, RoundLayout, RoundParts, SumRound, Upcoming
from switchgnn.host.innetwork.schedule import block_schedules, empty_schedule
from switchgnn.host.innetwork.units import ShareListener, UnitExchange
from switchgnn.host.links import transport
from switchgnn.host.links.faults import FaultCounts, injected_faults
from switchgnn.host.wire import header
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.link import Link, Traffic
from switchgnn.planner import Direction, Manifest, WorkerPart

BlockListener = Callable[[int, int, int], None]


class InNetworkExchange(transport.Transport):
    """One worker's part in the neighbour aggregation of all workers: the transport `switch`.

    All workers of the plan call :meth:`aggregate` together, once per round and with the same
    direction.

    Args:
        manifest: the plan's manifest.
        part: this worker's part of the plan.
        link: an open link to the switch.
        addresses: this worker's addresses.
        session: the number that the install of the plan returned.
        pace: bounds on sending and waiting.
        on_block: called with (round, block, fragment) after each fragment.
        on_share: called during a fragment, with the completed share.
        clock: the clock of the link.
        incarnation: a number of this process, 32 bits; None: drawn at random.

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
        on_block: BlockListener | None = None,
        on_share: ShareListener | None = None,
        clock: Clock = SYSTEM_CLOCK,
        incarnation: int | None = None,
    ) -> None:
        if manifest.strawman != self._strawman:
            raise PlanMismatchError(
                f"The plan is {'' if manifest.strawman else 'not '}the strawman's, but worker "
                f"{part.worker} runs {'the strawman' if self._strawman else 'SwitchGNN'}: plan "
                "again for this transport."
            )
        pace = pace or Pace()
        self._endpoint = endpoint = Endpoint(
            part.worker, session, link, addresses, pace, clock=clock, incarnation=incarnation
        )
        self.counters = endpoint.counters
        self._rounds = self._blocks = 0
        self._exchanging = False
        self._begun: tuple[OwnRows, SumRound] | None = None
        self._manifest = manifest
        self._part = part
        self._link = link
        self._start_traffic = link.traffic
        self._round = 1
        self._on_block = on_block
        self._responder = Responder(endpoint, part.vertices)
        self._schedules = block_schedules(part, addresses, pace.group_size, session, manifest.rows)
        notifier = Notifier(endpoint, manifest, self._schedules)
        inbox = Inbox(endpoint, self._responder, notifier)
        self._nothing = empty_schedule(addresses, session)
        self._layout = RoundLayout(manifest)
        self._barrier = barrier = Barrier(
            endpoint, workers=manifest.workers, pools=manifest.pools, plan_id=manifest.number
        )
        self._units = UnitExchange(
            endpoint, inbox, barrier, manifest.pools, self._receiver, on_share
        )
        self.watch = self._units.watch
        self.epsilon = 0.0
        self.savings = Savings()
        self.compress(NO_COMPRESSION)

    def compress(self, compression: Compression) -> None:
        """Send rows in fewer bytes from the next exchange on, as all workers must.

        TransportError: this exchange has no compression.
        """
        if self._strawman:
            compression.refuse("strawman", "take switch, or leave out the options of compression")
        self._cached = compression.cache
        bits, fan_in = compression.bits, self._manifest.max_fan_in
        rounding = Rounding(compression, self._part.worker)
        layout, step_error = self._layout, rounding.step_error
        self._parts = RoundParts(
            endpoint=self._endpoint,
            responder=self._responder,
            layout=layout,
            schedules=self._schedules,
            nothing=self._nothing,
            upcoming=Upcoming(fixed.Foresight(fan_in, bits, step_error), layout),
            scales=fixed.Scales(self._part.worker, fan_in, bits, step_error),
            rounding=rounding,
            savings=self.savings,
            passed=self._passed,
        )
        self._endpoint.narrow = compression.active
        # Partial sums of replicas are for one sum each.
        self._endpoint.per_sum = compression.cache or self._manifest.replicated
        self._caches: dict[Tensor, RowCache] = {}
        self._skipped = SkipMasks()

    def leave_out(self, blocks: Mapping[Direction, frozenset[int]]) -> None:
        """Sum without some blocks from the next exchange on, as all workers must.

        The foreseen round has other blocks; all workers drop it, as a mispredicted one.
        """
        self._layout.left_out = blocks
        self._parts.upcoming.take()

    def skip(self, tensor_id: int, vertices: Bools | None) -> None:
        """Take rows of a tensor as unchanged; see ``Transport.skip``."""
        self._skipped.skip(tensor_id, vertices)

    def forget(self, tensor_id: int) -> None:
        """Drop all that is kept of a tensor, as all workers must between the same exchanges."""
        forget(self._caches, tensor_id)
        self._skipped.skip(tensor_id, None)
        self._parts.rounding.forget(tensor_id)

    def aggregate(
        self,
        rows: Float32s,
        direction: Direction = Direction.FORWARD,
        tensor_id: int = 0,
        operation: Operation = Operation.SUM,
    ) -> Float32s:
        """Combine the rows of remote neighbours; see ``Transport.aggregate``.

        Returns:
            float32[n, F]; sums are off by at most ``FixedPoint.error_bound()`` per element, with a
            cache also by ``epsilon`` times the size of each row that is added (``LeastChange``).

        Raises:
            FeatureError: wrong shape or type, NaN, infinity, or an overflow.
            MagnitudeError: another worker's features are so large that sums overflow, or that
                these would be rounded to zero.
            ExchangeTimeoutError: the switch or a worker does not answer.
            RoundMismatchError: the session has no rounds left.
            PlannerError: the plan was made without that direction.
            TransportError: this exchange has no other operation than sums.
        """
        return self.aggregate_fixed(rows, direction, tensor_id, operation).decode()

    def aggregate_fixed(
        self,
        features: Float32s,
        direction: Direction = Direction.FORWARD,
        tensor_id: int = 0,
        operation: Operation = Operation.SUM,
    ) -> fixed.FixedSums:
        """Sum in the integers of the switch; see ``InNetworkExchange.aggregate``.

        With a cache, they are the sums of the changes of all rounds.
        """
        transport.check_rows(features, len(self._part.vertices), self._part.worker)
        widest = self._manifest.lanes * header.most_fragments(operation)
        if features.shape[1] > widest:
            raise FeatureError(
                f"A row of {features.shape[1]:,} numbers is too wide: at most {widest:,} fit into "
                "the frames that a header can count."
            )
        if self._strawman:
            operation.refuse("The strawman")
        if self._round > header.LAST_ROUND:
            raise RoundMismatchError(
                f"All {header.LAST_ROUND:,} rounds of the session are used: restart all workers "
                "after `switchgnn controller install --new-session`."
            )
        own = fixed.largest_magnitude(features)
        own = 0 if operation.rule.words else own
        # Check locally first, so that the offending worker reports the error.
        self._parts.scales.check_own(direction, own)
        kind = fixed.ExchangeKind(direction, features.shape[1], operation)
        foreseen, early = self._parts.upcoming.take()
        lasting = self._cached and operation is Operation.SUM
        cache = self._caches.setdefault((tensor_id, kind), RowCache()) if lasting else None
        skipped = self._skipped.of(tensor_id, direction)
        rows = OwnRows(features, own, kind, tensor_id, cache, self.epsilon, skipped)
        scale = None
        if foreseen is not None and foreseen.kind == kind:
            # A lasting scale is chosen by the round's own features.
            scale = foreseen.fixed_point if cache is None else cache.fixed_point
        self._exchanging = True
        try:
            sums = None if scale is None else self._exchange(rows, scale, early)
            while sums is None:
                sums = self._exchange(rows)
            return sums
        finally:
            self._exchanging = False

    def _exchange(
        self,
        rows: OwnRows,
        scale: fixed.FixedPoint | None = None,
        early: frozenset[int] = frozenset(),
    ) -> fixed.FixedSums | None:
        current = SumRound(self._round, rows, self._parts, scale, early)
        self._begun = rows, current
        return self._ended(current, complete=self._units.run(current, rows.own))

    def resume(self) -> None:
        """Complete an exchange that a SwitchSilentError has interrupted, and drop its sums."""
        if self._begun is not None:
            rows, current = self._begun
            sums = self._ended(current, complete=self._units.resume(current))
            while sums is None:
                sums = self._exchange(rows)

    def _ended(self, current: SumRound, *, complete: bool) -> fixed.FixedSums | None:
        self._round, self._begun = self._round + 1, None
        if not complete:
            self.counters.void += 1
            return None
        self._rounds += 1
        return current.result()

    def _passed(self, round_number: int, unit: Following) -> None:
        self._blocks += 1
        if self._on_block is not None:
            self._on_block(round_number, unit.block, header.fragment_number(unit.fragment))

    def stop(self) -> None:
        """End an exchange in another thread; see ``Transport.stop``."""
        self._endpoint.stopped = True

    @property
    def stopped(self) -> bool:
        """Whether exchanges must end."""
        return self._endpoint.stopped

    @property
    def status(self) -> ExchangeStatus:
        """The current progress; safe to read from other threads."""
        return ExchangeStatus(
            self._rounds,
            self._blocks,
            self._endpoint.congestion.window,
            self._exchanging,
            self._endpoint.stall.seconds,
            self.counters,
        )

    @property
    def report(self) -> dict[str, int]:
        """The barriers and void rounds so far, and what was lost, late or marked."""
        names = ("barriers", "void", "recalls", "sums_recalled", "marked")
        counts = {name: getattr(self.counters, name) for name in names}
        return {**counts, "window_cuts": self._endpoint.congestion.cuts}

    @property
    def traffic(self) -> Traffic:
        """Frames and bytes of the exchange so far."""
        return transport.traffic_since(self._start_traffic, self._link.traffic)

    def injected(self) -> Mapping[str, FaultCounts]:
        """Return the faults on the link so far, by direction."""
        return injected_faults(self._link)

    def expected_traffic(self, width: int, direction: Direction = Direction.FORWARD) -> Traffic:
        """Return what one exchange of that width puts on the link when nothing is lost."""
        blocks = self._layout.blocks(fixed.ExchangeKind(direction, width))
        group_size = self._endpoint.pace.group_size
        return transport.expected_traffic(self._manifest, self._part, blocks, width, group_size)
