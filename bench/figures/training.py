# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Epochs on links that are the bottleneck: the switch compared with host-based exchange."""

from collections.abc import Callable, Iterator
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
from switchgnn.planner.graphs.boundary import boundary_edges
from switchgnn.topologies import FabricKind, Target
from switchgnn.topologies.mininet_fabric import mininet_missing
from switchgnn.topologies.nursery import Nursery

if TYPE_CHECKING:
    from switchgnn.commands.train.report import TrainReport

NAME = "training"
# Mininet makes its own namespaces.
OWN_NAMESPACE = False

# Boundary vertices have more than five remote copies each; the note gives the number.
_GRAPH = "random:1600:25600:1"
_WORKERS = 8
_HIDDEN = 32
_BANDWIDTH = 2.0
_EPOCHS = 4
_RIVALS = {HOST.name: 0.5, HOST_PARTIAL.name: 1.0}
_BYTES_OFF = 1.01
_STEPS = "switchgnn.commands.train.steps"


def missing() -> str | None:
    """Return what the machine lacks for this figure."""
    for package in ("torch", "torch_geometric"):
        if find_spec(package) is None:
            return f"needs {package} (pip install 'switchgnn[training]')"
    return lacks() or mininet_missing()


def run(settings: Settings) -> Iterator[Line]:
    """Measure on the targets that are installed."""
    targets = [Target.EMBEDDED] + ([Target.BMV2] if lacks(bmv2=True) is None else [])
    for target in targets:
        yield from _lines(settings, target)


def _lines(settings: Settings, target: Target) -> Iterator[Line]:
    reports: dict[str, list[TrainReport]] = {name: [] for name in (SWITCH.name, *_RIVALS)}
    train, copies = _training(target)
    for _ in range(settings.pairs):
        for transport, made in reports.items():
            made.append(train(transport))
    ours = reports[SWITCH.name]
    what = f"{_GRAPH}, {_WORKERS} workers, {_BANDWIDTH:g} Mbit/s, {target.value}"
    for rival, most in _RIVALS.items():
        yield Line(
            NAME,
            f"{what}: epoch",
            "s",
            Samples(SWITCH.name, tuple(report.epoch_seconds for report in ours)),
            Samples(rival, tuple(report.epoch_seconds for report in reports[rival])),
            Goal(ratio_most=most),
            note=f"{copies:.1f} remote copies of a boundary vertex on average",
        )
    yield Line(
        NAME,
        f"{what}: bytes of all exchanges",
        "MB",
        Samples(SWITCH.name, tuple(report.total_bytes / 1e6 for report in ours)),
        Samples("predicted by the plan", tuple(report.expected_bytes / 1e6 for report in ours)),
        Goal(ratio_most=_BYTES_OFF),
    )


def _training(target: Target) -> "tuple[Callable[[str], TrainReport], float]":
    """Return a function that trains over a transport, and the remote copies per boundary vertex."""
    from switchgnn.commands.train.job import TrainJob, default_task  # noqa: PLC0415
    from switchgnn.commands.train.steps import run_training  # noqa: PLC0415
    from switchgnn.planner import partition_workers  # noqa: PLC0415
    from switchgnn.planner.chosen import Asked  # noqa: PLC0415
    from switchgnn.training import load_dataset  # noqa: PLC0415
    from switchgnn.training.layers.models import ModelOptions  # noqa: PLC0415
    from switchgnn.training.trainer import TrainOptions  # noqa: PLC0415

    data = load_dataset(_GRAPH)
    boundary = boundary_edges(data.graph, partition_workers(data.graph, _WORKERS, seed=0))
    copies = len(boundary.host_copies()[0]) / len(boundary.vertices())

    def train(transport: str) -> "TrainReport":
        job = TrainJob(
            task=default_task(
                transport=transport,
                model=ModelOptions("gcn", 2, _HIDDEN, 0.0),
                options=TrainOptions(epochs=_EPOCHS, evaluate_every=_EPOCHS),
                pace=Pace(patience=60.0),
            ),
            workers=_WORKERS,
            slots=load_program().slots,
            asked=Asked(partition="metis"),
            target=target.value,
            fabric=FabricKind.MININET.value,
            bandwidth=_BANDWIDTH,
            ecn_threshold=DEFAULT_ECN_THRESHOLD,
        )
        # A process of its own: PyTorch may have computed in this one.
        with Nursery([_STEPS], ENVIRONMENT) as nursery:
            return run_training(job, data, lambda *_: None, lambda _: None, nursery=nursery)

    return train, copies
