"""Two jobs share one memory of slots: sums stay exact while jobs start and end."""

from contextlib import ExitStack

import pytest

from switchgnn.controller import P4RuntimeClient, read_counters
from switchgnn.host.base.errors import HostError
from switchgnn.host.links import WrappedLink
from tests.support.fabrics import JobBed, Team, bed, in_threads
from tests.support.markers import TARGETS

WORKERS = 3
ROUNDS = 3
PLANNED = {"slots": 24, "blocks": "strawman", "order": "random"}
# Frames that a worker has sent when it dies, in the middle of its first round.
LAST_FRAME = 9


class MortalLink(WrappedLink):
    """A link of a worker that is killed after some frames."""

    left = LAST_FRAME

    def send(self, frame):
        if not self.left:
            raise HostError("killed")
        self.left -= 1
        self._link.send(frame)

    def receive(self, seconds):
        return self._link.receive(seconds)


@pytest.fixture(scope="module", params=TARGETS)
def beds(request, tmp_path_factory):
    with bed(request.param, 2 * WORKERS, tmp_path_factory.mktemp("bed"), strawman=True) as made:
        yield (
            JobBed(made, "a", 0, WORKERS, **PLANNED),
            JobBed(made, "b", WORKERS, WORKERS, **PLANNED),
        )


@pytest.fixture
def teams(beds):
    with ExitStack() as stack:

        def make(other=None):
            for each in beds:
                each.install()
            first, second = beds
            return Team(first, stack), Team(second, stack, link=other)

        yield make


def overflowed(made):
    with P4RuntimeClient(made.address, primary=False) as client:
        return read_counters(client).named()["slot_overflowed"]


def run_at_once(*teams):
    """Let teams exchange at the same time; return how many sums of each are wrong."""
    wrong = {}

    def run(number):
        wrong[number] = teams[number].run(ROUNDS, width=65)

    in_threads(run, len(teams))
    return [wrong[number] for number in range(len(teams))]


def test_all_sums_of_both_jobs_are_exact(beds, teams):
    both = teams()
    before = overflowed(beds[0].bed)
    assert run_at_once(*both) == [0, 0], [team.errors for team in both]
    assert overflowed(beds[0].bed) > before


def test_a_job_is_exact_beside_one_that_is_killed(beds, teams):
    survivor, killed = teams(lambda worker: MortalLink(beds[1].link(worker)))
    assert run_at_once(survivor, killed) == [0, None], survivor.errors
    assert all("killed" in str(error) for error in killed.errors.values())
