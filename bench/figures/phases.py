"""Simulated exchanges between hosts in phases, beside the usual order and the thesis' phases."""

from collections.abc import Iterator
from itertools import product

from bench.line import Goal, ResultLine
from bench.machine import lacks_compiler
from bench.measure import Samples
from bench.settings import Settings
from switchgnn.base.array_types import Int64s
from switchgnn.host.base.pace import CongestionRule
from switchgnn.host.direct.framing import Framing
from switchgnn.lab.simulator.request import NetworkOptions
from switchgnn.lab.simulator.setup import host_setup
from switchgnn.lab.simulator.simulation import run_simulation
from switchgnn.planner import boundary_edges, load_graph, partition_workers
from switchgnn.planner.sending.between_hosts import rows_between
from switchgnn.planner.sending.phases import PhaseMaker, greedy_phases, shortest_phases

NAME = "phases"
OWN_NAMESPACE = False

_GRAPHS, _WORKERS = ("digits:80", "random:2000:20000:1", "reddit-like:0.01:0"), (8, 32)
_WIDTH, _FRAMING = 602, Framing()
# Windows are open, as earlier exchanges leave them; with 100 Gbit/s they would be the limit.
_NETWORK = NetworkOptions(bandwidth=10_000, congestion=CongestionRule.NONE)
_MOST_OF_BOUND, _MOST_OF_QUEUE = 1.05, 0.3
_BITS, _MEGA, _MICRO, _KILO = 8, 1e6, 1e-6, 1e3
missing = lacks_compiler


def run(settings: Settings) -> Iterator[ResultLine]:
    """Simulate exchanges of copies, which take the same time whenever they are simulated."""
    for graph, workers in product(_GRAPHS, _WORKERS[: None if settings.pairs > 1 else 1]):
        loaded = load_graph(graph)
        edges = boundary_edges(loaded, partition_workers(loaded, workers, 0))
        rows = rows_between(edges, workers)
        bound, usual, queue = _simulated(rows, None)
        for name, phases in (("phases", shortest_phases), ("Algorithm 3", greedy_phases)):
            ours = name == "phases"
            _, seconds, longest = _simulated(rows, phases)
            what = f"{graph}, {workers} workers, {name}"
            yield ResultLine(
                NAME,
                f"{what}: exchange",
                "µs",
                Samples(name, (seconds / _MICRO,)),
                Samples("bound", (bound / _MICRO,)),
                Goal(ratio_most=_MOST_OF_BOUND) if ours else Goal(),
                f"usual order: {usual / bound:.3f} times the bound",
            )
            yield ResultLine(
                NAME,
                f"{what}: longest queue",
                "kB",
                Samples(name, (longest / _KILO,)),
                Samples("usual order", (queue / _KILO,)),
                Goal(ratio_most=_MOST_OF_QUEUE) if ours else Goal(),
            )


def _simulated(rows: Int64s, phases: PhaseMaker | None) -> tuple[float, float, float]:
    """Return the seconds of the bound and of the exchange, and the bytes of the longest queue.

    The bound is the busiest link's bytes over its rate, and the way of a frame and its ACK.
    """
    found = run_simulation(
        host_setup(rows, _WIDTH, _NETWORK.pace, _FRAMING, phases=phases), _NETWORK
    )
    links = max(*found.bytes_up, *found.bytes_down)
    way = 4 * _NETWORK.delay * _MICRO
    last = links + _FRAMING.packet_bytes
    return (
        last * _BITS / (_NETWORK.bandwidth * _MEGA) + way,
        found.seconds,
        (found.max_port_queue_bytes),
    )
