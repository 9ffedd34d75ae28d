"""The whole exchange on both targets: time per round, passes and bytes."""

from collections.abc import Callable, Iterator

from bench.line import ResultLine
from bench.loads.exchange import Exchanged, exchange
from bench.machine import lacks, lacks_bmv2
from bench.measure import Samples, alternate, repeat
from bench.settings import Settings
from bench.testbeds.testbed import Served, Testbed
from bench.testbeds.workload import digits_plan, standard_plan
from switchgnn.host.direct.frames import GROUP
from switchgnn.host.direct.framing import USUAL_MTU
from switchgnn.host.direct.schedule import count_rows
from switchgnn.host.wire.header import BODY_AT
from switchgnn.lab.simulator.setup import boundary_of_plan
from switchgnn.planner import Plan
from switchgnn.planner.costs.seconds import packed_frames
from switchgnn.planner.sending.between_hosts import fewest_rows
from switchgnn.topologies import Target

NAME = "exchange"
_GRAPHS: dict[str, tuple[Callable[[], Plan], int, int]] = {
    # plan, feature width, rounds per measurement
    "digits": (digits_plan, 64, 3),
    "random": (standard_plan, 32, 3),
}
missing = lacks


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure both targets; without BMv2 only the embedded switch."""
    for name, (make_plan, width, rounds) in _GRAPHS.items():
        plan = make_plan()
        yield from _graph(settings, f"{name}, {plan.manifest.blocks} blocks", plan, width, rounds)


def _graph(
    settings: Settings, name: str, plan: Plan, width: int, rounds: int
) -> Iterator[ResultLine]:
    served = Served.whole(plan)
    results: list[Exchanged] = []

    def measure(testbed: Testbed) -> Callable[[], float]:
        def once() -> float:
            results.append(exchange(testbed, rounds, width))
            return results[-1].seconds * 1000

        return once

    b: Samples | None = None
    with Testbed(Target.EMBEDDED, served) as embedded:
        if lacks_bmv2() is None:
            with Testbed(Target.BMV2, served) as bmv2:
                a, b = alternate(
                    settings.pairs, ("embedded", measure(embedded)), ("BMv2", measure(bmv2))
                )
        else:
            a = repeat(settings.pairs, "embedded", measure(embedded))
    yield ResultLine(NAME, f"{name}: time per round", "ms", a, b)
    yield ResultLine(
        NAME,
        f"{name}: passes per contribution",
        "passes",
        Samples("switch", tuple(result.passes for result in results)),
    )
    yield _bytes(name, plan, width, results)


def _bytes(name: str, plan: Plan, width: int, results: list[Exchanged]) -> ResultLine:
    """Compare the wires with hosts alone that send copies or partial sums in packed frames."""
    rows = count_rows(boundary_of_plan(plan), plan.manifest.workers, fewest_rows).rows
    frames, sizes = packed_frames(rows, width, USUAL_MTU)
    acknowledged = int((-(-frames // GROUP)).sum())
    alone = 2 * (int(sizes.sum()) + BODY_AT * acknowledged)
    return ResultLine(
        NAME,
        f"{name}: bytes of a round, both ways",
        "B",
        Samples("on the wires", tuple(result.wire_bytes for result in results)),
        Samples(f"host-partial, MTU {USUAL_MTU}", (float(alone),) * len(results)),
    )
