"""BMv2 with banks compared with BMv2 with one slot per pass and 32 registers."""

from collections.abc import Iterator

from bench.figures.data_plane import exchanging, saturated
from bench.line import ResultLine
from bench.machine import lacks_bmv2
from bench.settings import Settings
from bench.testbeds.plain_program import plain_program, plain_switch_part
from bench.testbeds.testbed import Served, Testbed
from bench.testbeds.workload import standard_plan
from switchgnn.topologies import Target

NAME = "banks"
_RATIO = 4.0
missing = lacks_bmv2


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure both programs."""
    plan = standard_plan()
    banks = Served.whole(plan)
    plain = Served(plan, plain_switch_part(plan.switch), plain_program())
    with Testbed(Target.BMV2, banks) as a, Testbed(Target.BMV2, plain) as b:
        for compare in (saturated, exchanging):
            yield compare(NAME, settings, ("8 banks", a), ("32 registers", b), _RATIO)
