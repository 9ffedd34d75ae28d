"""Bytes of a round in which some rows have not changed, of two methods to leave those out.

Either an unchanged row is a frame without a body, which counts as a contribution of zeros, and so
is a sum of such rows. Or the workers agree first on the rows that have changed: each row is a bit,
and the bits are added up in an all-reduce. Unchanged rows are then not sent at all; of a sum in
which only some rows have changed, one frame without a body stands for the others, so that its slot
is completed.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.links.transport import expected_traffic
from switchgnn.host.wire.header import BARRIER_FRAME_BYTES, BODY_AT, feature_frame_bytes
from switchgnn.planner.base.direction import Direction
from switchgnn.planner.base.lanes import LANES, fragment_lanes
from switchgnn.planner.costs.flow import SlotNumbers, entries_of
from switchgnn.planner.plan.plan import Plan

_BITS_OF_LANE = 32


@dataclass(frozen=True)
class RoundBytes:
    """The bytes of one round on all links, both ways."""

    plain: int  # all rows are sent
    bodiless: int  # an unchanged row is a frame without a body
    agreed: int  # workers agree first on the rows that are sent


class RoundOfPlan:
    """A round of one direction of a plan, without losses.

    Args:
        plan: of a switch whose neighbours are the workers.
        direction: which sums.
        width: the numbers of a row.
        group_size: how many features one acknowledgement is for.

    Attributes:
        rows: the number of rows that may change, of vertices or partial sums.
    """

    def __init__(self, plan: Plan, direction: Direction, width: int, group_size: int) -> None:
        switch, entries = plan.switch, entries_of(plan, direction)
        entry, bank = np.nonzero(switch.entry_expected[entries])
        block, source = switch.entry_block[entries][entry], switch.entry_source[entries][entry]
        slots = SlotNumbers(plan, direction)
        # A vertex that is sent in several blocks has a frame in each of them.
        keys = block.astype(np.int64) << 32 | source
        frames, self._frame = np.unique(keys, return_inverse=True)
        _, self._slot = np.unique(
            slots.of(block, bank, switch.entry_slot[entries][entry, bank]), return_inverse=True
        )
        sources, self._row = np.unique(frames & 0xFFFF_FFFF, return_inverse=True)
        self.rows = len(sources)
        index = np.searchsorted(switch.source_vertex, sources)
        # The group of acknowledgements of a frame: those of a worker in a block.
        self._group = (frames >> 32) * len(plan.workers) + switch.source_worker[index][self._row]
        self._workers, self._group_size = len(plan.workers), group_size
        widths = fragment_lanes(width, plan.manifest.lanes)
        self._fragments = len(widths)
        self._whole = sum(map(feature_frame_bytes, widths))
        blocks = plan.manifest.direction(direction).block_numbers
        barriers = 1 + max(self._fragments * len(blocks), 1)
        self._barriers = 2 * self._workers * barriers * BARRIER_FRAME_BYTES
        self._plain = sum(
            each.bytes_up + each.bytes_down
            for each in (
                expected_traffic(plan.manifest, part, direction, width, group_size)
                for part in plan.workers
            )
        )

    def bytes_if(self, changed: NDArray[np.bool_]) -> RoundBytes:
        """Count the bytes of a round; `changed`: bool[rows]."""
        frame = changed[self._row]
        of_slot = np.bincount(self._slot, frame[self._frame])
        any_changed = of_slot > 0
        mixed = any_changed & (of_slot < np.bincount(self._slot))
        whole = int(frame.sum() + any_changed.sum())
        empty = int((~frame).sum() + (~any_changed).sum())
        everyone = np.ones(len(frame), dtype=np.bool_)
        bodiless = whole * self._whole + empty * self._empty + self._acks(everyone)
        agreed = whole * self._whole + int(mixed.sum()) * self._empty
        agreed += self._acks(frame, self._stand_ins(frame, mixed)) + self._bits()
        return RoundBytes(self._plain, bodiless + self._barriers, agreed + self._barriers)

    @property
    def _empty(self) -> int:
        """The bytes of the fragments of a row without bodies."""
        return self._fragments * BODY_AT

    def _stand_ins(self, frame: NDArray[np.bool_], mixed: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the frame in whose place its worker stands for all unchanged ones, of each sum."""
        absent = ~frame[self._frame]
        first = np.full(len(mixed), len(frame), dtype=np.int64)
        np.minimum.at(first, self._slot[absent], self._frame[absent])
        return first[mixed]

    def _acks(self, sent: NDArray[np.bool_], stand_ins: NDArray[np.int64] | None = None) -> int:
        """Return the bytes of all acknowledgements of some frames, and of others besides."""
        frames = np.bincount(self._group[sent], minlength=int(self._group.max()) + 1)
        if stand_ins is not None:
            frames += np.bincount(self._group[stand_ins], minlength=len(frames))
        return int((-(-frames // self._group_size)).sum()) * self._fragments * BODY_AT

    def _bits(self) -> int:
        """Return the bytes of an all-reduce of one bit per row."""
        lanes = -(-self.rows // _BITS_OF_LANE)
        one_way = sum(map(feature_frame_bytes, fragment_lanes(lanes, LANES[-1])))
        return 2 * self._workers * one_way
