"""Several jobs on one switch: how two share it, and how long the sixteenth takes to install."""

import time
from collections.abc import Iterator

from bench.line import Goal, ResultLine
from bench.loads.kept import KeptSwitch, job
from bench.measure import Samples, alternate, repeat
from bench.settings import Settings
from switchgnn.base.network import network_on
from switchgnn.controller import DesiredStates, JobRequest, Share, SwitchPlan, install_each
from switchgnn.controller.jobs import remove_job
from switchgnn.p4src import load_program
from switchgnn.planner import build_plan, load_graph

NAME = "jobs"
OWN_NAMESPACE = False

_GRAPH, _ROUNDS, _WORKERS = "digits", 150, 4
_HALF, _BESIDE, _SIXTEENTH = 1.15, 1.1, 1.5
_JOBS = 16


def missing() -> str | None:
    """Return None: nothing is needed."""
    return None


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure two jobs against each alone, then installs of small jobs."""
    with KeptSwitch(2 * _WORKERS + 1) as switch:
        first = job("first", range(2, 2 + _WORKERS), _GRAPH, _ROUNDS)
        second = job("second", range(2 + _WORKERS, 2 + 2 * _WORKERS), _GRAPH, _ROUNDS)

        def together() -> float:
            return max(report["seconds"] for report in switch.run([first, second]))

        def alone() -> float:
            return 2 * sum(report["seconds"] for report in switch.run([first]))

        yield ResultLine(
            NAME,
            f"two equal jobs of {_WORKERS} workers at once, {_GRAPH}, {_ROUNDS} rounds",
            "s",
            *alternate(settings.pairs, ("the slower one", together), ("alone, times 2", alone)),
            goal=Goal(ratio_most=_HALF),
            note="all processors are in use alone, too",
        )

        def beside_greedy() -> float:
            with switch.greedy(range(2 + _WORKERS, 2 + 2 * _WORKERS)):
                return sum(report["seconds"] for report in switch.run([first]))

        yield ResultLine(
            NAME,
            "one of them beside a job that sends all the time",
            "s",
            *alternate(settings.pairs, ("beside it", beside_greedy), ("its equal", together)),
            goal=Goal(ratio_most=_BESIDE),
        )
    with KeptSwitch(2 * _JOBS + 1) as switch:
        yield _sixteen(switch, settings)
        times = [_install_all(switch) for _ in range(settings.pairs)]
        yield ResultLine(
            NAME,
            f"install of {_JOBS} jobs of two workers, one after the other",
            "s",
            Samples("the sixteenth", tuple(each[-1] for each in times)),
            Samples("the first", tuple(each[0] for each in times)),
            goal=Goal(ratio_most=_SIXTEENTH),
        )


def _sixteen(switch: KeptSwitch, settings: Settings) -> ResultLine:
    jobs = [
        job(f"job-{number}", range(2 * number + 2, 2 * number + 4), "karate", _ROUNDS)
        for number in range(_JOBS - 1)
    ]
    inexact: list[str] = []

    def once() -> float:
        reports = switch.run(jobs)
        inexact.extend(str(report["graph"]) for report in reports if not report["exact"])
        return max(report["seconds"] for report in reports)

    samples = repeat(settings.pairs, "the slowest", once)
    what = f"{_JOBS - 1} jobs of two workers at once, beside that which keeps the switch"
    return ResultLine(
        NAME, what, "s", samples, note="all exact" if not inexact else f"{len(inexact)} wrong"
    )


def _install_all(switch: KeptSwitch) -> list[float]:
    """Return the seconds that each install takes; all jobs are removed in the end."""
    program = load_program()
    plan = build_plan(load_graph("karate"), workers=2, slots=8, program=program.digest)
    names, times = [f"job-{number}" for number in range(_JOBS)], []
    with switch.client() as client:
        remove_job([client], "default")
        for number, name in enumerate(names):
            around = network_on(range(2 * number + 1, 2 * number + 3))
            share = Share(SwitchPlan(plan.manifest, plan.switch), around, client)
            started = time.perf_counter()
            install_each([share], DesiredStates(program), JobRequest(name))
            times.append(time.perf_counter() - started)
        for name in names[1:]:
            remove_job([client], name)
        share = Share(SwitchPlan(plan.manifest, plan.switch), network_on(range(1, 3)), client)
        remove_job([client], names[0])
        install_each([share], DesiredStates(program))
    return times
