"""All-reduces of a wide model beside exchanges: in classes of their own, first-come, and after."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bench.line import Goal, ResultLine
from bench.loads.training import TrainingSetting, job_of, lacks_shaped_training, train
from bench.measure import Samples
from bench.settings import Settings
from switchgnn.host.registry import SWITCH
from switchgnn.planner.graphs.graph import graph_from_edges
from switchgnn.topologies import FabricKind, Target

if TYPE_CHECKING:
    from switchgnn.training.buckets import Overlap
    from switchgnn.training.data.dataset import Dataset

NAME = "priorities"
# Mininet makes its own namespaces.
OWN_NAMESPACE = False

# A mesh of a simulation: a cube whose points have six neighbours.
_SIDE, _FEATURES, _CLASSES = 24, 64, 8
_WORKERS, _LAYERS, _HIDDEN, _EPOCHS = 4, 4, 512, 11
_BANDWIDTH = 20.0
_MOST = 0.9
missing = lacks_shaped_training


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure on the embedded switch, in Mininet."""
    from switchgnn.training import load_dataset  # noqa: PLC0415
    from switchgnn.training.buckets import Overlap  # noqa: PLC0415

    data = mesh() if settings.data is None else load_dataset(str(settings.data))
    seconds: dict[Overlap, list[float]] = {each: [] for each in Overlap}
    for _ in range(settings.pairs):
        for overlap, found in seconds.items():
            found.append(_epoch_seconds(data, overlap))
    ours, *others = (Samples(each.value, tuple(found)) for each, found in seconds.items())
    what = f"{data.name}, {_WORKERS} workers, {_LAYERS} layers of {_HIDDEN}, {_BANDWIDTH:g} Mbit/s"
    for other, goal in zip(others, (Goal(ratio_most=_MOST), Goal()), strict=True):
        yield ResultLine(NAME, f"{what}: epoch", "s", ours, other, goal)


def _epoch_seconds(data: "Dataset", overlap: "Overlap") -> float:
    """Return the mean without the first epoch, with what the last one waits for."""
    setting = TrainingSetting(
        *(data.name, _EPOCHS, Target.EMBEDDED, FabricKind.MININET, _BANDWIDTH),
        layers=_LAYERS,
        hidden=_HIDDEN,
    )
    job = replace(job_of(setting, SWITCH.name), workers=_WORKERS)
    training = replace(job.task.training, overlap=overlap)
    report = train(replace(job, task=replace(job.task, training=training)), data)
    return sum(report.seconds[1:]) / (len(report.seconds) - 1)


def mesh() -> "Dataset":
    """Return a cube whose vertices have random features and the classes of its layers."""
    from switchgnn.training.data.dataset import Dataset, split_vertices  # noqa: PLC0415

    vertices = _SIDE**3
    ids = np.arange(vertices).reshape((_SIDE,) * 3)
    ends = [(np.delete(ids, -1, axis), np.delete(ids, 0, axis)) for axis in range(3)]
    sides = zip(*ends, strict=True)
    source, destination = (np.concatenate([each.ravel() for each in side]) for side in sides)
    name = f"mesh of {vertices:,}"
    graph = graph_from_edges(source, destination, name=name, vertices=vertices, directed=False)
    labels = np.arange(vertices) * _CLASSES // vertices
    random, split = np.random.default_rng(0), split_vertices(labels, 0)
    features = random.standard_normal((_CLASSES, _FEATURES))[labels]
    features += random.standard_normal((vertices, _FEATURES))
    masks = (split.train, split.validation, split.test)
    return Dataset(graph, features.astype(np.float32), labels, *masks, _CLASSES)
