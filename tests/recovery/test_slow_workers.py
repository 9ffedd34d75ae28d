# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""One worker needs longer for a block than the others have patience; none gives it up."""

import time
from contextlib import ExitStack

import pytest

from switchgnn.host.pace import Pace
from switchgnn.topologies import Target
from tests.support.fabrics import Team, bed
from tests.support.leaf_spine_fabrics import leaf_spine_bed
from tests.support.markers import TARGETS, full
from tests.support.slow_link import SlowLink

WORKERS = 4
# One block of some hundred packets for each worker.
SIZE = {"graph": "random:2000:6000:1", "slots": 4096}


class SlowBed:
    """A bed in which the link of one worker is slow."""

    def __init__(self, bed, slow, frames_per_second):
        self._bed, self._slow, self._rate = bed, slow, frames_per_second

    def link(self, worker):
        link = self._bed.link(worker)
        return SlowLink(link, self._rate) if worker == self._slow else link

    def __getattr__(self, name):
        return getattr(self._bed, name)


class Meeting:
    """When each worker was through with the block."""

    def __init__(self):
        self.began = time.monotonic()
        self.seconds = []

    def __call__(self, *place):
        self.seconds.append(time.monotonic() - self.began)


def check(made, *, patience, rate, faults="", times=2.0):
    """All sums are exact, though the block took much longer than the patience."""
    meeting = Meeting()
    with ExitStack() as stack:
        made.install()
        slow = SlowBed(made, WORKERS - 1, rate)
        pace = Pace(window=4, patience=patience)
        team = Team(slow, stack, faults=faults, pace=pace, on_block=meeting)
        wrong = team.run(1, width=3)
    assert not team.errors, team.errors
    assert wrong == 0
    assert len(meeting.seconds) == WORKERS
    assert min(meeting.seconds) > times * patience


@pytest.mark.parametrize("target", TARGETS)
def test_behind_a_slow_link(target, tmp_path):
    with bed(target, WORKERS, tmp_path, **SIZE) as made:
        check(made, patience=0.7, rate=400)


def test_behind_a_slow_link_of_another_leaf(tmp_path):
    """Its leaf says nothing but its signs of life: it alone is busy, and has nothing to report."""
    with leaf_spine_bed(tmp_path, Target.EMBEDDED, workers=WORKERS, **SIZE) as made:
        check(made, patience=0.7, rate=400)


@full
def test_behind_a_slow_link_that_loses_a_third(tmp_path):
    """Timers back off to a second, so the patience has to be the one that users have."""
    size = SIZE | {"graph": "random:1400:4200:1"}
    with bed(Target.EMBEDDED, WORKERS, tmp_path, **size) as made:
        check(made, patience=Pace().patience, rate=200, faults="w3.loss=0.3,seed=1", times=1.5)
