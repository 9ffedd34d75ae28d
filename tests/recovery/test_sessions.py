# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Runs that share an install, or outlive it: an error with a name, never another run's sums.

The same over leaves and spines, and words of an earlier session, are in tests/virtual/matrix.
"""

from contextlib import ExitStack, contextmanager

from switchgnn.host.innetwork.errors import RoundMismatchError, SessionMismatchError
from switchgnn.host.pace import Pace
from tests.support.fabrics import Team

BRIEF = Pace(patience=5.0)


@contextmanager
def team_on(bed, **options):
    """A team whose links are closed afterwards, so that the next one can open them."""
    with ExitStack() as stack:
        yield Team(bed, stack, **options)


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


def test_a_second_run_may_go_on_in_later_rounds(shared_bed):
    """But not if the first run has announced features, which it may have sent already."""
    shared_bed.install()
    with team_on(shared_bed) as team:
        assert team.run(1) == 0
    with team_on(shared_bed, first_round=2) as team:
        assert team.run(2, seed=1) == 0
    for later in (4, 5):
        with team_on(shared_bed, pace=BRIEF, first_round=later) as team:
            assert team.run(1, seed=2) is None
            assert {type(error) for error in team.errors.values()} == {RoundMismatchError}


def test_a_run_ends_when_its_switch_is_installed_anew(shared_bed):
    shared_bed.install()
    with team_on(shared_bed, pace=BRIEF) as team:
        assert team.run(1) == 0
        shared_bed.install()
        assert team.run(1) is None
        assert {type(error) for error in team.errors.values()} == {SessionMismatchError}
    with team_on(shared_bed) as team:
        assert team.run(1, seed=1) == 0
