"""Contributions per second of two testbeds under the same two loads."""

from collections.abc import Callable

from bench.line import Goal, ResultLine
from bench.loads.exchange import exchange
from bench.loads.raw import Rate, RawLoad
from bench.measure import alternate
from bench.settings import Settings
from bench.testbeds.testbed import Testbed

_UNIT = "contributions/s"
# These rounds take about as long as the processes need to start.
_ROUNDS = 3


def saturated(
    figure: str,
    settings: Settings,
    a: tuple[str, Testbed],
    b: tuple[str, Testbed],
    ratio: float,
    *,
    numbers: bool = False,
    maxima: bool = False,
) -> ResultLine:
    """Compare the testbeds under one sender that waits for nobody; `maxima`: of the first one."""
    rates: list[Rate] = []
    with RawLoad(a[1], maxima=maxima) as load_a, RawLoad(b[1]) as load_b:

        def measure(load: RawLoad) -> Callable[[], float]:
            def once() -> float:
                rates.append(load.run(settings.seconds))
                return rates[-1].numbers if numbers else rates[-1].contributions

            return once

        samples = alternate(settings.pairs, (a[0], measure(load_a)), (b[0], measure(load_b)))
    lost = max(rate.lost for rate in rates)
    return ResultLine(
        figure,
        "saturated: one sender for all ports",
        "numbers/s" if numbers else _UNIT,
        *samples,
        goal=Goal(ratio=ratio),
        note=f"incomplete sums: at most {lost:.2%}",
    )


def exchanging(
    figure: str, settings: Settings, a: tuple[str, Testbed], b: tuple[str, Testbed], ratio: float
) -> ResultLine:
    """Compare the testbeds under worker processes that exchange neighbour sums."""
    repeated = {a[0]: 0, b[0]: 0}

    def measure(label: str, testbed: Testbed) -> Callable[[], float]:
        def once() -> float:
            result = exchange(testbed, _ROUNDS)
            repeated[label] += result.repeated
            return result.contributions

        return once

    samples = alternate(settings.pairs, (a[0], measure(*a)), (b[0], measure(*b)))
    lost = ", ".join(f"{label} {count}" for label, count in repeated.items() if count)
    return ResultLine(
        figure,
        f"exchange of {a[1].fabric.topology.workers} worker processes",
        _UNIT,
        *samples,
        goal=Goal(ratio=ratio),
        note=f"repeated because of loss: {lost}" if lost else "",
    )
