# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""seen.p4: each source counts once per round, block and fragment (invariants 1 and 3)."""

from switchgnn.controller import Outcome
from switchgnn.host.wire.header import LAST_FRAGMENT
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

SOURCES = {101: 0, 102: 1, 103: 2}


class RepeatedAtOnce(SwitchTest):
    """A feature that comes twice in a row is summed once."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        with self.counted({Outcome.AGGREGATED: 3, Outcome.DUPLICATE: 3}, passes={1: 3}):
            sent = []
            for source, worker in SOURCES.items():
                sent.append(self.send_feature(source, worker=worker))
                self.send(worker + 1, sent[-1][0])
            self.expect_sum(900, sent)


class RepeatedAfterOthers(SwitchTest):
    """A feature that comes again after those of other sources is summed once."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        with self.counted({Outcome.AGGREGATED: 3, Outcome.DUPLICATE: 2}, passes={1: 3}):
            sent = [self.send_feature(source, worker=source - 101) for source in (101, 102)]
            self.send(1, sent[0][0])
            self.send(2, sent[1][0])
            sent.append(self.send_feature(103, worker=2))
            self.expect_sum(900, sent)


class RepeatedAfterCompletion(SwitchTest):
    """After the sum has left, a repeated feature starts no other."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        with self.counted(Outcome.AGGREGATED, 3, completed={0: 1}):
            self.check_sum(900, SOURCES)
        with self.counted(Outcome.DUPLICATE, 6, passes={}):
            for source, worker in [*SOURCES.items()] * 2:
                self.send_feature(source, worker=worker)


class RepeatedWithOtherLanes(SwitchTest):
    """What counts is the tag: the first lanes are summed, later ones are not looked at."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        with self.counted({Outcome.AGGREGATED: 3, Outcome.DUPLICATE: 1}):
            sent = [self.send_feature(101, worker=0)]
            self.send_feature(101, worker=0, Level=1)
            sent += [self.send_feature(source, worker=source - 101) for source in (102, 103)]
            self.expect_sum(900, sent)


class OlderTagsOfASourceAreStale(SwitchTest):
    """An older round, block or fragment of the same source is dropped, and not acknowledged."""

    def runTest(self) -> None:
        for block in (4, 5, 6):
            known = block != 4
            self.add_sum(900 + block, SOURCES, slot=block, block=block, known=known)
        newest = {"round_": 9, "block": 5, "fragment": 3}
        older = (
            {"round_": 8},
            {"round_": 8, "block": 6, "fragment": 4},
            {"block": 4},
            {"block": 4, "fragment": LAST_FRAGMENT},
            {"fragment": 2},
            {"round_": 1, "block": 4, "fragment": 0},
        )
        with self.counted(Outcome.AGGREGATED):
            sent = [self.send_feature(101, worker=0, **newest)]
        with self.counted(Outcome.STALE, len(older), passes={}):
            for change in older:
                self.send_feature(101, worker=0, Echo=1, **{**newest, **change})
        with self.counted(Outcome.AGGREGATED, 2, completed={0: 1}):
            sent += [self.send_feature(s, worker=s - 101, **newest) for s in (102, 103)]
            self.expect_sum(905, sent)


class SourcesAreRememberedApart(SwitchTest):
    """A source that is ahead does not make the others stale."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES, slot=7, block=1)
        self.add_sum(901, {101: 0}, slot=8, block=2, known=True)
        with self.counted(Outcome.AGGREGATED, 4, completed={0: 2}):
            sent = [self.send_feature(101, worker=0)]
            self.expect_sum(901, [self.send_feature(101, worker=0, block=2, round_=7)])
            sent += [self.send_feature(source, worker=source - 101) for source in (102, 103)]
            self.expect_sum(900, sent)


class TagsReachTheEnd(SwitchTest):
    """The largest round, block and fragment are the newest, and zero is the oldest."""

    def runTest(self) -> None:
        top = 0xFFFF
        for block in (0, top):
            self.add_sum(900, {101: 0}, slot=7, block=block, known=block == top)
        tags = [
            {"round_": 0, "block": 0, "fragment": 0},
            {"round_": 0, "block": 0, "fragment": LAST_FRAGMENT},
            {"round_": 0, "block": top, "fragment": 0},
            {"round_": 0xFFFFFFFF, "block": 0, "fragment": 0},
            {"round_": 0xFFFFFFFF, "block": top, "fragment": LAST_FRAGMENT},
        ]
        for at, tag in enumerate(tags):
            with self.counted(Outcome.AGGREGATED, completed={0: 1}):
                self.expect_sum(900, [self.send_feature(101, worker=0, **tag)])
            with self.counted({Outcome.STALE: at} if at else {}):
                for old in tags[:at]:
                    self.send_feature(101, worker=0, **old)
