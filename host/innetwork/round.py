"""One round of an exchange: rows of this worker become frames, and sums of frames its sums."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from switchgnn.base.array_types import Bools, Float32s, Int32s
from switchgnn.host.base.compression import Savings
from switchgnn.host.base.operations import Operation
from switchgnn.host.innetwork import fixed_point as fixed
from switchgnn.host.innetwork import outgoing as sent
from switchgnn.host.innetwork.barrier import Following, opening
from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.innetwork.responder import Responder
from switchgnn.host.innetwork.schedule import BlockSchedule
from switchgnn.host.wire import header
from switchgnn.planner import Direction, Manifest


class RoundLayout:
    """The fragments and units of a plan's rounds; `left_out`: blocks whose sums others make."""

    def __init__(self, manifest: Manifest) -> None:
        self.rows, self.pools = manifest.rows, manifest.pools
        self.left_out: Mapping[Direction, frozenset[int]] = {}
        self._manifest = manifest

    def words(self, kind: fixed.ExchangeKind) -> tuple[int, ...]:
        """Return the words of the fragments of a row, in pool 0."""
        return header.fragment_words(
            kind.width, self._manifest.lanes, self.rows, operation=kind.operation
        )

    def blocks(self, kind: fixed.ExchangeKind) -> Sequence[int]:
        """Return the numbers of the blocks of an exchange; others than sums have all blocks."""
        numbers = self._manifest.direction(kind.direction).block_numbers
        out = self.left_out.get(kind.direction)
        if not out or kind.operation is not Operation.SUM:
            return numbers
        return [block for block in numbers if block not in out]

    def units(self, kind: fixed.ExchangeKind) -> list[Following]:
        """Return the units of an exchange, in order.

        Each pool has a unit, if only an empty one of a block after all others: no worker may open
        the next round while another one still waits for the opening of this round.
        """
        blocks, words = self.blocks(kind), self.words(kind)
        units = [(block, word) for word in words for block in blocks]
        behind = self._manifest.direction(kind.direction).block_numbers.stop
        units += [(behind, 0)] * (self.pools - len(units))
        return [
            Following(block, header.in_pool(word, index % self.pools))
            for index, (block, word) in enumerate(units)
        ]


class Upcoming:
    """The round that is predicted to come next, and the pools whose first features may be early."""

    def __init__(self, foresight: fixed.Foresight, layout: RoundLayout) -> None:
        self.foresight = foresight
        self._layout = layout
        self._foreseen: fixed.Foreseen | None = None
        self._early: frozenset[int] = frozenset()

    def take(self) -> tuple[fixed.Foreseen | None, frozenset[int]]:
        """Return the prediction for the round that begins, and the pools that may be early."""
        taken, self._foreseen = (self._foreseen, self._early), None
        return taken

    def after(self, round_number: int, pool: int) -> Following:
        """Return what follows the last unit of a round in a pool."""
        if self._foreseen is None:
            self._early, self._foreseen = frozenset(), self.foresight.next()
        # A void round needs another one after it.
        if self._foreseen is not None and round_number < header.LAST_ROUND - 1:
            kind = self._foreseen.kind
            if self._layout.blocks(kind):
                self._early |= {pool}
                return self._layout.units(kind)[pool]._replace(early=True)
        self._foreseen = None
        return opening(pool)


@dataclass(frozen=True, eq=False)
class RoundParts:
    """What the rounds of an exchange share; `schedules`: of all blocks, from 1, and of none."""

    endpoint: Endpoint
    responder: Responder
    layout: RoundLayout
    schedules: Sequence[BlockSchedule]
    nothing: BlockSchedule
    upcoming: Upcoming
    scales: fixed.Scales
    rounding: sent.Rounding
    savings: Savings
    # Called with the round and a unit when all workers are done with it.
    passed: Callable[[int, Following], None]


@dataclass(frozen=True, eq=False)
class OwnRows:
    """The arguments of one exchange.

    `values`: float32[n, F]; `own`: float32 bits of their largest magnitude. `epsilon` and
    `to_skip`, bool[n], are for a cache.
    """

    values: Float32s
    own: int
    kind: fixed.ExchangeKind
    tensor_id: int
    cache: sent.RowCache | None
    epsilon: float
    to_skip: Bools | None


class SumRound:
    """A worker's part in one round, whose steps `UnitExchange` calls.

    `units` has block and fragment of each unit, in order, in all pools. With `fixed_point`, a scale
    of early features, the first ones of the pools in `early` are sent while the round is opened.
    """

    def __init__(
        self,
        number: int,
        rows: OwnRows,
        parts: RoundParts,
        fixed_point: fixed.FixedPoint | None = None,
        early: frozenset[int] = frozenset(),
    ) -> None:
        self.number, self.early = number, early
        self.units = parts.layout.units(rows.kind)
        self._rows, self._parts = rows, parts
        self._blocks, self._words = parts.layout.blocks(rows.kind), parts.layout.words(rows.kind)
        count, each = len(rows.values), parts.layout.rows
        self._sums = {
            word: np.zeros((count, header.lanes_of(word) // each), np.int32) for word in self._words
        }
        self._fixed_point = fixed_point
        self._outgoing: sent.WholeRows | sent.ChangedRows | None = None
        self._largest = 0.0
        if fixed_point is not None:
            # The round is void for all where the features of one do not fit.
            if fixed.magnitude_from_bits(rows.own) > fixed_point.limit:
                self.early = frozenset()
            else:
                self._outgoing = self._make_outgoing(fixed_point)

    def opened(self, largest: fixed.Largest) -> bool:
        """Choose the scale by the round's largest feature; return whether early ones fit."""
        parts, kind, cache = self._parts, self._rows.kind, self._rows.cache
        self._largest = fixed.magnitude_from_bits(largest.bits)
        fixed_point = self._fixed_point
        if fixed_point is not None:
            if self._largest > fixed_point.limit:
                return False
            parts.endpoint.counters.early += 1
        else:
            if cache is not None and not cache.fits(self._largest):
                cache.begin_again()
            kept = fixed.own_words(kind.operation) if cache is None else cache.fixed_point
            lasting = cache is not None
            fixed_point = kept or parts.scales.choose(self.number, largest, lasting=lasting)
        parts.scales.check(self.number, kind.direction, largest, fixed_point)
        parts.upcoming.foresight.note(kind, largest.bits)
        if self._outgoing is None:
            self._fixed_point, self._outgoing = fixed_point, self._make_outgoing(fixed_point)
        return True

    def schedule(self, unit: Following) -> BlockSchedule:
        """Return what this worker sends and awaits in a unit."""
        parts = self._parts
        return parts.schedules[unit.block - 1] if unit.block in self._blocks else parts.nothing

    def payloads(self, unit: Following) -> Int32s:
        """Return int32[S, W], the content of a unit's frames."""
        if unit.block not in self._blocks or self._outgoing is None:
            return np.zeros((0, header.lanes_of(unit.fragment)), dtype=np.int32)
        return self._outgoing.payloads(self.schedule(unit), unit.fragment)

    def following(self, index: int) -> Following:
        """Return what follows a unit in its pool, in this round or in the next one."""
        pools = self._parts.layout.pools
        if index + pools < len(self.units):
            return self.units[index + pools]
        return self._parts.upcoming.after(self.number, index % pools)

    def take(self, unit: Following, sums: Int32s) -> None:
        """Take int32[Q, W], the sums of a unit."""
        if unit.block in self._blocks:
            rows = self.schedule(unit).receive_row
            so_far = self._sums[header.in_pool(unit.fragment, 0)].view(np.uint32)
            so_far[rows] = header.combine_of(unit.fragment)(so_far[rows], sums.view(np.uint32))

    def passed(self, unit: Following) -> None:
        """Note that all workers are done with a unit."""
        # A round without a block counts as one.
        if unit.block in self._blocks or unit == self.units[0]:
            self._parts.passed(self.number, unit)

    def result(self) -> fixed.FixedSums:
        """Return the sums of a completed round; with a cache it brought their changes."""
        cache, scale = self._rows.cache, self._fixed_point
        values = np.hstack(list(self._sums.values()))[:, : self._rows.kind.width]
        self._parts.rounding.sent()
        if scale is None:
            raise ValueError("The round was not opened.")
        if cache is not None and isinstance(self._outgoing, sent.ChangedRows):
            values = cache.keep(values, self._outgoing, scale, self._parts.savings)
            if not cache.fits(self._largest):
                cache.begin_again()
        scale = replace(scale, magnitude=max(scale.magnitude, self._largest))
        return fixed.FixedSums(values, scale)

    def _make_outgoing(self, fixed_point: fixed.FixedPoint) -> sent.WholeRows | sent.ChangedRows:
        rows, parts = self._rows, self._parts
        values = parts.rounding.encode(rows.values, fixed_point, (rows.tensor_id, rows.kind))
        outgoing: sent.WholeRows | sent.ChangedRows
        if rows.cache is None:
            outgoing = sent.WholeRows(
                sent.cut_into_fragments(values, self._words, parts.layout.rows)
            )
        else:
            outgoing = sent.changed_rows(
                *(values, rows.cache, parts.schedules, self._blocks, self._words),
                epsilon=rows.epsilon,
                to_skip=rows.to_skip,
            )
        units = {(unit.block, unit.fragment) for unit in self.units if unit.block in self._blocks}
        parts.responder.serve(self.number, units, outgoing.contribution)
        return outgoing
