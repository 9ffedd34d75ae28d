"""Epochs of SwitchGNN beside those of SAR, which trains the same model on the same partition."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.errors import BenchError
from bench.line import Goal, ResultLine
from bench.loads.training import TrainingSetting, job_of, lacks_training, train
from bench.measure import Samples
from bench.settings import Settings
from switchgnn.host.registry import HOST, HOST_PARTIAL, SWITCH
from switchgnn.jobs.workers import ENVIRONMENT
from switchgnn.topologies import FabricKind, Target

if TYPE_CHECKING:
    from switchgnn.jobs.train import TrainJob
    from switchgnn.planner.plan.plan import Plan
    from switchgnn.training.data.dataset import Dataset

NAME = "peers"
OWN_NAMESPACE = False
# Names the Python interpreter of an environment with SAR, whose DGL needs an older NumPy than ours.
SAR_PYTHON = "SAR_PYTHON"

_WORKERS, _HIDDEN, _EPOCHS = 4, 32, 20
# Graphs, layers, and whether sums of features are kept, which SAR does not do. The last graph has
# as many vertices and edges as Amazon Photo.
_CASES = (
    *(("digits:80", 2, False), ("digits:80", 3, False), ("digits:80", 3, True)),
    ("random:7650:119081:1", 2, False),
)
_SAR = "SAR"
_TRANSPORTS = SWITCH.name, HOST.name, HOST_PARTIAL.name
_SCRIPT = Path(__file__).resolve().parents[1] / "loads/sar_worker.py"
_SECONDS = 300
_LOOK = """
import sys
from importlib.util import find_spec
sys.exit(next((f"there is no {name}" for name in ("sar", "dgl") if find_spec(name) is None), 0))
"""
_LOSSES_OFF = 1e-4


@dataclass(frozen=True)
class _Found:
    """One training."""

    epoch: float  # seconds, the median without the first, of the slowest worker
    megabytes: float  # of an epoch on all links, both ways
    losses: list[float]


def missing() -> str | None:
    """Return what the machine lacks for this figure."""
    lacking = _sar_python("-c", _LOOK)
    needed = f"needs SAR and DGL in the Python that {SAR_PYTHON} names"
    return lacks_training() if lacking is None else f"{needed}: {lacking}"


def _sar_python(*arguments: str) -> str | None:
    """Run the interpreter with SAR; return the last line of its errors if it fails."""
    # SAR leaves out the loopback interface unless it is named.
    environment = os.environ | ENVIRONMENT | {"SAR_SOCKET_NAME": "lo"}
    command = [os.environ.get(SAR_PYTHON) or sys.executable, *arguments]
    try:
        done = subprocess.run(
            command, check=False, env=environment, capture_output=True, text=True, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    return [f"exit code {done.returncode}", *done.stderr.strip().splitlines()][-1]


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure over loopback without limits, on the embedded switch."""
    if settings.data is not None:
        yield from _compared(settings, str(settings.data), 2, kept=False)
    for graph, layers, kept in _CASES:
        yield from _compared(settings, graph, layers, kept=kept)


def _compared(settings: Settings, graph: str, layers: int, *, kept: bool) -> Iterator[ResultLine]:
    from switchgnn.jobs.train import plan_of  # noqa: PLC0415
    from switchgnn.training import load_dataset  # noqa: PLC0415

    data = load_dataset(graph)
    if data.multilabel:
        raise BenchError(f"{graph} has several labels per vertex, which is not compared.")
    job = _job(graph, layers, kept=kept)
    job = replace(job, planned=(planned := plan_of(job, data, lambda _: None)))
    found: dict[str, list[_Found]] = {name: [] for name in (_SAR, *_TRANSPORTS)}
    for _ in range(settings.pairs):
        found[_SAR].append(_with_sar(job, data, planned[1]))
        for name in _TRANSPORTS:
            report = train(replace(job, task=replace(job.task, transport=name)), data)
            made = _Found(report.epoch_seconds, report.epoch_bytes / 1e6, report.losses)
            found[name].append(made)
    times = {name: Samples(name, tuple(x.epoch for x in made)) for name, made in found.items()}
    sent = {name: Samples(name, tuple(x.megabytes for x in made)) for name, made in found.items()}
    best = min(_TRANSPORTS, key=lambda name: times[name].median)
    what = f"{graph}, {_WORKERS} workers, {layers} layers of {_HIDDEN}" + ", sums kept" * kept
    for name in found:
        if name != best:
            goal = Goal(ratio=1.0) if name == _SAR else Goal()
            yield ResultLine(NAME, f"{what}: epoch", "s", times[name], times[best], goal)
    least = min(_TRANSPORTS, key=lambda name: sent[name].median)
    yield ResultLine(NAME, f"{what}: sent in an epoch", "MB", sent[_SAR], sent[least])
    losses = [each.losses for made in found.values() for each in made]
    apart = float(np.ptp(losses, axis=0).max())
    what += f": largest difference of losses in {_EPOCHS} epochs"
    yield ResultLine(NAME, what, "", Samples("all", (apart,)), goal=Goal(most=_LOSSES_OFF))


def _job(graph: str, layers: int, *, kept: bool) -> "TrainJob":
    from switchgnn.planner.presets import PlanRequest  # noqa: PLC0415
    from switchgnn.training.base.options import ModelOptions, TrainOptions  # noqa: PLC0415
    from switchgnn.training.trainer import Training  # noqa: PLC0415

    setting = TrainingSetting(graph, _EPOCHS, Target.EMBEDDED, FabricKind.LOOPBACK)
    job = job_of(setting, SWITCH.name)
    options = TrainOptions(_EPOCHS, weight_decay=0.0, evaluate_every=_EPOCHS, precompute=kept)
    training = Training(ModelOptions("sage", layers, _HIDDEN), options)
    task, request = replace(job.task, training=training), PlanRequest("best", "metis")
    return replace(job, task=task, workers=_WORKERS, request=request)


def _with_sar(job: "TrainJob", data: "Dataset", plan: "Plan") -> _Found:
    with TemporaryDirectory(prefix="bench-") as name:
        np.savez(f"{name}/input.npz", **_input(job, data, plan))
        failed = _sar_python(str(_SCRIPT), name)
        if failed is not None:
            raise BenchError(f"SAR did not train: {failed}")
        with np.load(f"{name}/output.npz") as file:
            # Each byte is on the links of its sender and of its receiver.
            megabytes = 2 * float(file["sent"]) / 1e6
            epoch = float(np.median(file["seconds"][1:]))
            return _Found(epoch, megabytes, file["losses"].tolist())


def _input(job: "TrainJob", data: "Dataset", plan: "Plan") -> dict[str, Any]:
    """Return the data set with the vertices of each worker together, and the first weights."""
    import torch  # noqa: PLC0415

    from switchgnn.training.layers.models import build_model  # noqa: PLC0415

    order = np.argsort(plan.assignment, kind="stable")
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    ends = [number[np.concatenate((each, data.self_loops))] for each in data.graph.edges()]
    training, features = job.task.training, data.features.shape[1]
    torch.manual_seed(training.options.seed)
    layers: Any = build_model(training.model, features, data.classes).convs
    found = {
        "starts": np.searchsorted(plan.assignment[order], np.arange(_WORKERS + 1)),
        "edges": np.stack(ends).astype(np.int64),
        "widths": [features, *(layer.out_channels for layer in layers)],
        "epochs": training.options.epochs,
        "rate": training.options.learning_rate,
    }
    found |= {name: getattr(data, name)[order] for name in ("features", "labels", "train")}
    for index, layer in enumerate(layers):
        found[f"neighbours{index}"] = layer.lin_l.weight.detach().numpy()
        found[f"bias{index}"] = layer.lin_l.bias.detach().numpy()
        found[f"root{index}"] = layer.lin_r.weight.detach().numpy()
    return found
