"""Exchanges compared with the time that the busiest link is busy, and with packed hosts."""

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

from bench.line import Goal, ResultLine
from bench.loads.training import WORKERS, Trainings, TrainingSetting, lacks_training
from bench.measure import Samples
from bench.settings import Settings
from switchgnn.host.registry import HOST_PARTIAL, SWITCH
from switchgnn.topologies import FabricKind, Target
from switchgnn.topologies.mininet_fabric import mininet_missing

if TYPE_CHECKING:
    from switchgnn.commands.train.report import TrainReport

NAME = "wire"
OWN_NAMESPACE = False

_GRAPH = "digits:80"
_EPOCHS = 16
_LAYERS = 3
_BANDWIDTHS = (5.0, 20.0, 100.0)
_IN_MININET = 20.0
_BITS = 8
_MEGA, _MILLI = 1e6, 1e-3
# Of the larger of two graphs at 5 and 20 Mbit/s, and of the smaller one, where processors count.
_GOALS = {5.0: 1.05, 20.0: 1.1}
_SMALL_GOALS = {5.0: 1.1, 20.0: 1.4}
missing = lacks_training


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure on the embedded switch over loopback, and once in Mininet where it can be had."""
    graphs = [(_GRAPH, 64, _SMALL_GOALS)]
    if settings.data is not None:
        graphs.append((str(settings.data), 128, _GOALS))
    networks = [*product([FabricKind.LOOPBACK], _BANDWIDTHS)]
    if mininet_missing() is None:
        networks.append((FabricKind.MININET, _IN_MININET))
    for (graph, hidden, goals), (fabric, bandwidth) in product(graphs, networks):
        setting = TrainingSetting(
            graph, _EPOCHS, Target.EMBEDDED, fabric, bandwidth, _LAYERS, hidden
        )
        yield from _compare(settings, setting, goals.get(bandwidth))


def _compare(
    settings: Settings, setting: TrainingSetting, most: float | None
) -> Iterator[ResultLine]:
    trainings = Trainings(settings, setting, (SWITCH.name, HOST_PARTIAL.name))
    ours, theirs = (trainings.reports[name] for name in (SWITCH.name, HOST_PARTIAL.name))
    bandwidth = setting.bandwidth or 0.0
    what = (
        f"{setting.graph}, {WORKERS} workers, {_LAYERS} layers of {setting.hidden}, "
        f"{setting.fabric.value}, {bandwidth:g} Mbit/s: exchanges of an epoch"
    )
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
