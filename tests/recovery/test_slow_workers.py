# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""One worker needs longer for a block than the others have patience; none gives it up.

With losses, and as much patience as users have, it is in tests/virtual/matrix.
"""

import time
from contextlib import ExitStack

import pytest

from switchgnn.host.pace import Pace
from switchgnn.topologies import Target
from tests.support.fabrics import Team, bed
from tests.support.leaf_spine_fabrics import leaf_spine_bed
from tests.support.markers import TARGETS
from tests.support.slow_sums import SlowSums

WORKERS = 4
SLOW = 3
# One block, with some fifty sums for each worker.
ONE_BLOCK = {"graph": "random:200:600:1", "slots": 512}


class SlowBed:
    """A bed with a worker that receives sums slowly."""

    def __init__(self, made, sums_per_second):
        self._made, self._rate = made, sums_per_second

    def link(self, worker):
        link = self._made.link(worker)
        return SlowSums(link, self._rate) if worker == SLOW else link

    def __getattr__(self, name):
        return getattr(self._made, name)


def check(made, *, patience):
    """Check that all sums are exact though the block takes twice the patience."""
    began, ended = time.monotonic(), []
    with ExitStack() as stack:
        made.install()
        team = Team(
            SlowBed(made, 25 / patience),
            stack,
            pace=Pace(patience=patience),
            on_block=lambda *_: ended.append(time.monotonic()),
        )
        wrong = team.run(1, width=3)
    assert not team.errors, team.errors
    assert wrong == 0
    assert min(ended) - began > 1.5 * patience


@pytest.mark.parametrize("target", TARGETS)
def test_a_slow_worker_is_waited_for(target, tmp_path):
    with bed(target, WORKERS, tmp_path, **ONE_BLOCK) as made:
        check(made, patience=1.0)


def test_a_slow_worker_behind_another_leaf_is_waited_for(tmp_path):
    """Its leaf forwards its pulses."""
    with leaf_spine_bed(tmp_path, Target.EMBEDDED, workers=WORKERS, **ONE_BLOCK) as made:
        check(made, patience=1.0)
