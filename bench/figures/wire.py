"""Exchanges compared with their busiest link, packed hosts and loopback, and an all-reduce."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from bench.figures.allreduce import all_reduces
from bench.line import Goal, ResultLine
from bench.loads.training import Trainings, TrainingSetting, lacks_training, train_over
from bench.measure import Samples, alternate
from bench.settings import Settings
from switchgnn.host.registry import HOST_PARTIAL, SWITCH
from switchgnn.topologies import FabricKind, Target
from switchgnn.topologies.mininet_fabric import mininet_missing

if TYPE_CHECKING:
    from switchgnn.jobs.train_report import TrainReport

NAME = "wire"
OWN_NAMESPACE = False

_GRAPH = "digits:80"
_EPOCHS = 16
_LAYERS = 3
_BANDWIDTHS = (5.0, 20.0, 100.0)
_IN_MININET = 20.0
_AS_ON_LOOPBACK, _ALL_REDUCE = 1.15, 0.8
_ALL_REDUCE_BYTES = (1_000_000, 4_000_000)
# Epochs with gradients in Mininet against `host-partial`.
_EPOCH_GOALS = (0.75, 0.8)
_BITS = 8
_MEGA, _MILLI = 1e6, 1e-3
# Of the larger of two graphs at 5 and 20 Mbit/s, and of the smaller one, where processors count.
_GOALS = {5.0: 1.05, 20.0: 1.1}
_SMALL_GOALS = {5.0: 1.1, 20.0: 1.4}
missing = lacks_training


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure on the embedded switch over loopback, and beside it in Mininet where that is."""
    graphs = [(_GRAPH, 64, _SMALL_GOALS, _EPOCH_GOALS[0])]
    if settings.data is not None:
        graphs.append((str(settings.data), 128, _GOALS, _EPOCH_GOALS[1]))
    for graph, hidden, goals, epoch in graphs:
        made = partial(TrainingSetting, graph, _EPOCHS, Target.EMBEDDED)
        for bandwidth in _BANDWIDTHS:
            setting = made(FabricKind.LOOPBACK, bandwidth, _LAYERS, hidden)
            yield from _compare(settings, setting, goals.get(bandwidth))
        if mininet_missing() is None:
            setting = made(FabricKind.MININET, _IN_MININET, _LAYERS, hidden)
            yield from _beside_loopback(settings, setting, epoch)
    if mininet_missing() is None:
        for size in _ALL_REDUCE_BYTES:
            yield from all_reduces(NAME, settings, _IN_MININET, _ALL_REDUCE, size)


def _beside_loopback(
    settings: Settings, setting: TrainingSetting, most: float
) -> Iterator[ResultLine]:
    """Compare exchanges with those on loopback in pairs, and epochs with those over hosts."""
    from switchgnn.training import load_dataset  # noqa: PLC0415

    data = load_dataset(setting.graph)

    def exchanges(fabric: FabricKind) -> float:
        report = train_over(replace(setting, fabric=fabric), data, SWITCH.name)
        return (report.exchange_seconds or 0.0) / _MILLI

    both = (setting.fabric, FabricKind.LOOPBACK)
    taken = alternate(settings.pairs, *((each.value, partial(exchanges, each)) for each in both))
    what = f"{setting.words}: exchanges of an epoch"
    yield ResultLine(NAME, what, "ms", *taken, Goal(ratio_most=_AS_ON_LOOPBACK))
    trainings = Trainings(settings, setting, (SWITCH.name, HOST_PARTIAL.name))
    yield trainings.epochs(NAME, setting.words, HOST_PARTIAL.name, most)


def _compare(
    settings: Settings, setting: TrainingSetting, most: float | None
) -> Iterator[ResultLine]:
    trainings = Trainings(settings, setting, (SWITCH.name, HOST_PARTIAL.name))
    ours, theirs = (trainings.reports[name] for name in (SWITCH.name, HOST_PARTIAL.name))
    bandwidth = setting.bandwidth or 0.0
    what = f"{setting.words}: exchanges of an epoch"
    wire = Samples("busiest link", tuple(_wire(each, bandwidth) for each in ours))
    taken = _exchanges(SWITCH.name, ours)
    note = "; ".join(_note(each, bandwidth) for each in ours)
    yield ResultLine(NAME, what, "ms", taken, wire, Goal(ratio_most=most), note)
    yield ResultLine(NAME, what, "ms", taken, _exchanges(HOST_PARTIAL.name, theirs))


def _exchanges(name: str, reports: "list[TrainReport]") -> Samples:
    return Samples(name, tuple((each.exchange_seconds or 0.0) / _MILLI for each in reports))


def _wire(report: "TrainReport", bandwidth: float) -> float:
    """Return the milliseconds that the busiest direction of a link needs for an epoch."""
    directions = ("bytes_up", "bytes_down")
    most = max(link[direction] for link in report.epoch_traffic for direction in directions)
    return most * _BITS / (bandwidth * _MEGA) / _MILLI


def _note(report: "TrainReport", bandwidth: float) -> str:
    up = max(link["bytes_up"] for link in report.epoch_traffic)
    idle = (report.exchange_seconds or 0.0) / _MILLI - up * _BITS / (bandwidth * _MEGA) / _MILLI
    told = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in report.troubles.items())
    return f"busiest uplink idle for {idle:.0f} ms; in {_EPOCHS} epochs {told}"
