"""watch.p4: the well-formed frames of one vertex are counted, and only those."""

from switchgnn.controller.controls.watch import NOBODY, Watch

from switchgnn.controller import Outcome
from switchgnn.controller.p4runtime.rows import default_update
from tests.ptf.switchgnn_ptf.packets import feature, random_lanes, resigned
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

WATCHED, OTHER = 101, 102
SOURCES = {WATCHED: 0, OTHER: 1}
LANES = random_lanes(1)


class OneVertexIsWatched(SwitchTest):
    """Neither another vertex nor a broken frame counts; a repeated frame does."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        watch = Watch(self.client.get_layout())

        def choose(vertex: int) -> None:
            self.client.write([default_update(watch.table, watch.encode(vertex))])

        self.addCleanup(choose, NOBODY)
        before = watch.read(self.client)
        good = feature(WATCHED, LANES, port=1)
        broken = resigned(good)
        broken["SwitchGNN"].Checksum = 1
        with self.counted(Outcome.AGGREGATED):
            self.send(1, good)
        self.assertEqual(before, watch.read(self.client))
        choose(WATCHED)
        with self.counted({Outcome.DUPLICATE: 1, Outcome.MALFORMED: 1}):
            self.send(1, good, broken)
        with self.counted(Outcome.AGGREGATED, completed={0: 1}):
            frame, lanes = self.send_feature(OTHER, worker=1)
            self.expect_sum(900, [(good, LANES), (frame, lanes)])
        self.assertEqual(before + 1, watch.read(self.client))
