"""Numbers that a switch adds per second by the width of frames, and maxima beside sums."""

from collections.abc import Iterator

from bench.figures.data_plane import saturated
from bench.line import ResultLine
from bench.machine import installed_targets, lacks
from bench.settings import Settings
from bench.testbeds.testbed import Served, Testbed
from bench.testbeds.workload import standard_plan, wide_plan
from switchgnn.base.network_file import Target
from switchgnn.planner.base.lanes import BANK_LANES, LANES

NAME = "lanes"
_RATIO = 3.0
_WIDEST = LANES[-1]
_WIDTHS = (8, 16, 48, 64, 128, _WIDEST)
# Contributions to maxima per contribution to a sum, not of BMv2, and the width of both.
_MAXIMA, _OF_BOTH = 0.9, 64
missing = lacks


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure each width on each switch of the machine; the goal is for the widest frames."""
    for target in installed_targets():
        plan = wide_plan(_OF_BOTH)
        with Testbed(target, Served.whole(plan)) as a, Testbed(target, Served.whole(plan)) as b:
            labels = (f"{target.value}, max of {_OF_BOTH} lanes", a), ("sum", b)
            ratio = _MAXIMA if target is Target.EMBEDDED else 0.0
            yield saturated(NAME, settings, *labels, ratio, maxima=True)
        for lanes in _WIDTHS:
            ratio = _RATIO if lanes == _WIDEST else 0.0
            with (
                Testbed(target, Served.whole(wide_plan(lanes))) as a,
                Testbed(target, Served.whole(standard_plan())) as b,
            ):
                labels = (f"{target.value}, {lanes} lanes", a), (f"{BANK_LANES} lanes", b)
                yield saturated(NAME, settings, *labels, ratio, numbers=True)
