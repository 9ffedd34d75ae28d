"""Sixteen jobs at once on one switch: every sum of each is right."""

import threading
from contextlib import ExitStack

from switchgnn.controller import P4RuntimeClient
from switchgnn.planner import load_graph
from switchgnn.topologies import Target
from tests.support.fabrics import JobBed, Team, bed
from tests.support.speed import seconds_here

JOBS, WORKERS, ROUNDS = 16, 2, 4
JOIN = 60.0


def test_sixteen_jobs_at_once_are_exact(tmp_path):
    graphs = [load_graph(f"random:40:160:{number}") for number in range(JOBS)]
    with bed(Target.EMBEDDED, JOBS * WORKERS, tmp_path) as switch, ExitStack() as stack:
        tenants = [
            JobBed(switch, f"job-{number}", WORKERS * number, WORKERS, graph=graph, slots=16)
            for number, graph in enumerate(graphs)
        ]
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
