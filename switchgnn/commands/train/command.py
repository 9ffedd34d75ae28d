# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn train`: full-graph GNN training over the switch."""

import json
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from switchgnn.commands.metrics_option import MetricsOption, find_metrics
from switchgnn.commands.shared.config_file import ConfigOption
from switchgnn.commands.shared.faults import FaultsOption
from switchgnn.commands.shared.interruption import end_like_interrupted
from switchgnn.commands.shared.leaf_spine_display import leaf_spine_table
from switchgnn.commands.shared.live.options import LiveOptions
from switchgnn.commands.shared.logs import LogDirOption, VerboseOption, told_aloud
from switchgnn.commands.shared.outputs import check_outputs
from switchgnn.commands.shared.panels import DATA, EXCHANGE, MODEL, OUTPUT, TRAINING
from switchgnn.commands.shared.recordings import PcapOption, Recordings, recordings_in
from switchgnn.commands.shared.sentences import captured_line, ran_as, strategies_line
from switchgnn.commands.shared.strategies import SlotsOption, StrategyOption, StrategyOptions
from switchgnn.commands.shared.topology import BandwidthOption, SiteOptions, WindowOption
from switchgnn.commands.train.display import (
    Epochs,
    closing_line,
    links_table,
    transports_table,
)
from switchgnn.commands.train.events import TrainEvents
from switchgnn.commands.train.interrupted import Reached
from switchgnn.commands.train.nursery import training_nursery
from switchgnn.commands.train.plots import draw_plots, require_matplotlib
from switchgnn.commands.train.report import EpochListener, TrainReport
from switchgnn.controller.controls.congestion import DEFAULT_ECN_THRESHOLD
from switchgnn.errors import SwitchGNNError
from switchgnn.host.errors import TransportError
from switchgnn.host.pace import Pace
from switchgnn.host.registry import DEFAULT, G3, TRANSPORTS, TransportKind, transport_kind
from switchgnn.options.groups import with_groups
from switchgnn.p4src import load_program
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.planner.presets import PAPER
from switchgnn.training.device_name import DeviceName

if TYPE_CHECKING:
    from switchgnn.training.data.dataset import Dataset

_SAMPLED = " or ".join(each.name for each in TRANSPORTS if each.samples)
# Paragraphs of a help are lines of it.
_TRANSPORT_HELP = "\n\n".join(
    (
        "What carries the sums; repeat it to compare:",
        *(f"{each.name}: {each.help}" for each in TRANSPORTS),
    )
)


def _known_transports(names: list[str] | None) -> list[str] | None:
    for name in names or ():
        try:
            transport_kind(name)
        except TransportError as error:
            raise typer.BadParameter(str(error)) from error
    return names


class PipelineOption(str, Enum):
    """Values of --pipeline, by the names of G3's ablation."""

    BOTH = "both"
    INTRA = "intra"
    INTER = "inter"
    SEQUENTIAL = "sequential"


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def _named_data() -> list[str]:
    return ["digits", "karate", "cora", "citeseer", "pubmed", "reddit", "yelp", "ogbn-products"]


def _named_models() -> list[str]:
    return ["gcn", "sage", "gin"]


def _named_transports() -> list[str]:
    return [each.name for each in TRANSPORTS]


@app.command(epilog="Example: switchgnn train --data karate --workers 2 --epochs 3")
@with_groups
def train(
    context: typer.Context,
    config: ConfigOption = None,
    *,
    data: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            rich_help_panel=DATA,
            autocompletion=_named_data,
            help="digits, karate, cora, citeseer, pubmed, reddit, yelp, ogbn-products, "
            "digits:NEIGHBOURS, random:VERTICES:EDGES:SEED, or a file .npz.",
        ),
    ] = "digits",
    root: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            rich_help_panel=DATA,
            show_default=False,
            help="Of the data set, such as raw Planetoid files.",
        ),
    ] = None,
    edges: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=DATA,
            show_default=False,
            help="Your own graph: an edge list; with the next two.",
        ),
    ] = None,
    node_features: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=DATA,
            show_default=False,
            help="Its features: .npy, .csv or .json.",
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=DATA,
            show_default=False,
            help="Its labels: .csv, .npy or text.",
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(min=1, max=128, metavar="N", rich_help_panel=DATA, help="Number of workers."),
    ] = 4,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            rich_help_panel=DATA,
            help="Of splits, weights, dropout and the plan.",
        ),
    ] = 0,
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            rich_help_panel=MODEL,
            autocompletion=_named_models,
            help="gcn, sage, gin, or your own: FILE.py:NAME.",
        ),
    ] = "gcn",
    layers: Annotated[
        int, typer.Option(min=1, metavar="N", rich_help_panel=MODEL, help="Number of layers.")
    ] = 2,
    hidden: Annotated[
        int, typer.Option(min=1, metavar="N", rich_help_panel=MODEL, help="Hidden units.")
    ] = 16,
    dropout: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=0.99,
            metavar="SHARE",
            rich_help_panel=MODEL,
            help="Of hidden units that are dropped.",
        ),
    ] = 0.5,
    input_dropout: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=0.99,
            metavar="SHARE",
            rich_help_panel=MODEL,
            show_default="as --dropout",
            help="Of features that are dropped.",
        ),
    ] = None,
    device: Annotated[
        DeviceName,
        typer.Option(
            metavar="NAME",
            rich_help_panel=TRAINING,
            help="Where workers compute: cpu, or cuda, whose GPUs they take in turn.",
        ),
    ] = DeviceName.CPU,
    paper: Annotated[
        bool,
        typer.Option(
            rich_help_panel=MODEL,
            show_default=False,
            help="The paper's model: gcn, 4 layers, 128 units.",
        ),
    ] = False,
    epochs: Annotated[
        int, typer.Option(min=1, metavar="N", rich_help_panel=TRAINING, help="Number of epochs.")
    ] = 100,
    lr: Annotated[
        float,
        typer.Option(
            min=0.0, metavar="RATE", rich_help_panel=TRAINING, help="Learning rate of Adam."
        ),
    ] = 0.01,
    weight_decay: Annotated[
        float, typer.Option(min=0.0, metavar="RATE", rich_help_panel=TRAINING, help="Of Adam.")
    ] = 5e-4,
    evaluate_every: Annotated[
        int,
        typer.Option(
            min=1, metavar="EPOCHS", rich_help_panel=TRAINING, help="How often to evaluate."
        ),
    ] = 10,
    patience: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            rich_help_panel=TRAINING,
            help="Stop after so many evaluations without a gain; 0: never.",
        ),
    ] = 0,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=TRAINING,
            show_default=False,
            help="Save there, and go on from there.",
        ),
    ] = None,
    transport: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=EXCHANGE,
            show_default=DEFAULT.name,
            help=_TRANSPORT_HELP,
            callback=_known_transports,
            autocompletion=_named_transports,
        ),
    ] = None,
    sampling: Annotated[
        float,
        typer.Option(
            min=0.0001,
            max=1.0,
            metavar="P",
            rich_help_panel=EXCHANGE,
            help=f"BNS-GCN's p, for the transport {_SAMPLED}.",
        ),
    ] = 1.0,
    bin_memory: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="BYTES",
            rich_help_panel=EXCHANGE,
            help=f"That two bins take, for the transport {G3.name}.",
        ),
    ] = 1_000_000,
    pipeline: Annotated[
        PipelineOption,
        typer.Option(
            metavar="WHAT",
            rich_help_panel=EXCHANGE,
            help=f"Overlaps with the transport {G3.name}: "
            f"{', '.join(each.value for each in PipelineOption)}.",
        ),
    ] = PipelineOption.BOTH,
    strategy: StrategyOption = PAPER,
    strategies: StrategyOptions,
    slots: SlotsOption = None,
    site: SiteOptions,
    bandwidth: BandwidthOption = None,
    window: WindowOption = None,
    faults: FaultsOption = "",
    plots: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            rich_help_panel=OUTPUT,
            show_default=False,
            help="For plots, as PNG and SVG.",
        ),
    ] = None,
    tensorboard: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            rich_help_panel=OUTPUT,
            show_default=False,
            help="For TensorBoard events.",
        ),
    ] = None,
    pcap: PcapOption = None,
    metrics: MetricsOption = None,
    page: LiveOptions,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            rich_help_panel=OUTPUT,
            help="One JSON line per epoch, and one at the end.",
        ),
    ] = False,
    log_dir: LogDirOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Train a GNN, its neighbour sums made in the switch.

    Every worker holds a part of the graph. Each layer adds up local neighbours
    with PyTorch Geometric and remote ones through the transport, forward and
    backward, so the losses are those of one machine. With several --transport
    the same training runs over each, and a table compares them. Over transports
    other than switch, of the strategies only --partition and --assignment count;
    g3 has a partition of its own by default.
    """
    _check_outputs(plots, tensorboard, log_dir, checkpoint)
    page.check()
    nursery = context.with_resource(training_nursery())
    # What needs PyTorch; other commands do without it.
    from switchgnn.commands.train.job import SKEW, TrainJob, default_task  # noqa: PLC0415
    from switchgnn.commands.train.steps import run_training  # noqa: PLC0415
    from switchgnn.training.bins.options import PIPELINES, BinOptions  # noqa: PLC0415
    from switchgnn.training.layers.models import PAPER, ModelOptions, build_model, model_name  # noqa: PLC0415
    from switchgnn.training.layers.templates import templates_removed  # noqa: PLC0415
    from switchgnn.training.layers.whole import check_layers  # noqa: PLC0415
    from switchgnn.training.trainer import TrainOptions  # noqa: PLC0415
    from switchgnn.training.worker import Training  # noqa: PLC0415

    place = find_metrics(metrics, workers)
    chosen = [transport_kind(name) for name in transport or [DEFAULT.name]]
    leaf_spine = site.leaf_spine(workers)
    asked = strategies.asked(strategy, leaf_spine)
    _check_transports(chosen, checkpoint, sampling, device)
    end_like_interrupted()
    recordings = _recordings(context, pcap, chosen, workers, leaf_spine)
    dataset = _load(data, root, (edges, node_features, labels), seed)
    shape = PAPER if paper else ModelOptions(model_name(model), layers, hidden, dropout)
    options = TrainOptions(
        epochs=epochs,
        learning_rate=lr,
        weight_decay=weight_decay,
        input_dropout=shape.dropout if input_dropout is None else input_dropout,
        seed=seed,
        evaluate_every=evaluate_every,
        patience=patience,
        checkpoint=None if checkpoint is None else checkpoint.absolute(),
    )
    with templates_removed():
        check_layers(build_model(shape, dataset.features.shape[1], dataset.classes))
    if window is None and any(each.networked for each in chosen):
        window = site.usual_window(shaped=bandwidth is not None)
    pace = Pace(skew=SKEW) if window is None else Pace(window=window, skew=SKEW)
    reports: list[TrainReport] = []
    reached = Reached(reports, epochs, checkpoint, as_json=as_json)
    training = Training(shape, options, BinOptions(bin_memory, *PIPELINES[pipeline.value]), device)
    title = f"train {data if edges is None else edges.name} over {workers} workers"
    with page.looked_at(title, epochs=epochs) as onlooker:
        for each, kept in zip(chosen, recordings, strict=True):
            job = TrainJob(
                task=default_task(
                    transport=each.name,
                    training=training,
                    pace=pace,
                    sampling=sampling,
                    faults=faults,
                ),
                workers=workers,
                slots=slots or load_program().slots,
                target=site.target.value,
                fabric=site.fabric.value,
                backend=site.backend,
                bandwidth=bandwidth,
                ecn_threshold=DEFAULT_ECN_THRESHOLD,
                asked=asked,
                leaf_spine=leaf_spine,
                recordings=kept,
                metrics=place,
            )
            with reached.over(each.name), told_aloud(verbose=verbose), ExitStack() as stack:
                shown = stack.enter_context(
                    Epochs(Console(stderr=True), each.name, epochs, as_json=as_json)
                )
                listeners: list[EpochListener] = [reached.epoch, shown.epoch]
                if tensorboard is not None:
                    listeners.append(stack.enter_context(TrainEvents(tensorboard, each.name)).epoch)
                report = run_training(
                    job,
                    dataset,
                    shown.step,
                    _all_of(listeners),
                    nursery=nursery,
                    log_dir=None if log_dir is None else log_dir / each.name,
                    onlooker=onlooker,
                )
            reports.append(report)
            _tell_finished(report, as_json=as_json)
        onlooker.done(f"All {len(reports[-1].losses)} epochs are done.")
    drawn = [] if plots is None else draw_plots(reports, plots)
    if not as_json:
        _show(reports, drawn, recordings)


def _check_transports(
    chosen: list[TransportKind], checkpoint: Path | None, sampling: float, device: DeviceName
) -> None:
    """Refuse options that are not for these transports, and a device that is not here."""
    from switchgnn.training.device import check_device  # noqa: PLC0415

    if checkpoint is not None and len(chosen) > 1:
        raise SwitchGNNError("--checkpoint is for one --transport: each would go on from the last.")
    if sampling < 1 and not all(each.samples for each in chosen):
        raise SwitchGNNError(
            f"--sampling is for --transport {_SAMPLED} alone: the others are exact."
        )
    check_device(device)
    if device is not DeviceName.CPU and G3 in chosen:
        raise SwitchGNNError(
            f"--transport {G3.name} computes its bins on the CPU: leave --device out."
        )


def _load(
    name: str, root: Path | None, own: tuple[Path | None, Path | None, Path | None], seed: int
) -> "Dataset":
    """Return a data set by its name, or of files of edges, features and labels if all are given."""
    from switchgnn.training import load_dataset, load_files  # noqa: PLC0415

    edges, node_features, labels = own
    if edges is not None and node_features is not None and labels is not None:
        return load_files(edges, node_features, labels, seed=seed)
    if any(own):
        raise SwitchGNNError("--edges, --node-features and --labels go together.")
    return load_dataset(name, root, seed=seed)


def _recordings(
    context: typer.Context,
    pcap: Path | None,
    chosen: list[TransportKind],
    workers: int,
    leaf_spine: LeafSpine | None,
) -> list[Recordings]:
    """Make the files of --pcap, of each transport in a folder of its own if there are several."""
    if pcap is not None and not any(each.networked for each in chosen):
        raise SwitchGNNError("--pcap keeps the packets of links, and --transport local has none.")
    return [
        context.with_resource(
            recordings_in(
                pcap if each.networked else None,
                workers,
                leaf_spine,
                inside=each.name if len(chosen) > 1 else "",
            )
        )
        for each in chosen
    ]


def _tell_finished(report: TrainReport, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"event": "finished", **report.to_dict()}))


def _check_outputs(
    plots: Path | None, tensorboard: Path | None, log_dir: Path | None, checkpoint: Path | None
) -> None:
    """Check what is to be written before the first epoch; errors as ``check_outputs``."""
    check_outputs(
        {"--plots": plots, "--tensorboard": tensorboard, "--log-dir": log_dir},
        {"--checkpoint": checkpoint},
    )
    if plots is not None:
        require_matplotlib()


def _all_of(listeners: list[EpochListener]) -> EpochListener:
    def listen(event: dict[str, Any]) -> None:
        for listener in listeners:
            listener(event)

    return listen


def _show(reports: list[TrainReport], drawn: list[Path], recordings: list[Recordings]) -> None:
    console = Console()
    first = reports[0]
    console.print(
        f"{first.dataset}: {first.vertices:,} vertices, {first.edges:,} directed edges; "
        f"{first.model}, {first.workers} workers, {len(first.losses)} epochs",
        soft_wrap=True,
        highlight=False,
    )
    console.print(
        f"Ran on: {first.reason}{ran_as(first, first.hosts)}.", soft_wrap=True, highlight=False
    )
    for report in reports:
        words = strategies_line(report)
        if words:
            console.print(f"Plan of {report.transport}: {words}.", soft_wrap=True, highlight=False)
    console.print(transports_table(reports))
    links = links_table(reports)
    if links is not None:
        console.print(links)
    for report in reports:
        if report.leaf_spine is not None:
            what = f"Bytes of {report.transport}"
            console.print(leaf_spine_table(report.leaf_spine, what, "counted, with gradients"))
    for path in drawn:
        console.print(f"Drawn: {path}", soft_wrap=True, highlight=False)
    for kept in recordings:
        if kept.files:
            console.print(captured_line(kept.files), soft_wrap=True, highlight=False)
    closing = closing_line(reports)
    if closing is not None:
        console.print(closing, soft_wrap=True, highlight=False)
