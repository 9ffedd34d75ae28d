"""The stream of one worker's all-reduce, compared with the frames that the kernel can carry."""

from collections.abc import Iterator

import numpy as np

from bench.line import Goal, ResultLine
from bench.loads.frames import echo, stream_rate
from bench.machine import lacks
from bench.measure import alternate
from bench.settings import Settings
from bench.testbeds.testbed import Served, Testbed
from switchgnn.host.wire.link import open_link
from switchgnn.p4src import load_program
from switchgnn.planner import build_plan, graph_from_edges
from switchgnn.topologies import Target

NAME = "stream"

_FRAGMENTS = 20_000
_OF_KERNEL = 0.5
missing = lacks


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure one stream, and as many frames to a process that returns them."""
    nothing = np.zeros(0, dtype=np.int64)
    graph = graph_from_edges(nothing, nothing, name="none", vertices=1, directed=False)
    program = load_program()
    plan = build_plan(graph, workers=1, slots=8, program=program.digest)
    number = plan.manifest.number
    with (
        Testbed(Target.EMBEDDED, Served.whole(plan)) as testbed,
        open_link(testbed.fabric.worker_link(0)) as link,
        echo() as kernel,
    ):

        def stream() -> float:
            session = {"session": testbed.session, "plan": number}
            return stream_rate(link, testbed.addresses(0), fragments=_FRAGMENTS, **session) / 1e6

        ours, theirs = alternate(
            settings.pairs, ("stream", stream), ("kernel", lambda: kernel(_FRAGMENTS) / 1e6)
        )
    what = "one worker: numbers added, against those in frames that come back"
    yield ResultLine(NAME, what, "million/s", ours, theirs, Goal(ratio=_OF_KERNEL))
