"""Jobs at once on a switch, also a kept one: killed, and with the losses of each alone."""

import json
import os
import re
import signal
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from switchgnn.controller import P4RuntimeClient
from switchgnn.planner import load_graph
from switchgnn.topologies import Target
from tests.end_to_end.conftest import BOTH_ENDS, LOOPBACK, needs_training, said, succeeded
from tests.support.commands import started, switchgnn
from tests.support.fabrics import JobBed, Team, bed, in_threads
from tests.support.markers import words_of
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

KARATE = ("--graph", "karate", "--workers", "4")


@contextmanager
def kept(tmp_path, *options):
    """Yield the network file of a switch with eight ports, of which a run has used four."""
    words = ("run", *KARATE, "--keep", "--spare-ports", "4", "--json", *options)
    with started(*words, log=tmp_path / "kept.log") as child:
        wait_until(lambda: "Ctrl-C" in said(child) or child.exit_code() is not None)
        found = re.search(r"run --on (\S+) --ports 5-8 --job b --workers 4\n", said(child))
        assert found, said(child)
        assert json.loads(child.stdout.readline())["exact"]
        yield Path(found[1])
        os.kill(child.pid, signal.SIGINT)
        assert child.wait(seconds_here()) == 0


def jobs_of(file):
    (switch,) = json.loads(succeeded("controller", "jobs", "--network", file, "--json").stdout)
    return {job["job"]: job for job in switch["jobs"]}


@pytest.mark.parametrize("combination", BOTH_ENDS)
def test_two_jobs_at_once_and_one_is_killed(combination, tmp_path):
    with kept(tmp_path, *words_of(combination)) as file, ExitStack() as stack:
        on = ("run", *KARATE, "--json", "--on", file)
        endless = (*on, "--ports", "1-4", "--job", "a", "--rounds", "30000")
        refused = switchgnn(*on, "--ports", "4-7", "--job", "c")
        assert (refused.returncode, "belongs to job default" in refused.stderr) == (2, True)
        succeeded("controller", "remove", "default", "--network", file)
        other = stack.enter_context(started(*endless, log=tmp_path / "a.log"))
        wait_until(lambda: jobs_of(file) or other.exit_code() is not None)
        first = json.loads(succeeded(*on, "--ports", "5-8", "--job", "b", "--keep").stdout)
        assert sorted(jobs_of(file)) == ["a", "b"]
        assert other.exit_code() is None, said(other)
        refused = switchgnn(*endless)
        assert (refused.returncode, "Job a of" in refused.stderr) == (2, True)
        again = stack.enter_context(
            started(*on, "--ports", "5-8", "--job", "b", "--rounds", "20", log=tmp_path / "b.log")
        )
        wait_until(lambda: jobs_of(file)["b"]["session"] > 3 or again.exit_code() is not None)
        os.kill(other.pid, signal.SIGKILL)
        second = json.loads(again.stdout.read())
        assert again.wait(seconds_here()) == 0
        for report, rounds in ((first, 3), (second, 20)):
            assert report["exact"]
            # Those of the other job are not counted.
            assert report["contributions"] * 3 == first["contributions"] * rounds
        # The job that was killed is still there, and its name can be used again.
        assert list(jobs_of(file)) == ["a"]
        report = json.loads(succeeded(*on, "--ports", "1-4", "--job", "a").stdout)
        assert report["exact"]
        assert not jobs_of(file)
    refused = switchgnn(*on, "--ports", "5-8")
    assert (refused.returncode, "Cannot read the network" in refused.stderr) == (2, True)


@needs_training
def test_trainings_at_once_have_the_losses_of_each_alone(tmp_path):
    train = ("train", "--data", "karate", "--workers", "4", "--epochs", "5", "--json")

    def losses(text):
        return json.loads(text.splitlines()[-1])["losses"]

    with kept(tmp_path, *LOOPBACK) as file, ExitStack() as stack:
        refused = switchgnn(*train, "--on", file, "--ports", "5-8", "--transport", "strawman")
        assert (refused.returncode, "runs another program" in refused.stderr) == (2, True)
        succeeded("controller", "remove", "default", "--network", file)
        both = []
        for seed, ports in ((1, "1-4"), (2, "5-8")):
            own = ("--seed", seed, "--on", file, "--ports", ports, "--job", f"seed-{seed}")
            child = started(*train, *own, log=tmp_path / f"{seed}.log")
            both.append(stack.enter_context(child))
        together = [losses(child.stdout.read()) for child in both]
    alone = [losses(succeeded(*train, *LOOPBACK, "--seed", seed).stdout) for seed in (1, 2)]
    assert together[0] != together[1]
    assert together == [pytest.approx(each, abs=1e-6) for each in alone]


JOBS, WORKERS, ROUNDS = 16, 2, 4


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

        in_threads(exchange, JOBS)
    assert wrong == dict.fromkeys(range(JOBS), 0)
