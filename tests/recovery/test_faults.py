"""Nothing lost, nothing counted twice, on running switches."""

from contextlib import ExitStack

import numpy as np
import pytest

from tests.recovery.conftest import ALL_FAULTS, STARS, all_happened, made_bed, of_topology
from tests.support.fabrics import Team
from tests.support.markers import TARGET_ON_PYTHON

ROUNDS = 3


def test_every_sum_is_exact(team):
    workers = team(faults=f"{ALL_FAULTS},seed=1")
    assert workers.run(ROUNDS, seed=1) == 0, (workers.errors, workers.total())
    assert all_happened(workers)


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("which", [*STARS, *of_topology("star", [TARGET_ON_PYTHON])])
def test_partial_sums_are_exact(which, rows, tmp_path, stack):
    form = {"rows": rows, "lanes": 32 if rows == 1 else 24}
    with made_bed(which, tmp_path, send="cover", slots=32, pools=2, **form) as made:
        assert any(max(np.diff(part.send_row_indptr)) > 1 for part in made.plan.workers)
        made.install()
        with ExitStack() as stack:
            workers = Team(made, stack, faults=f"{ALL_FAULTS},seed=0")
            assert workers.run(ROUNDS) == 0, (workers.errors, workers.total())
