# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""worker.p4: which worker is behind a port."""

from switchgnn.controller import Outcome
from switchgnn.host.wire.header import Kind
from tests.ptf.switchgnn_ptf.packets import (
    STRANGER_PORT,
    barrier_answer,
    done,
    feature,
    random_lanes,
)
from tests.ptf.switchgnn_ptf.switch_test import SwitchTest

SOURCES = {101: 0, 102: 1}


class StrangerSendsNoFeature(SwitchTest):
    """A port without a worker entry speaks for nobody; the owner's port does."""

    def runTest(self) -> None:
        self.add_sum(900, SOURCES)
        with self.counted(Outcome.WRONG_PORT, 2, passes={}):
            for echo in (0, 1):
                packet = feature(101, random_lanes(1), port=STRANGER_PORT, Echo=echo)
                self.send(STRANGER_PORT, packet)
        with self.counted(Outcome.AGGREGATED, 2):
            self.check_sum(900, SOURCES)


class StrangerIsNotDone(SwitchTest):
    """A port without a worker entry sets no bit of the barrier, and gets no answer."""

    def runTest(self) -> None:
        with self.counted({Outcome.WRONG_PORT: 3, Outcome.DONE_COLLECTED: 1}):
            self.send(1, done(0, block=0))
            self.send(STRANGER_PORT, *(done(w, block=0, port=STRANGER_PORT) for w in (0, 1, 2)))
        asked = done(0, block=0)
        with self.counted(Outcome.DONE_REPEATED):
            self.send(1, asked)
            self.expect(1, barrier_answer(Kind.WAITING, asked, to=1, workers=0b001))
