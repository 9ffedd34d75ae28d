# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Epochs over what `--transport auto` takes, compared with the best transport of each graph."""

from collections.abc import Iterator

from bench.line import Goal, Line
from bench.loads.training import WORKERS, Setting, Trainings, job_of, lacks_training
from bench.settings import Settings
from switchgnn.host.registry import HOST, HOST_PARTIAL, SWITCH
from switchgnn.topologies import FabricKind, Target

NAME = "auto"
OWN_NAMESPACE = False

_GRAPHS = (
    *("digits", "digits:80", "digits:160"),
    *("random:2000:20000:1", "random:1000:100000:1", "random:4000:200000:1"),
)
_BANDWIDTH = 20.0
_EPOCHS, _LAYERS, _HIDDEN = 10, 3, 64
_RATIO = 1.1
_KINDS = (SWITCH, HOST_PARTIAL, HOST)


def missing() -> str | None:
    """Return what the machine lacks for this figure."""
    return lacks_training()


def run(settings: Settings) -> Iterator[Line]:
    """Train on each graph over each transport that `auto` may take."""
    graphs = _GRAPHS if settings.data is None else (*_GRAPHS, str(settings.data))
    for graph in graphs:
        yield _compared(settings, graph)


def _compared(settings: Settings, graph: str) -> Line:
    from switchgnn.commands.train.plan import predict_transport  # noqa: PLC0415
    from switchgnn.training import load_dataset  # noqa: PLC0415

    setting = Setting(
        *(graph, _EPOCHS, Target.EMBEDDED, FabricKind.LOOPBACK),
        *(_BANDWIDTH, _LAYERS, _HIDDEN),
    )
    job = job_of(setting, SWITCH.name)
    chosen = predict_transport(job, load_dataset(graph), lambda _: None).chosen
    trainings = Trainings(settings, setting, [kind.name for kind in _KINDS])
    best = min(_KINDS, key=lambda kind: trainings.epoch_seconds(kind.name).median)
    taken, fastest = (trainings.epoch_seconds(kind.name) for kind in (chosen, best))
    what = f"{graph}, {WORKERS} workers, {_LAYERS} layers of {_HIDDEN}, {_BANDWIDTH:g} Mbit/s"
    return Line(NAME, f"{what}: epoch", "s", taken, fastest, Goal(ratio_most=_RATIO))
