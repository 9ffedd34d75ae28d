# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Epochs of the switch compared with host-based exchange.

On links that are the bottleneck, and on links as fast as the machine can.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from bench.line import Goal, Line
from bench.machine import lacks
from bench.measure import Samples
from bench.settings import Settings
from switchgnn.commands.train.nursery import ENVIRONMENT
from switchgnn.controller.controls.congestion import DEFAULT_ECN_THRESHOLD
from switchgnn.host.pace import Pace
from switchgnn.host.registry import HOST, HOST_PARTIAL, SWITCH
from switchgnn.p4src import load_program
from switchgnn.planner import partition_workers
from switchgnn.planner.graphs.boundary import boundary_edges
from switchgnn.topologies import FabricKind, Target
from switchgnn.topologies.mininet_fabric import mininet_missing
from switchgnn.topologies.nursery import Nursery

if TYPE_CHECKING:
    from switchgnn.commands.train.report import TrainReport
    from switchgnn.training.data.dataset import Dataset

    _Reports = dict[str, list[TrainReport]]

NAME = "training"
# Mininet makes its own namespaces.
OWN_NAMESPACE = False

# Boundary vertices have more than five remote copies each; the note gives the number.
_GRAPH = "random:1600:25600:1"
# What `make run` trains on.
_UNSHAPED_GRAPH = "digits:80"
_WORKERS = 8
_HIDDEN = 32
_BANDWIDTH = 2.0
_EPOCHS = 4
_UNSHAPED_EPOCHS = 20
_RIVALS = {HOST.name: 0.5, HOST_PARTIAL.name: 1.0}
_UNSHAPED = 1.0
_BYTES_OFF = 1.01
_STEPS = "switchgnn.commands.train.steps"


def missing() -> str | None:
    """Return what the machine lacks for this figure."""
    for package in ("torch", "torch_geometric"):
        if find_spec(package) is None:
            return f"needs {package} (pip install 'switchgnn[training]')"
    return lacks()


def run(settings: Settings) -> Iterator[Line]:
    """Measure on the targets that are installed."""
    yield _unshaped(settings)
    if mininet_missing() is None:
        targets = [Target.EMBEDDED] + ([Target.BMV2] if lacks(bmv2=True) is None else [])
        for target in targets:
            yield from _shaped(settings, target)


def _unshaped(settings: Settings) -> Line:
    from switchgnn.training import load_dataset  # noqa: PLC0415

    setting = _Setting(_UNSHAPED_GRAPH, _UNSHAPED_EPOCHS, Target.EMBEDDED, FabricKind.LOOPBACK)
    data = load_dataset(setting.graph)
    reports = _alternate(settings, setting, data, (SWITCH.name, HOST.name))
    what = f"{_UNSHAPED_GRAPH}, {_WORKERS} workers"
    return _epochs(reports, what, HOST.name, _UNSHAPED, _copies(data))


def _shaped(settings: Settings, target: Target) -> Iterator[Line]:
    from switchgnn.training import load_dataset  # noqa: PLC0415

    setting = _Setting(_GRAPH, _EPOCHS, target, FabricKind.MININET, _BANDWIDTH)
    data = load_dataset(setting.graph)
    reports = _alternate(settings, setting, data, (SWITCH.name, *_RIVALS))
    what = f"{_GRAPH}, {_WORKERS} workers, {_BANDWIDTH:g} Mbit/s, {target.value}"
    for rival, most in _RIVALS.items():
        yield _epochs(reports, what, rival, most, _copies(data))
    ours = reports[SWITCH.name]
    yield Line(
        NAME,
        f"{what}: bytes of all exchanges",
        "MB",
        Samples(SWITCH.name, tuple(report.total_bytes / 1e6 for report in ours)),
        Samples("predicted by the plan", tuple(report.expected_bytes / 1e6 for report in ours)),
        Goal(ratio_most=_BYTES_OFF),
    )


def _epochs(reports: "_Reports", what: str, rival: str, most: float, note: str) -> Line:
    return Line(
        NAME,
        f"{what}: epoch",
        "s",
        Samples(SWITCH.name, tuple(report.epoch_seconds for report in reports[SWITCH.name])),
        Samples(rival, tuple(report.epoch_seconds for report in reports[rival])),
        Goal(ratio_most=most),
        note=note,
    )


def _copies(data: "Dataset") -> str:
    boundary = boundary_edges(data.graph, partition_workers(data.graph, _WORKERS, seed=0))
    copies = len(boundary.host_copies()[0]) / len(boundary.vertices())
    return f"{copies:.1f} remote copies of a boundary vertex on average"


@dataclass(frozen=True)
class _Setting:
    graph: str
    epochs: int
    target: Target
    fabric: FabricKind
    bandwidth: float | None = None


def _alternate(
    settings: Settings, setting: _Setting, data: "Dataset", transports: Sequence[str]
) -> "_Reports":
    """Train over each transport in turn, as often as pairs are measured."""
    reports: _Reports = {transport: [] for transport in transports}
    for _ in range(settings.pairs):
        for transport, made in reports.items():
            made.append(_train(setting, data, transport))
    return reports


def _train(setting: _Setting, data: "Dataset", transport: str) -> "TrainReport":
    from switchgnn.commands.train.job import TrainJob, default_task  # noqa: PLC0415
    from switchgnn.commands.train.steps import run_training  # noqa: PLC0415
    from switchgnn.planner.chosen import Asked  # noqa: PLC0415
    from switchgnn.training.layers.models import ModelOptions  # noqa: PLC0415
    from switchgnn.training.trainer import TrainOptions  # noqa: PLC0415

    job = TrainJob(
        task=default_task(
            transport=transport,
            model=ModelOptions("gcn", 2, _HIDDEN, 0.0),
            options=TrainOptions(epochs=setting.epochs, evaluate_every=setting.epochs),
            pace=Pace(patience=60.0),
        ),
        workers=_WORKERS,
        slots=load_program().slots,
        asked=Asked(partition="metis"),
        target=setting.target.value,
        fabric=setting.fabric.value,
        bandwidth=setting.bandwidth,
        ecn_threshold=DEFAULT_ECN_THRESHOLD,
    )
    # A process of its own: PyTorch may have computed in this one.
    with Nursery([_STEPS], ENVIRONMENT) as nursery:
        return run_training(job, data, lambda *_: None, lambda _: None, nursery=nursery)
