# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Frames of several rows (bundle.p4)."""

import numpy as np
from ptf.testutils import test_param_get
from scapy.packet import Packet

from switchgnn.controller import Outcome
from tests.ptf.switchgnn_ptf.entries import BANKS
from tests.ptf.switchgnn_ptf.packets import (
    Lanes,
    bundle_to,
    feature,
    missing,
    port_of,
    random_lanes,
    recall,
)
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

FIRST_BUNDLE = 3 << 30
# Of each worker.
BUNDLES = {0: FIRST_BUNDLE + 77, 1: FIRST_BUNDLE + 4}
# Rows, and the numbers of each: such as fill their chunks, and such as begin anywhere.
SHAPES = ((2, 32), (2, 20), (2, 40), (2, 64), (2, 100), (4, 32), (4, 10), (4, 50), (8, 10), (8, 31))
# See `fits_switch` of switchgnn/planner/lanes.py.
OF_BMV2 = ((2, 20), (2, 40), (4, 10), (4, 24))


class BundleTest(SwitchTest):
    """Cases in which two workers send a bundle each for the sums of a third one."""

    def begin(self, rows: int, width: int) -> list[int]:
        """Begin a session with such bundles; return the banks that slots begin in."""
        banks = next(each for each in (1, 2, 4) if width <= 32 * each)
        self.serve(session=self.session + 1, lanes=32 * banks, rows=rows)
        return list(range(0, BANKS, banks))

    def meet(self, block: int, firsts: list[int], rows: int) -> None:
        """Let row p of one bundle meet that of the other, from the end, for vertex 900 + p."""
        for place, bank in enumerate(firsts):
            for worker, source in BUNDLES.items():
                row = (place if worker == 0 else -1 - place) % rows
                self.entries.add_fanout(
                    block=block,
                    source=source,
                    slots={bank: (5, 2)},
                    rows={bank: row},
                    hop=place,
                    last_hop=place == len(firsts) - 1,
                )
            self.add_destination(
                *(900 + place,),
                worker=2,
                slot=5,
                bank=bank,
                block=block,
                expected=2,
                place=place,
                sums=len(firsts),
            )

    def bundles(self, block: int, rows: int, width: int) -> tuple[list[Packet], list[Lanes]]:
        """Return the packets of both workers, and their rows."""
        sent, content = [], []
        for worker, source in BUNDLES.items():
            numbers = random_lanes(source + block, rows * width)
            sent.append(feature(source, numbers, port=port_of(worker), block=block))
            content.append(numbers.reshape(rows, width))
        return sent, content

    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Return the shapes that this switch takes."""
        return OF_BMV2 if test_param_get("setting") == "bmv2" else SHAPES


class RowsMeet(BundleTest):
    """Each slot gets the row of its entry, and sums leave in full bundles as they complete."""

    def runTest(self) -> None:
        for source, worker in zip(BUNDLES.values(), BUNDLES, strict=True):
            self.add_source(source, worker=worker)
        for block, (rows, width) in enumerate(self.shapes(), 1):
            firsts = self.begin(rows, width)
            self.meet(block, firsts, rows)
            (one, other), (left, right) = self.bundles(block, rows, width)
            total = [left[p % rows] + right[(-1 - p) % rows] for p in range(len(firsts))]
            with self.counted(Outcome.AGGREGATED, 2, completed=dict.fromkeys(firsts, 1)):
                self.send(1, one)
                self.send(2, other)
                for begin in range(0, len(firsts), rows):
                    some = dict(enumerate(total[begin : begin + rows], begin))
                    self.expect(3, bundle_to(3, some, of=rows, completed_by=other))


class TheLastBundleIsNotFull(BundleTest):
    """It leaves with the last sum of the worker; what is not in it is zeros and has no place."""

    def runTest(self) -> None:
        rows, width = 4, 10
        for worker, source in BUNDLES.items():
            self.add_source(source, worker=worker)
        firsts = self.begin(rows, width)[:6]
        self.meet(1, firsts, rows)
        (one, other), (left, right) = self.bundles(1, rows, width)
        total = [left[p % rows] + right[(-1 - p) % rows] for p in range(len(firsts))]
        with self.counted(Outcome.AGGREGATED, 2, completed=dict.fromkeys(firsts, 1)):
            self.send(1, one)
            self.send(2, other)
            self.expect(3, bundle_to(3, dict(enumerate(total[:4])), of=rows, completed_by=other))
            self.expect(3, bundle_to(3, dict(enumerate(total[4:], 4)), of=rows, completed_by=other))


class ASumOnTheShelfIsRecalledAlone(BundleTest):
    """It is still in its slot; one that is not complete is missing."""

    def runTest(self) -> None:
        rows, width = 4, 10
        self.add_source(FIRST_BUNDLE, worker=0)
        firsts = self.begin(rows, width)
        for place, bank in enumerate(firsts[:2]):
            self.add_destination(
                *(900 + place,),
                worker=2,
                slot=5,
                bank=bank,
                expected=1 + place,
                place=place,
                sums=2,
            )
        slots = {firsts[0]: (5, 1), firsts[1]: (5, 2)}
        self.entries.add_fanout(block=1, source=FIRST_BUNDLE, slots=slots, rows={firsts[0]: 3})
        numbers = random_lanes(1, rows * width)
        with self.counted(Outcome.AGGREGATED, completed={firsts[0]: 1}):
            self.send(1, feature(FIRST_BUNDLE, numbers, port=1))
        asked = [recall(900 + place, port=3, Width=rows * width // 8 - 1) for place in (0, 1)]
        with self.counted(Outcome.RECALLED, 2, completed={firsts[0]: 1}):
            self.send(3, *asked)
            alone = {0: numbers.reshape(rows, width)[3]}
            self.expect(3, bundle_to(3, alone, of=rows, completed_by=asked[0]))
            self.expect(3, missing(asked[1], count=1))


class RowsBehindTheFrameAreZeros(BundleTest):
    """Widths of other rows do not fit the session, and a body is as long as Width says."""

    def runTest(self) -> None:
        self.add_source(FIRST_BUNDLE, worker=0)
        self.begin(2, 32)
        wide = feature(FIRST_BUNDLE, np.zeros(72, dtype=np.int32), port=1)
        short = feature(FIRST_BUNDLE, np.zeros(64, dtype=np.int32), port=1)
        short["SwitchGNN"].Width = 3
        with self.counted(Outcome.MALFORMED, 2, passes={}):
            self.send(1, wide, short)
