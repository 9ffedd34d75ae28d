# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn train`: full-graph GNN training over the switch, or between hosts."""

import json
import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.full_disk import why_not_written
from switchgnn.base.machine import how_to_install
from switchgnn.base.options import DATA, OUTPUT, PLAN, with_groups
from switchgnn.commands.shared.config_file import ConfigOption
from switchgnn.commands.shared.console import (
    captured_line,
    end_like_interrupted,
    plain_console,
    ran_as,
    strategies_line,
)
from switchgnn.commands.shared.leaf_spine import leaf_spine_table
from switchgnn.commands.shared.live import LiveOptions
from switchgnn.commands.shared.options import (
    BandwidthOption,
    FaultsOption,
    MetricsOption,
    SiteOptions,
    SlotsOption,
    StrategyOptions,
    WindowOption,
    find_metrics,
)
from switchgnn.commands.shared.outputs import (
    LogDirOption,
    PcapOption,
    Recordings,
    VerboseOption,
    check_outputs,
    recordings_in,
    told_aloud,
)
from switchgnn.commands.train.display import (
    Epochs,
    closing_line,
    kept_line,
    links_table,
    transports_table,
    verdict_lines,
)
from switchgnn.commands.train.job import DataOptions, TransportOptions
from switchgnn.commands.train.plots import draw_plots, require_matplotlib
from switchgnn.commands.train.report import EpochListener, TrainReport
from switchgnn.commands.train.steps import training_nursery
from switchgnn.controller.controls.congestion import DEFAULT_ECN_THRESHOLD
from switchgnn.host.pace import Pace
from switchgnn.host.registry import AUTO, G3, SWITCH, TransportKind
from switchgnn.p4src import load_program
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.planner.presets import AUTO as PLAN_AUTO
from switchgnn.planner.presets import PAPER, PRESETS
from switchgnn.training.asked import AskedTraining
from switchgnn.training.device import DeviceName

if TYPE_CHECKING:
    from switchgnn.commands.train.job import TrainJob
    from switchgnn.training.data.dataset import Dataset

_INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it


class Reached:
    """Follows trainings, one after the other, and shows what was reached if one is interrupted.

    Args:
        reports: those of trainings that are done; it grows.
        epochs: how many each is to have.
        checkpoint: where they are saved, or None.
        as_json: whether to print a line of JSON.
    """

    def __init__(
        self,
        reports: Sequence[TrainReport],
        epochs: int,
        checkpoint: Path | None,
        *,
        as_json: bool,
    ) -> None:
        self._reports = reports
        self._epochs = epochs
        self._checkpoint = checkpoint
        self._as_json = as_json
        self._transport = ""
        self._events: list[dict[str, Any]] = []

    def takes(self, transport: str) -> None:
        """Name the transport that `auto` takes."""
        self._transport = transport

    @contextmanager
    def over(self, transport: str) -> Iterator[None]:
        """Follow the training over a transport.

        Raises:
            typer.Exit: with the exit code of Ctrl-C, in its place.
        """
        self._transport, self._events = transport, []
        try:
            yield
        except KeyboardInterrupt:
            self._show()
            raise typer.Exit(_INTERRUPTED) from None

    def epoch(self, event: dict[str, Any]) -> None:
        """Take worker 0's event of an epoch."""
        self._events.append(event)

    def _show(self) -> None:
        if self._as_json:
            typer.echo(json.dumps(self._to_dict()))
            return
        console = plain_console(soft_wrap=True, highlight=False)
        console.print(self._sentence())
        if self._reports or self._events:
            console.print(self._table())

    def _sentence(self) -> str:
        last = self._events[-1]["epoch"] if self._events else 0
        words = f"Interrupted over {self._transport} after {last:,} of {self._epochs:,} epochs"
        if self._checkpoint is not None and self._checkpoint.exists():
            return f"{words}; the same command goes on from {self._checkpoint}."
        return f"{words}."

    def _table(self) -> Table:
        table = Table(title="What was reached", box=box.SIMPLE_HEAD)
        table.add_column("transport", no_wrap=True)
        for name in ("epochs", "loss", "test", "ms per epoch"):
            table.add_column(name, justify="right")
        for report in self._reports:
            table.add_row(*_row(report.transport, report.epochs))
        if self._events:
            table.add_row(*_row(self._transport, self._events))
        return table

    def _to_dict(self) -> dict[str, Any]:
        return {
            "event": "interrupted",
            "transport": self._transport,
            "epochs": len(self._events),
            "losses": [event["loss"] for event in self._events],
            "test_accuracy": _test_accuracy(self._events),
        }


def _row(transport: str, events: Sequence[dict[str, Any]]) -> list[str]:
    test = _test_accuracy(events)
    return [
        transport,
        f"{events[-1]['epoch']:,}" if events else "-",
        f"{events[-1]['loss']:.4f}" if events else "-",
        "-" if test is None else f"{test:.1%}",
        f"{statistics.median(event['seconds'] for event in events) * 1000:.0f}" if events else "-",
    ]


def _test_accuracy(events: Sequence[dict[str, Any]]) -> float | None:
    known = [event["accuracy"]["test"] for event in events if event["accuracy"]]
    return known[-1] if known else None


_TIMES = ("seconds", "exchange", "waiting", "all_reduce")
_ACCURACIES = ("train", "validation", "test")


class EventsError(SwitchGNNError):
    """TensorBoard events could not be written."""


class TrainEvents:
    """Writes the epochs of one transport to FOLDER/TRANSPORT. Use it as a context manager.

    Args:
        folder: the folder for `tensorboard --logdir`.
        transport: the name of the curve.

    Raises:
        EventsError: TensorBoard is missing, or the folder cannot be written.
    """

    def __init__(self, folder: Path, transport: str) -> None:
        self._folder = folder
        try:
            from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415  slow, seldom used

            with self._writing():
                self._writer = SummaryWriter(str(folder / transport))
        except ImportError as error:
            raise EventsError(
                f"TensorBoard events need tensorboard: {how_to_install('tensorboard')}, "
                "or leave out --tensorboard."
            ) from error

    def __enter__(self) -> "TrainEvents":
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        try:
            with self._writing():
                # Closing alone does not tell what could not be written.
                self._writer.flush()
                self._writer.close()
        except EventsError:
            if error is None:
                raise

    def epoch(self, event: dict[str, Any]) -> None:
        """Write worker 0's event of an epoch.

        Raises:
            EventsError: the events of earlier epochs could not be written.
        """
        with self._writing():
            self._write_all(event)

    def _write_all(self, event: dict[str, Any]) -> None:
        self._write("loss", event["loss"], event)
        for name in _TIMES:
            self._write(f"seconds/{name}", event[name], event)
        for name in _ACCURACIES:
            if event["accuracy"] and event["accuracy"][name] is not None:
                self._write(f"accuracy/{name}", event["accuracy"][name], event)
        for name in ("bytes_up", "bytes_down"):
            self._write(f"traffic/{name}", event["traffic"][name], event)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            why = why_not_written(error, self._folder)
            raise EventsError(f"Cannot write events to {self._folder}: {why}.") from error

    def _write(self, name: str, value: float, event: dict[str, Any]) -> None:
        self._writer.add_scalar(name, value, event["epoch"])


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog="Example: switchgnn train --data karate --workers 2 --epochs 3")
@with_groups
def train(
    context: typer.Context,
    config: ConfigOption = None,
    *,
    data: DataOptions,
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
    training: AskedTraining,
    over: TransportOptions,
    strategy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=PLAN,
            show_default=f"{PAPER}, and {PLAN_AUTO} with --transport {AUTO.name}",
            autocompletion=lambda: list(PRESETS),
            help=f"Chooses all that follows; one of: {', '.join(PRESETS)}.",
        ),
    ] = None,
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
    """Train a GNN, its neighbour sums made in the switch or by hosts.

    Every worker holds a part of the graph. Each layer adds up local neighbours
    with PyTorch Geometric and remote ones through the transport, forward and
    backward, so the losses are those of one machine. Without --transport, the
    one that is predicted to be the fastest is used. With several --transport
    the same training runs over each, and a table compares them. Over transports
    other than switch, of the strategies only --partition and --assignment count;
    g3 has a partition of its own by default.
    """
    _check_outputs(plots, tensorboard, log_dir, training.checkpoint)
    page.check()
    nursery = context.with_resource(training_nursery())
    # What needs PyTorch; other commands do without it.
    from switchgnn.commands.train.job import SKEW, TrainJob, default_task  # noqa: PLC0415
    from switchgnn.commands.train.steps import run_training  # noqa: PLC0415
    from switchgnn.training.layers.models import build_model, check_layers  # noqa: PLC0415
    from switchgnn.training.layers.pyg_layers import templates_removed  # noqa: PLC0415
    from switchgnn.training.worker import Training  # noqa: PLC0415

    place = find_metrics(metrics, workers)
    chosen = over.chosen()
    leaf_spine = site.leaf_spine(workers)
    asked = strategies.asked(strategy or PAPER, leaf_spine)
    _check_together(chosen, training)
    end_like_interrupted()
    recordings = _recordings(context, pcap, chosen, workers, leaf_spine)
    dataset = data.load(seed)
    shape = training.shape()
    processes = workers if any(each.networked for each in chosen) else 1
    training.check_size(
        *(shape, dataset.vertices, dataset.features.shape[1], dataset.classes), processes
    )
    with templates_removed():
        check_layers(build_model(shape, dataset.features.shape[1], dataset.classes))
    pace, threshold = Pace(skew=SKEW), DEFAULT_ECN_THRESHOLD
    if any(each.networked for each in chosen):
        limits = site.usual_limits(shaped=bandwidth is not None)
        pace = Pace(window=window or limits.window, skew=SKEW)
        threshold = limits.ecn_threshold
    reports: list[TrainReport] = []
    reached = Reached(reports, training.epochs, training.checkpoint, as_json=as_json)
    # A sample is drawn again in each epoch, so its sums change.
    precompute = training.precompute and over.sampling == 1
    options = replace(training.options(shape, seed), precompute=precompute)
    task = default_task(
        training=Training(shape, options, over.bins(), training.device),
        pace=pace,
        sampling=over.sampling,
        mtu=over.mtu,
        faults=faults,
    )
    epochs = training.epochs
    with page.looked_at(f"train {data.title} over {workers} workers", epochs=epochs) as onlooker:
        for each, kept in zip(chosen, recordings, strict=True):
            job = TrainJob(
                task=replace(task, transport=SWITCH.name if each is AUTO else each.name),
                workers=workers,
                slots=slots or load_program().slots,
                target=site.target.value,
                fabric=site.fabric.value,
                backend=site.backend,
                bandwidth=bandwidth,
                ecn_threshold=threshold,
                asked=replace(asked, preset=PLAN_AUTO)
                if each is AUTO and strategy is None
                else asked,
                leaf_spine=leaf_spine,
                recordings=kept,
                metrics=place,
            )
            with reached.over(each.name), told_aloud(verbose=verbose), ExitStack() as stack:
                shown = stack.enter_context(
                    Epochs(plain_console(stderr=True), each.name, epochs, as_json=as_json)
                )
                job, predicted = (
                    _decided(job, dataset, shown, reached, strategies.switch_only())
                    if each is AUTO
                    else (job, None)
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
            reports.append(replace(report, predicted_seconds=predicted))
            _tell_finished(reports[-1], as_json=as_json)
        onlooker.done(f"All {len(reports[-1].losses)} epochs are done.")
    drawn = [] if plots is None else draw_plots(reports, plots)
    if not as_json:
        _show(reports, drawn, recordings)


def _decided(
    job: "TrainJob", data: "Dataset", shown: Epochs, reached: Reached, switch_only: str
) -> tuple["TrainJob", dict[str, float]]:
    """Return the job over the transport that `auto` takes, and the predicted seconds.

    Nothing is predicted where options were given that only the switch uses.
    """
    from switchgnn.commands.train.plan import resolved  # noqa: PLC0415

    predicted: dict[str, float] = {}
    if switch_only:
        shown.note(f"auto takes switch: only the switch uses {switch_only}.")
    else:
        job, predicted = resolved(job, data, shown)
    reached.takes(job.task.transport)
    return job, predicted


def _check_together(chosen: list[TransportKind], training: AskedTraining) -> None:
    """Refuse what does not go with these transports, and a device that is not here."""
    from switchgnn.training.device import check_device  # noqa: PLC0415

    if training.checkpoint is not None and len(chosen) > 1:
        raise SwitchGNNError("--checkpoint is for one --transport: each would go on from the last.")
    check_device(training.device)
    if training.device is not DeviceName.CPU and G3 in chosen:
        raise SwitchGNNError(
            f"--transport {G3.name} computes its bins on the CPU: leave --device out."
        )


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
    console = plain_console()
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
    for line in (kept_line(reports), closing_line(reports), *verdict_lines(reports)):
        if line is not None:
            console.print(line, soft_wrap=True, highlight=False)
