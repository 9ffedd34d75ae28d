"""The embedded switch compared with BMv2, and its two back ends."""

from collections.abc import Iterator

from bench.figures.data_plane import exchanging, saturated
from bench.line import ResultLine
from bench.machine import lacks, lacks_bmv2
from bench.settings import Settings
from bench.testbeds.testbed import Served, Testbed
from bench.testbeds.workload import standard_plan
from switchgnn.base.native import find_compiler
from switchgnn.topologies import Backend, Target

NAME = "embedded"
_SATURATED = 20.0
_EXCHANGING = 6.0
_NATIVE = 8.0
missing = lacks


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure both targets, and both back ends of the embedded switch."""
    plan = standard_plan()
    served = Served.whole(plan)
    if lacks_bmv2() is None:
        with Testbed(Target.EMBEDDED, served) as a, Testbed(Target.BMV2, served) as b:
            both = ("embedded", a), ("BMv2", b)
            yield saturated(NAME, settings, *both, _SATURATED)
            yield exchanging(NAME, settings, *both, _EXCHANGING)
    if find_compiler() is not None:
        with (
            Testbed(Target.EMBEDDED, served, Backend.NATIVE) as a,
            Testbed(Target.EMBEDDED, served, Backend.PYTHON) as b,
        ):
            yield saturated(NAME, settings, ("native", a), ("Python", b), _NATIVE)
