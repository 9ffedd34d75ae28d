"""The exchange on shaped links that TCP fills, with congestion control and without."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from bench.line import Goal, ResultLine
from bench.machine import lacks_bmv2
from bench.measure import Samples
from bench.settings import Settings
from bench.testbeds.queue_trace import QueueTrace, QueueWatch, draw
from switchgnn.controller.controls.congestion import BMV2_QUEUE, DEFAULT_ECN_THRESHOLD
from switchgnn.host.base.pace import CongestionRule, Pace
from switchgnn.jobs.run import RunOptions, run_job
from switchgnn.p4src import load_program
from switchgnn.topologies import FabricKind, Target, free_tcp_port
from switchgnn.topologies.mininet_fabric import mininet_missing

NAME = "congestion"
# Mininet makes its own namespaces, and the default buffer can only be set for the machine.
OWN_NAMESPACE = False

_GRAPH = "random:2000:10000:1"
_WORKERS = 4
_WIDTH = 32
_ROUNDS = 6
_BANDWIDTH = 10.0
_FLOWS = 1
# Wider than any queue here, so that without congestion control nothing limits the workers.
_WINDOW = 256
_MOST_ABOVE = 0.5


@dataclass(frozen=True)
class _Result:
    seconds: float
    tcp_megabits: float
    trace: QueueTrace


def missing() -> str | None:
    """Return what the machine lacks for this figure."""
    return lacks_bmv2() or mininet_missing()


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure on BMv2; with ``--plots`` also draw the queues of the median run."""
    results: dict[bool, list[_Result]] = {False: [], True: []}
    for _ in range(settings.pairs):
        for controlled in (False, True):
            results[controlled].append(_measure(controlled))
    without, with_ = results[False], results[True]
    what = f"{_BANDWIDTH:g} Mbit/s, {_FLOWS} TCP flow per link"
    yield ResultLine(
        NAME,
        f"{what}: exchange of {_ROUNDS} rounds",
        "s",
        Samples("without control", tuple(result.seconds for result in without)),
        Samples("with", tuple(result.seconds for result in with_)),
        Goal(ratio=1.0),
    )
    above = [tuple(_above(result) for result in each) for each in (with_, without)]
    yield ResultLine(
        NAME,
        f"{what}: packets that found more than {DEFAULT_ECN_THRESHOLD} waiting",
        "%",
        Samples("with control", above[0]),
        Samples("without", above[1]),
        Goal(most=100 * _MOST_ABOVE),
    )
    yield ResultLine(
        NAME,
        f"{what}: TCP beside it, all flows",
        "Mbit/s",
        Samples("with control", tuple(result.tcp_megabits for result in with_)),
        Samples("without", tuple(result.tcp_megabits for result in without)),
    )
    if settings.plots is not None:
        settings.plots.mkdir(parents=True, exist_ok=True)
        traces = {"without control": _typical(without).trace, "with control": _typical(with_).trace}
        draw(traces, DEFAULT_ECN_THRESHOLD, settings.plots / "congestion.png")


def _above(result: _Result) -> float:
    return 100 * result.trace.share_above(DEFAULT_ECN_THRESHOLD)


def _typical(results: list[_Result]) -> _Result:
    middle = median(result.seconds for result in results)
    return min(results, key=lambda result: abs(result.seconds - middle))


def _measure(controlled: bool) -> _Result:
    port = free_tcp_port()
    rule = CongestionRule.DCTCP if controlled else CongestionRule.NONE
    options = RunOptions(
        graph=_GRAPH,
        workers=_WORKERS,
        features=_WIDTH,
        rounds=_ROUNDS,
        slots=load_program().slots,
        target=Target.BMV2.value,
        fabric=FabricKind.MININET.value,
        bandwidth=_BANDWIDTH,
        seed=0,
        grpc_port=port,
        ecn_threshold=DEFAULT_ECN_THRESHOLD,
        queue=BMV2_QUEUE,
        pace=Pace(window=_WINDOW, timeout=60.0, congestion=rule),
        background=_FLOWS,
    )
    with QueueWatch(f"127.0.0.1:{port}") as watch:
        report = run_job(options, lambda _step, _done, _total: None)
        trace = watch.trace()
    return _Result(report.seconds, report.background_bytes * 8 / report.seconds / 1e6, trace)
