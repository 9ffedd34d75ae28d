"""Epochs of SwitchGNN beside those of SAR and BNS-GCN: one model on one partition."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
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
# Name the Python interpreter of an environment with DGL, which needs an older NumPy than ours, and
# perhaps SAR; and the folder of a checkout of BNS-GCN, which is no package.
SAR_PYTHON, BNS_GCN = "SAR_PYTHON", "BNS_GCN"

_WORKERS, _HIDDEN, _EPOCHS = 4, 32, 20
# Graphs and layers. The last graph has as many vertices and edges as Amazon Photo.
_CASES = ("digits:80", 2), ("digits:80", 3), ("random:7650:119081:1", 2)
_TRANSPORTS = SWITCH.name, HOST.name, HOST_PARTIAL.name
_SCRIPTS = Path(__file__).resolve().parents[1] / "loads"
_SECONDS = 300
_LOOK = """
import sys
from importlib.util import find_spec
sys.exit(next((f"there is no {name}" for name in sys.argv[1:] if find_spec(name) is None), 0))
"""
_LOSSES_OFF, _INTERFACES = 1e-4, ("SAR_SOCKET_NAME", "GLOO_SOCKET_IFNAME")


@dataclass(frozen=True)
class _Peer:
    """Another system."""

    name: str
    script: str  # trains with it
    packages: tuple[str, ...]  # that the script needs
    always_keeps: bool  # whether it trains only with kept sums of features

    def lacking(self) -> str | None:
        """Return what the machine lacks for it."""
        checkout = Path(os.environ.get(BNS_GCN) or os.devnull)
        if self is _BNS_GCN and not (checkout / "helper/feature_buffer.py").exists():
            return f"{BNS_GCN} names no checkout"
        return _run_python("-c", _LOOK, *self.packages)


_SAR = _Peer("SAR", "sar_worker.py", ("sar", "dgl"), always_keeps=False)
_BNS_GCN = _Peer("BNS-GCN", "bns_worker.py", ("dgl",), always_keeps=True)
_PEERS = _SAR, _BNS_GCN


@dataclass(frozen=True)
class _Found:
    """One training."""

    epoch: float  # seconds, the median without the first, of the slowest worker
    megabytes: float  # of an epoch on all links, both ways
    losses: list[float]


def missing() -> str | None:
    """Return what the machine lacks for this figure."""
    lacking = {peer.name: peer.lacking() for peer in _PEERS}
    if None in lacking.values():
        return lacks_training()
    needed = f"needs SAR and DGL in the Python that {SAR_PYTHON} names, or DGL and {BNS_GCN}"
    return f"{needed}: " + "; ".join(f"no {name}: {why}" for name, why in lacking.items())


def _run_python(*arguments: str) -> str | None:
    """Run the interpreter with DGL; return the last line of its errors if it fails."""
    # They leave out the loopback interface unless it is named.
    environment = os.environ | ENVIRONMENT | dict.fromkeys(_INTERFACES, "lo")
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
    present = [peer for peer in _PEERS if peer.lacking() is None]
    cases = _CASES if settings.data is None else ((str(settings.data), 2), *_CASES)
    for (graph, layers), kept in product(cases, (False, True)):
        if peers := [peer for peer in present if kept or not peer.always_keeps]:
            yield from _compared(settings, peers, graph, layers, kept=kept)


def _compared(
    settings: Settings, peers: list[_Peer], graph: str, layers: int, *, kept: bool
) -> Iterator[ResultLine]:
    from switchgnn.jobs.train import plan_of  # noqa: PLC0415
    from switchgnn.training import load_dataset  # noqa: PLC0415

    data = load_dataset(graph)
    if data.multilabel:
        raise BenchError(f"{graph} has several labels per vertex, which is not compared.")
    job = _job(graph, layers, kept=kept)
    job = replace(job, planned=(planned := plan_of(job, data, lambda _: None)))
    names = [peer.name for peer in peers]
    found: dict[str, list[_Found]] = {name: [] for name in (*names, *_TRANSPORTS)}
    for _ in range(settings.pairs):
        for peer in peers:
            found[peer.name].append(_with_peer(peer, job, data, planned[1]))
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
            goal = Goal(ratio=1.0) if name in names else Goal()
            yield ResultLine(NAME, f"{what}: epoch", "s", times[name], times[best], goal)
    least = min(_TRANSPORTS, key=lambda name: sent[name].median)
    for name in names:
        yield ResultLine(NAME, f"{what}: sent in an epoch", "MB", sent[name], sent[least])
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


def _with_peer(peer: _Peer, job: "TrainJob", data: "Dataset", plan: "Plan") -> _Found:
    with TemporaryDirectory(prefix="bench-") as name:
        np.savez(f"{name}/input.npz", **_input(job, data, plan))
        failed = _run_python(str(_SCRIPTS / peer.script), name)
        if failed is not None:
            raise BenchError(f"{peer.name} did not train: {failed}")
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
