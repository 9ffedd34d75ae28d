"""Nothing lost, nothing counted twice, on running switches, and no sums of another run."""

from contextlib import ExitStack, contextmanager

import numpy as np
import pytest

from switchgnn.host.base.pace import Pace
from switchgnn.host.innetwork.errors import RoundMismatchError, SessionMismatchError
from tests.recovery.conftest import ALL_FAULTS, STARS, all_happened, made_bed, of_stars, of_topology
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


BRIEF = Pace(timeout=5.0)


@contextmanager
def team_on(bed, **options):
    with ExitStack() as stack:
        yield Team(bed, stack, **options)


@of_stars
def test_a_second_run_on_one_install_is_refused(shared_bed):
    """Its features would be duplicates, and its sums those of the first run."""
    shared_bed.install()
    with team_on(shared_bed) as team:
        assert team.run(1) == 0
    with team_on(shared_bed, pace=BRIEF) as again:
        assert again.run(1, seed=1) is None
        assert {type(error) for error in again.errors.values()} == {RoundMismatchError}
        assert "--new-session" in str(again.errors[0])
    shared_bed.install()
    with team_on(shared_bed) as team:
        assert team.run(1, seed=1) == 0


@of_stars
def test_a_run_ends_when_its_switch_is_installed_anew(shared_bed):
    shared_bed.install()
    with team_on(shared_bed, pace=BRIEF) as team:
        assert team.run(1) == 0
        shared_bed.install()
        assert team.run(1) is None
        assert {type(error) for error in team.errors.values()} == {SessionMismatchError}
