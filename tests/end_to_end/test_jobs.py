"""Sixteen jobs at once on one switch: every sum of each is right."""

import threading
from contextlib import ExitStack
from dataclasses import dataclass

from switchgnn.base.network import network_on
from switchgnn.controller import DesiredStates, JobRequest, P4RuntimeClient, Share, install_each
from switchgnn.controller.base.plan import load_plan
from switchgnn.host.wire.addresses import Addresses
from switchgnn.planner import build_plan, load_graph
from switchgnn.topologies import Target
from tests.support.fabrics import Team, bed
from tests.support.speed import seconds_here

JOBS, WORKERS, ROUNDS = 16, 2, 4
JOIN = 60.0


@dataclass
class Tenant:
    """One job of a bed, as a `Team` wants it; all jobs have the same numbers of workers."""

    bed: object
    number: int
    session: int = 0
    strawman = False
    workers = WORKERS

    def __post_init__(self):
        self.graph = load_graph(f"random:40:160:{self.number}")
        program = self.bed.program.digest
        self.plan = build_plan(self.graph, workers=WORKERS, slots=16, program=program)
        first = WORKERS * self.number
        self.network = network_on(range(first + 1, first + 1 + WORKERS))

    def install(self, client):
        share = Share(load_plan(self.plan), self.network, client)
        desired = DesiredStates(self.bed.program)
        self.session = install_each([share], desired, JobRequest(f"job-{self.number}")).session

    def link(self, worker):
        return self.bed.link(WORKERS * self.number + worker)

    def addresses(self, worker):
        return Addresses(self.network.neighbours[worker].station, self.network.switch)


def test_sixteen_jobs_at_once_are_exact(tmp_path):
    with bed(Target.EMBEDDED, JOBS * WORKERS, tmp_path) as switch, ExitStack() as stack:
        tenants = [Tenant(switch, number) for number in range(JOBS)]
        with P4RuntimeClient(switch.address) as client:
            for tenant in tenants:
                tenant.install(client)
        teams = [Team(tenant, stack) for tenant in tenants]
        wrong = {}

        def exchange(number):
            wrong[number] = teams[number].run(ROUNDS, seed=number)

        threads = [threading.Thread(target=exchange, args=(n,), daemon=True) for n in range(JOBS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds_here(JOIN))
    assert wrong == dict.fromkeys(range(JOBS), 0)
