# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn train`: full-graph GNN training over the switch."""

import json
import signal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from switchgnn.cli.run import FabricOption, TargetOption
from switchgnn.controller.congestion import DEFAULT_ECN_THRESHOLD
from switchgnn.errors import SwitchGNNError
from switchgnn.host.pace import Pace
from switchgnn.p4src import load_program


class TransportOption(str, Enum):
    """Values of --transport."""

    SWITCH = "switch"
    HOST = "host"
    HOST_PARTIAL = "host-partial"
    G3 = "g3"
    LOCAL = "local"


class PartitionOption(str, Enum):
    """Values of --partition."""

    METIS = "metis"
    G3 = "g3"
    G3_LITERAL = "g3-literal"


class PipelineOption(str, Enum):
    """Values of --pipeline, by the names of G3's ablation."""

    BOTH = "both"
    INTRA = "intra"
    INTER = "inter"
    SEQUENTIAL = "sequential"


class ModelOption(str, Enum):
    """Values of --model."""

    GCN = "gcn"
    SAGE = "sage"
    GIN = "gin"


def train(
    data: Annotated[
        str,
        typer.Option(help="digits, karate, cora, citeseer, pubmed, reddit, yelp, ogbn-products."),
    ] = "digits",
    root: Annotated[
        Path | None, typer.Option(help="Folder of the data set, such as raw Planetoid files.")
    ] = None,
    edges: Annotated[
        Path | None, typer.Option(help="Your own graph: an edge list; with the next two.")
    ] = None,
    node_features: Annotated[
        Path | None, typer.Option(help="Its features: .npy, .csv or .json.")
    ] = None,
    labels: Annotated[Path | None, typer.Option(help="Its labels: .csv, .npy or text.")] = None,
    model: Annotated[ModelOption, typer.Option(help="PyG's model.")] = ModelOption.GCN,
    layers: Annotated[int, typer.Option(min=1, help="Number of layers.")] = 2,
    hidden: Annotated[int, typer.Option(min=1, help="Hidden units.")] = 16,
    dropout: Annotated[float, typer.Option(min=0.0, max=0.99)] = 0.5,
    lr: Annotated[float, typer.Option(min=0.0, help="Learning rate of Adam.")] = 0.01,
    weight_decay: Annotated[float, typer.Option(min=0.0)] = 5e-4,
    paper: Annotated[
        bool, typer.Option(help="The paper's model: gcn, 4 layers, 128 units, rate 0.01.")
    ] = False,
    epochs: Annotated[int, typer.Option(min=1)] = 100,
    evaluate_every: Annotated[int, typer.Option(min=1, help="Epochs.")] = 10,
    patience: Annotated[
        int, typer.Option(min=0, help="Stop after so many evaluations without a gain; 0: never.")
    ] = 0,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Save there, and go on from there.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=128, help="Number of workers.")] = 4,
    transport: Annotated[
        list[TransportOption] | None,
        typer.Option(help="What carries the sums; repeat it to compare. Default: switch."),
    ] = None,
    sampling: Annotated[
        float, typer.Option(min=0.0001, max=1.0, help="BNS-GCN's p, for the transport host.")
    ] = 1.0,
    partition: Annotated[
        PartitionOption | None,
        typer.Option(help="Who holds which vertex. Default: g3 for the transport g3, else metis."),
    ] = None,
    bin_memory: Annotated[
        int, typer.Option(min=1, help="Bytes that two bins take, for the transport g3.")
    ] = 1_000_000,
    pipeline: Annotated[
        PipelineOption, typer.Option(help="What overlaps with the transport g3.")
    ] = PipelineOption.BOTH,
    target: Annotated[TargetOption, typer.Option(help="The switch.")] = TargetOption.AUTO,
    fabric: Annotated[FabricOption, typer.Option(help="The network.")] = FabricOption.AUTO,
    slots: Annotated[int | None, typer.Option(min=2, help="Aggregators per block.")] = None,
    bandwidth: Annotated[
        float | None, typer.Option(min=0.1, help="Mbit/s per link (Mininet only).")
    ] = None,
    window: Annotated[int, typer.Option(min=1, help="Features in flight per worker.")] = 16,
    faults: Annotated[str, typer.Option(help="As for `switchgnn run`.")] = "",
    seed: Annotated[int, typer.Option(min=0)] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON line per epoch, and one at the end.")
    ] = False,
) -> None:
    """Train a GNN on the whole graph, its neighbour sums made in the switch.

    Every worker holds a part of the graph. Each layer adds up local neighbours with
    PyTorch Geometric and remote ones through the transport, forward and backward, so
    the losses are those of one machine. With several --transport the same training
    runs over each, and a table compares them.
    """
    try:
        from switchgnn.run.train import TrainJob, default_task, run_training  # noqa: PLC0415
        from switchgnn.training import load_dataset, load_files  # noqa: PLC0415
        from switchgnn.training.bins import PIPELINES, BinOptions  # noqa: PLC0415
        from switchgnn.training.models import PAPER, ModelOptions  # noqa: PLC0415
        from switchgnn.training.trainer import TrainOptions  # noqa: PLC0415
    except ImportError as error:
        raise SwitchGNNError(
            f"Training needs PyTorch and PyTorch Geometric, but {error.name} is missing: "
            "pip install 'switchgnn[training]'."
        ) from error
    shape = PAPER if paper else ModelOptions(model.value, layers, hidden, dropout)
    console = Console(stderr=True)
    # A terminated training cleans up like an interrupted one.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    own = (edges, node_features, labels)
    if edges is not None and node_features is not None and labels is not None:
        dataset = load_files(edges, node_features, labels, seed=seed)
    elif any(own):
        raise SwitchGNNError("--edges, --node-features and --labels go together.")
    else:
        dataset = load_dataset(data, root, seed=seed)
    reports = []
    for each in transport or [TransportOption.SWITCH]:
        job = TrainJob(
            task=default_task(
                transport=each.value,
                model=shape,
                options=TrainOptions(
                    epochs=epochs,
                    learning_rate=lr,
                    weight_decay=weight_decay,
                    seed=seed,
                    evaluate_every=evaluate_every,
                    patience=patience,
                    checkpoint=None if checkpoint is None else checkpoint.absolute(),
                ),
                pace=Pace(window=window),
                sampling=sampling,
                faults=faults,
                bins=BinOptions(bin_memory, *PIPELINES[pipeline.value]),
            ),
            workers=workers,
            slots=slots or load_program().slots,
            target=target.value,
            fabric=fabric.value,
            bandwidth=bandwidth,
            ecn_threshold=DEFAULT_ECN_THRESHOLD,
            partition=None if partition is None else partition.value,
        )
        with _Epochs(console, each.value, epochs, as_json=as_json) as listener:
            report = run_training(job, dataset, listener.step, listener.epoch)
        reports.append(report)
        if as_json:
            typer.echo(json.dumps({"event": "finished", **report.to_dict()}))
    if not as_json:
        Console().print(_table(reports))


class _Epochs:
    """A progress bar of epochs, or JSON lines."""

    def __init__(self, console: Console, title: str, epochs: int, *, as_json: bool) -> None:
        self._title = title
        self._as_json = as_json
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[words]}"),
            console=console,
        )
        self._bar = self._progress.add_task(title, total=epochs, words="")
        self._accuracy = ""

    def __enter__(self) -> "_Epochs":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def step(self, name: str, _done: int, _total: int) -> None:
        """Say what is going on before the first epoch."""
        self._progress.update(self._bar, words=name)

    def epoch(self, event: dict[str, Any]) -> None:
        """Show an epoch."""
        if self._as_json:
            typer.echo(json.dumps(event))
        accuracy = event["accuracy"]
        if accuracy and accuracy["validation"] is not None:
            self._accuracy = f", validation {accuracy['validation']:.1%}"
        rest = event["seconds"] - event["waiting"] - event["all_reduce"]
        words = (
            f"loss {event['loss']:.4f}{self._accuracy}; {event['seconds'] * 1000:.0f} ms: "
            f"compute {rest * 1000:.0f}, exchange {event['exchange'] * 1000:.0f} "
            f"(waiting {event['waiting'] * 1000:.0f}), "
            f"all-reduce {event['all_reduce'] * 1000:.0f}"
        )
        self._progress.update(self._bar, completed=event["epoch"], words=words)


def _table(reports: list[Any]) -> Table:
    table = Table(title=f"{reports[0].dataset}, {reports[0].workers} workers")
    names = ("transport", "loss", "test accuracy", "ms per epoch", "waiting", "all-reduce", "bytes")
    for name in names:
        table.add_column(name, justify="left" if name == "transport" else "right")
    for report in reports:
        test = report.test_accuracy
        table.add_row(
            report.transport,
            f"{report.losses[-1]:.6f}" if report.losses else "-",
            "-" if test is None else f"{test:.1%}",
            f"{report.epoch_seconds * 1000:.0f}",
            f"{report.split['waiting'] * 1000:.0f}",
            f"{report.split['all_reduce'] * 1000:.0f}",
            f"{sum(link['up'] + link['down'] for link in report.bytes_per_link):,}",
        )
    return table
