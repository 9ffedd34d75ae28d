"""All-reduces in the switch, compared with Gloo's ring on the same links."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bench.line import Goal, ResultLine
from bench.loads.gloo_worker import RingReport, reduce_in_ring
from bench.loads.training import WORKERS, TrainingSetting, job_of, lacks_shaped_training, train
from bench.measure import Samples, alternate
from bench.settings import Settings
from switchgnn.host.base.pace import Pace
from switchgnn.host.registry import SWITCH
from switchgnn.jobs.allreduce import ReduceOptions, ReduceReport, run_allreduce
from switchgnn.topologies import Fabric, FabricKind, Target, usual_limits

NAME = "allreduce"
# Mininet makes its own namespaces.
OWN_NAMESPACE = False

_BYTES = 4_000_000
_BANDWIDTH = 20.0
_ROUNDS = 2
_BYTES_OFF, _SHAPED, _UNSHAPED = 0.92, 0.8, 1.0
_LOSS, _RATE = 0.01, 0.6
# The data set of `make run`, unless another is given.
_GRAPH = "digits"
_SLOW, _EPOCHS, _LONG = 2.0, 5, 100
_LOSSES_OFF = 1e-5
missing = lacks_shaped_training


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure on the embedded switch, in Mininet."""
    yield from _beside_gloo(settings)
    yield _with_loss(settings)
    yield from _in_training(settings)


def _options(bandwidth: float | None, faults: str = "") -> ReduceOptions:
    target, fabric = Target.EMBEDDED, FabricKind.MININET
    limits = usual_limits(target, shaped=bandwidth is not None)
    return ReduceOptions(
        workers=WORKERS,
        slots=0,
        target=target.value,
        fabric=fabric.value,
        bandwidth=bandwidth,
        ecn_threshold=limits.ecn_threshold,
        queue=limits.queue,
        elements=_BYTES // 4,
        rounds=_ROUNDS,
        seed=1,
        pace=Pace(window=limits.window),
        faults=faults,
    )


def _reduced(options: ReduceOptions) -> ReduceReport:
    return run_allreduce(options, lambda *_: None)


def _reduced_twice(options: ReduceOptions) -> tuple[ReduceReport, RingReport]:
    """Reduce in the switch, and then in Gloo's ring over the same links."""
    rings: list[RingReport] = []

    def hold(fabric: Fabric) -> None:
        rings.append(reduce_in_ring(fabric, options))

    return run_allreduce(options, lambda *_: None, hold=hold), rings[0]


def _beside_gloo(settings: Settings) -> Iterator[ResultLine]:
    """Compare times on slow and fast links; each job runs the switch and then Gloo."""
    for bandwidth, most in ((_BANDWIDTH, _SHAPED), (None, _UNSHAPED)):
        yield from all_reduces(NAME, settings, bandwidth, most)


def all_reduces(
    figure: str, settings: Settings, bandwidth: float | None, most: float, size: int = _BYTES
) -> Iterator[ResultLine]:
    """Compare an all-reduce in Mininet with Gloo's, by time, and on slow links by bytes."""
    what = f"{size / 1e6:g} MB, {WORKERS} workers"
    options = replace(_options(bandwidth), elements=size // 4)
    reports, rings = zip(*(_reduced_twice(options) for _ in range(settings.pairs)), strict=True)
    links = "no limit" if bandwidth is None else f"{bandwidth:g} Mbit/s"
    yield ResultLine(
        figure,
        f"{what}, {links}: time of an all-reduce",
        "s",
        Samples(SWITCH.name, tuple(each.seconds for each in reports)),
        Samples("gloo", tuple(each.seconds for each in rings)),
        Goal(ratio_most=most),
    )
    if bandwidth is not None:
        payload = 2 * size / max(each.bytes_per_link for each in reports)
        yield ResultLine(
            figure,
            f"{what}: bytes on the busiest link",
            "MB",
            Samples(SWITCH.name, tuple(each.bytes_per_link / 1e6 for each in reports)),
            Samples("gloo", tuple(each.bytes_per_link / 1e6 for each in rings)),
            Goal(ratio_most=_BYTES_OFF),
            f"{payload:.3f} of them are numbers",
        )


def _with_loss(settings: Settings) -> ResultLine:
    def seconds(loss: float) -> float:
        faults = f"loss={loss},seed=1"
        return _reduced(_options(_BANDWIDTH, faults)).seconds

    # Injecting faults itself takes time.
    none, some = alternate(
        settings.pairs,
        ("none", lambda: seconds(1e-12)),
        (f"{_LOSS:.0%} lost", lambda: seconds(_LOSS)),
    )
    what = f"{_BANDWIDTH:g} Mbit/s, {_LOSS:.0%} of all frames lost: rate against none"
    return ResultLine(NAME, what, "s", none, some, Goal(ratio=_RATE))


def _in_training(settings: Settings) -> Iterator[ResultLine]:
    """Compare the share of an epoch, and the losses of a long training."""
    from switchgnn.training import load_dataset  # noqa: PLC0415
    from switchgnn.training.base.options import ReduceBy  # noqa: PLC0415

    graph = _GRAPH if settings.data is None else str(settings.data)
    data = load_dataset(graph)
    both = ReduceBy.SWITCH, ReduceBy.GLOO
    seconds: dict[ReduceBy, list[float]] = {each: [] for each in both}
    setting = TrainingSetting(graph, _EPOCHS, Target.EMBEDDED, FabricKind.MININET, _SLOW, hidden=16)
    for _ in range(settings.pairs):
        for by, found in seconds.items():
            job = job_of(setting, SWITCH.name)
            report = train(replace(job, task=replace(job.task, reduce=by)), data)
            found.append(report.split["all_reduce"])
    yield ResultLine(
        NAME,
        f"{graph}, {WORKERS} workers, {_SLOW:g} Mbit/s: time of gradients in an epoch",
        "s",
        *(Samples(by.value, tuple(found)) for by, found in seconds.items()),
        Goal(ratio_most=_SHAPED),
    )
    long = replace(setting, epochs=_LONG, bandwidth=None, fabric=FabricKind.LOOPBACK)
    losses = []
    for by in both:
        job = job_of(long, SWITCH.name)
        losses.append(train(replace(job, task=replace(job.task, reduce=by)), data).losses)
    apart = float(np.abs(np.subtract(*losses)).max())
    what = f"{graph}, {_LONG} epochs: largest difference of losses between switch and gloo"
    yield ResultLine(NAME, what, "", Samples("difference", (apart,)), goal=Goal(most=_LOSSES_OFF))
