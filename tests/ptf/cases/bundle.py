"""Frames of several rows (bundle.p4)."""

import numpy as np
from ptf.testutils import test_param_get
from scapy.packet import Packet

from switchgnn.controller import Outcome
from switchgnn.host.wire.header import SUM_BUNDLES, Kind
from tests.ptf.switchgnn_ptf.bases import ABOVE, LeafTest, SpineTest
from tests.ptf.switchgnn_ptf.entries import BANKS
from tests.ptf.switchgnn_ptf.packets import (
    NETWORK,
    PARTIAL,
    Lanes,
    bundle_to,
    feature,
    missing,
    port_of,
    random_lanes,
    recall,
    relayed,
    resigned,
    station,
    sum_to,
)
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

FIRST_BUNDLE = 3 << 30
# Each with its worker.
BUNDLES = {FIRST_BUNDLE + 77: 0, FIRST_BUNDLE + 4: 1}
# Rows, and the numbers of each: such as fill their chunks, and such as begin anywhere.
SHAPES = ((2, 32), (2, 20), (2, 40), (2, 64), (2, 100), (4, 32), (4, 10), (4, 50), (8, 10), (8, 31))
# See `fits_switch` of switchgnn/planner/base/lanes.py.
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
            for source, worker in BUNDLES.items():
                row = (place if worker == 0 else -1 - place) % rows
                way = {"hop": place, "last_hop": place == len(firsts) - 1}
                entry = {"slots": {bank: (5, 2)}, "rows": {bank: row}, **way}
                self.entries.add_fanout(block=block, source=source, **entry)
            slot = {"slot": 5, "bank": bank, "block": block, "place": place}
            self.add_destination(900 + place, worker=2, expected=2, sums=len(firsts), **slot)

    def bundles(self, block: int, rows: int, width: int) -> tuple[list[Packet], list[Lanes]]:
        sent, content = [], []
        for source, worker in BUNDLES.items():
            numbers = random_lanes(source + block, rows * width)
            sent.append(feature(source, numbers, port=port_of(worker), block=block))
            content.append(numbers.reshape(rows, width))
        return sent, content

    def check_sums(self, block: int, rows: int, width: int, most: int = BANKS) -> None:
        """Begin a session, and let the rows for some sums meet, which leave in their bundles."""
        firsts = self.begin(rows, width)[:most]
        self.meet(block, firsts, rows)
        (one, other), (left, right) = self.bundles(block, rows, width)
        total = [left[p % rows] + right[(-1 - p) % rows] for p in range(len(firsts))]
        with self.counted(Outcome.AGGREGATED, 2, completed=dict.fromkeys(firsts, 1)):
            self.send(1, one)
            self.send(2, other)
            for begin in range(0, len(firsts), rows):
                some = dict(enumerate(total[begin : begin + rows], begin))
                self.expect(3, bundle_to(3, some, of=rows, completed_by=other))

    def shapes(self) -> tuple[tuple[int, int], ...]:
        return OF_BMV2 if test_param_get("setting") == "bmv2" else SHAPES


class RowsMeet(BundleTest):
    """Each slot gets the row of its entry; sums leave in full bundles, and a last one of places."""

    def runTest(self) -> None:
        self.add_owners(BUNDLES)
        for block, shape in enumerate(self.shapes(), 1):
            self.check_sums(block, *shape)
        self.check_sums(block + 1, 4, 10, most=6)


class ASumOnTheShelfIsRecalledAlone(BundleTest):
    """It is still in its slot; one that is not complete is missing."""

    def runTest(self) -> None:
        rows, width = 4, 10
        self.add_source(FIRST_BUNDLE, worker=0)
        firsts = self.begin(rows, width)
        for place, bank in enumerate(firsts[:2]):
            slot = {"slot": 5, "bank": bank, "place": place}
            self.add_destination(900 + place, worker=2, expected=1 + place, sums=2, **slot)
        slots = {firsts[0]: (5, 1), firsts[1]: (5, 2)}
        self.entries.add_fanout(source=FIRST_BUNDLE, slots=slots, rows={firsts[0]: 3})
        numbers = random_lanes(1, rows * width)
        with self.counted(Outcome.AGGREGATED, completed={firsts[0]: 1}):
            self.send(1, feature(FIRST_BUNDLE, numbers, port=1))
        asked = [recall(900 + place, port=3, Width=rows * width // 8 - 1) for place in (0, 1)]
        with self.counted(Outcome.RECALLED, 2, completed={firsts[0]: 1}):
            self.send(3, *asked)
            alone = {0: numbers.reshape(rows, width)[3]}
            self.expect(3, bundle_to(3, alone, of=rows, completed_by=asked[0]))
            self.expect(3, missing(asked[1], count=1))


class AMarkWaitsOnTheShelf(BundleTest):
    """A bundle is marked if any of its rows is, and the next one is not."""

    def runTest(self) -> None:
        rows, width = 2, 20
        firsts = self.begin(rows, width)[:4]
        for place, bank in enumerate(firsts):
            self.add_destination(900 + place, worker=2, slot=5, bank=bank, place=place, sums=4)
        self.add_owners(BUNDLES)
        for source, banks in zip(BUNDLES, (firsts[:1], firsts[1:]), strict=True):
            slots, of_first = dict.fromkeys(banks, (5, 1)), dict.fromkeys(banks, 0)
            self.entries.add_fanout(source=source, slots=slots, rows=of_first)
        (one, other), (left, right) = self.bundles(1, rows, width)
        with self.counted(Outcome.AGGREGATED, 2, completed=dict.fromkeys(firsts, 1)):
            self.send(1, resigned(one, ECN=1))
            self.send(2, other)
            marked = bundle_to(3, {0: left[0], 1: right[0]}, of=rows, completed_by=other)
            self.expect(3, resigned(marked, ECN=1))
            self.expect(3, bundle_to(3, {2: right[0], 3: right[0]}, of=rows, completed_by=other))


class RowsBehindTheFrameAreZeros(BundleTest):
    """Widths of other rows do not fit the session, and a body is as long as Width says."""

    def runTest(self) -> None:
        self.add_source(FIRST_BUNDLE, worker=0)
        self.begin(2, 32)
        wide = feature(FIRST_BUNDLE, np.zeros(72, dtype=np.int32), port=1)
        short = feature(FIRST_BUNDLE, np.zeros(64, dtype=np.int32), port=1)
        short["SwitchGNN"].Width = 3
        self.check_unanswered(Outcome.MALFORMED, 1, wide, short, passes={})


class APartGoesUpAlone(LeafTest, BundleTest):
    """It is as wide as one row and tells the width of the bundle; sums of this leaf are in one."""

    def runTest(self) -> None:
        self.add_owners(BUNDLES)
        for rows, width, words, code in ((4, 10, 16, 4), (2, 64, 64, 15)):
            begin, bank = self.begin(rows, width)[:2]
            for source, row in zip(BUNDLES, (1, 0), strict=True):
                slots, added = {begin: (5, 2), bank: (6, 2)}, {begin: row, bank: 1 - row}
                self.entries.add_fanout(block=rows, source=source, slots=slots, rows=added)
            self.add_partial(900, slot=5, source=PARTIAL, block=rows)
            self.add_destination(901, worker=2, slot=6, bank=bank, block=rows)
            (one, other), (left, right) = self.bundles(rows, rows, width)
            part = np.pad(left[1] + right[0], (0, words - width))
            with self.counted(Outcome.AGGREGATED, 2, completed={begin: 1, bank: 1}):
                self.send(1, one)
                self.send(2, other)
                up = sum_to(ABOVE, 900, part, count=2, completed_by=other)
                fields = {"Level": 1, "Feature_group": code, "Width": words // 8 - 1}
                self.expect(ABOVE, resigned(up, Kind=Kind.FEATURE, Src_id=PARTIAL, **fields))
                self.expect(3, bundle_to(3, {0: left[0] + right[1]}, of=rows, completed_by=other))


class ASpinePacksSumsOfItsWorkers(SpineTest, BundleTest):
    """Parts of one row become bundles for a worker below a leaf."""

    def runTest(self) -> None:
        rows, width = 2, 12
        begin, bank = self.begin(rows, width)[:2]
        names = {900: (PARTIAL, PARTIAL + 1), 901: (PARTIAL + 2, PARTIAL + 3)}
        self.add_owners({name: leaf % 2 for leaf, name in enumerate(names[900] + names[901])})
        for place, (vertex, first) in enumerate({900: begin, 901: bank}.items()):
            row = {"slot": 7, "bank": first, "place": place + 3, "sums": 2, "below": 3}
            self.add_destination(vertex, worker=2, expected=9, senders=[0, 1], **row)
        total = {}
        with self.counted(Outcome.AGGREGATED, 4, completed={begin: 1, bank: 1}):
            for vertex in (900, 901):
                fields = {"Dst_id": vertex, "Feature_group": 2}
                for leaf, name in enumerate(names[vertex]):
                    part = np.pad(random_lanes(name, width), (0, 4))
                    last, _ = self.send_lanes(name, part, 32, worker=leaf, count=4 + leaf, **fields)
                one, other = (random_lanes(name, width) for name in names[vertex])
                total[vertex - 897] = one + other
            whole = resigned(last, Width=2)
            self.expect(3, bundle_to(3, total, of=rows, completed_by=whole, worker=5))
        with self.counted(Outcome.MALFORMED):
            self.send_feature(PARTIAL, worker=0, numbers=24, Dst_id=900, Feature_group=2)


class ABundleFromAboveGoesToItsWorker(LeafTest):
    """By the worker in its destination; of one that is not below this leaf nothing is known."""

    def runTest(self) -> None:
        self.serve(rows=4)
        key = {"block_id": 1, "dst_id": SUM_BUNDLES + 40}
        self.entries.add(
            "destination", "set_destination", **key, port=2, bank=0, slot=0, expected=0
        )
        asked = recall(900, port=ABOVE, Is_Fetch=0, Width=4)
        for worker, outcome in ((40, Outcome.PASSED_ON), (41, Outcome.UNKNOWN_VERTEX)):
            sums = {3: random_lanes(1, 10), 9: random_lanes(2, 10)}
            packet = bundle_to(ABOVE, sums, of=4, completed_by=asked, worker=worker)
            packet["Ether"].src, packet["Ether"].dst = station(ABOVE).mac, NETWORK.switch.mac
            with self.counted(outcome, passes={}, completed={}):
                self.send(ABOVE, packet)
                if outcome == Outcome.PASSED_ON:
                    self.expect(2, relayed(packet, to=2))
