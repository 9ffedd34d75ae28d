"""Two jobs that take slots from one memory: exact sums, whoever comes and goes."""

from contextlib import ExitStack
from threading import Thread

import pytest

from switchgnn.base.network import network_on
from switchgnn.controller import (
    DesiredStates,
    P4RuntimeClient,
    Share,
    install_each,
    load_plan,
    read_counters,
)
from switchgnn.controller.admission import JobRequest
from switchgnn.host import Addresses
from switchgnn.host.base.errors import HostError
from switchgnn.host.links import WrappedLink
from switchgnn.planner import build_plan
from tests.support.fabrics import Team, bed
from tests.support.markers import TARGETS
from tests.support.speed import seconds_here

WORKERS = 3
ROUNDS = 3
SLOTS = 24
# Frames that a worker has sent when it dies, in the middle of its first round.
LAST_FRAME = 9


class JobBed:
    """A job on some ports of a running switch, for `Team`."""

    strawman, workers = True, WORKERS

    def __init__(self, made, name, first_port):
        self.made, self.name, self.graph = made, name, made.graph
        self.first = first_port - 1
        self.network = network_on(range(first_port, first_port + WORKERS))
        self.plan = build_plan(
            self.graph,
            workers=WORKERS,
            slots=SLOTS,
            program=made.program.digest,
            blocks="strawman",
            order="random",
        )
        self.session = 0

    def install(self):
        share = Share(load_plan(self.plan), self.network, self.made.address)
        request = JobRequest(self.name, shared=True)
        desired = DesiredStates(self.made.program)
        self.session = install_each([share], desired, request, new_session=True).session

    def link(self, worker):
        return self.made.link(self.first + worker)

    def addresses(self, worker):
        return Addresses(self.network.neighbours[worker].station, self.network.switch)


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
    folder = tmp_path_factory.mktemp("bed")
    with bed(request.param, 2 * WORKERS, folder, strawman=True) as made:
        yield JobBed(made, "a", 1), JobBed(made, "b", 1 + WORKERS)


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

    def run(team):
        wrong[team] = team.run(ROUNDS, width=65)

    threads = [Thread(target=run, args=(team,), daemon=True) for team in teams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds_here(100))
        assert not thread.is_alive(), "a job hangs"
    return [wrong[team] for team in teams]


def test_all_sums_of_both_jobs_are_exact(beds, teams):
    both = teams()
    before = overflowed(beds[0].made)
    assert run_at_once(*both) == [0, 0], [team.errors for team in both]
    assert overflowed(beds[0].made) > before


def test_a_job_is_exact_beside_one_that_is_killed(beds, teams):
    survivor, killed = teams(lambda worker: MortalLink(beds[1].link(worker)))
    assert run_at_once(survivor, killed) == [0, None], survivor.errors
    assert all("killed" in str(error) for error in killed.errors.values())
