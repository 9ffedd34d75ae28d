"""The cost of loss on every link: the time per round with loss, divided by that without."""

from collections.abc import Callable, Iterator
from itertools import count

from bench.line import Goal, ResultLine
from bench.loads.exchange import exchange
from bench.machine import installed_targets, lacks
from bench.measure import alternate
from bench.settings import Settings
from bench.testbeds.testbed import Served, Testbed
from bench.testbeds.workload import digits_plan
from switchgnn.topologies import Target

NAME = "loss"
# The goals: the loss in each direction of each link, and the largest ratio of times.
_GOALS = {0.001: 1.2, 0.01: 1.6, 0.05: 3.0}
# Injecting faults itself takes time, so the links of both sides get this smallest loss.
_AS_GOOD_AS_NONE = 1e-12
_WIDTH = 64
_ROUNDS = 10
missing = lacks


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure on the targets that are installed."""
    plan = digits_plan()
    served = Served.whole(plan)
    for target in installed_targets():
        with Testbed(target, served) as testbed:
            for loss, most in _GOALS.items():
                yield _line(settings, testbed, target, loss, most)


def _line(
    settings: Settings, testbed: Testbed, target: Target, loss: float, most: float
) -> ResultLine:
    # The losses differ from one exchange to the next, but not between runs of the benchmark.
    seeds = count()
    lost: list[int] = []
    repeated: list[int] = []

    def measure(rate: float) -> Callable[[], float]:
        def once() -> float:
            result = exchange(testbed, _ROUNDS, _WIDTH, f"loss={rate},seed={next(seeds)}")
            repeated.append(result.repeated)
            if rate == loss:
                lost.append(result.injected)
            return result.seconds * 1000

        return once

    samples = alternate(
        settings.pairs, (f"{loss:.1%} lost", measure(loss)), ("none", measure(_AS_GOOD_AS_NONE))
    )
    failed = f"; {sum(repeated)} exchanges failed and were repeated" if sum(repeated) else ""
    return ResultLine(
        NAME,
        f"digits on {target.value}, {loss:.1%} of all frames lost: time per round",
        "ms",
        *samples,
        goal=Goal(ratio_most=most),
        note=f"{min(lost)} to {max(lost)} frames lost in {_ROUNDS} rounds{failed}",
    )
