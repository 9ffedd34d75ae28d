# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn run`: everything from a graph to verified sums."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from switchgnn.base.interruptible import wait_for_interrupt
from switchgnn.base.options import CONGESTION, DATA, NETWORK, OUTPUT, with_groups
from switchgnn.commands.metrics_option import MetricsOption, find_metrics
from switchgnn.commands.run import RunOptions, run_job
from switchgnn.commands.run.display import print_report
from switchgnn.commands.run.report import RunReport
from switchgnn.commands.shared.config_file import ConfigOption
from switchgnn.commands.shared.congestion import ControlOption, NoControlOption, heeds_marks
from switchgnn.commands.shared.console import plain_console
from switchgnn.commands.shared.faults import FaultsOption
from switchgnn.commands.shared.interruption import end_like_interrupted
from switchgnn.commands.shared.live.options import LiveOptions
from switchgnn.commands.shared.logs import LogDirOption, VerboseOption, told_aloud
from switchgnn.commands.shared.nursery import fork_nursery
from switchgnn.commands.shared.outputs import check_outputs
from switchgnn.commands.shared.recordings import PcapOption
from switchgnn.commands.shared.strategies import SlotsOption, StrategyOption, StrategyOptions
from switchgnn.commands.shared.topology import BandwidthOption, SiteOptions, WindowOption, known_mtu
from switchgnn.host.direct.framing import FRAGMENT, USUAL_MTU, Framing
from switchgnn.host.pace import Pace
from switchgnn.host.wire.header import LAST_ROUND, WIDEST
from switchgnn.p4src import load_program
from switchgnn.planner.presets import PAPER
from switchgnn.topologies import Fabric

_WRONG = 1


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(
    epilog="Example: switchgnn run --graph karate --workers 3 --rounds 2 --fabric loopback"
)
@with_groups
def run(
    config: ConfigOption = None,
    *,
    graph: Annotated[
        str,
        typer.Option(
            metavar="GRAPH",
            rich_help_panel=DATA,
            help="digits, karate, random:VERTICES:EDGES:SEED, or a file.",
        ),
    ] = "digits",
    workers: Annotated[
        int,
        typer.Option(min=1, max=128, metavar="N", rich_help_panel=DATA, help="Number of workers."),
    ] = 4,
    features: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=WIDEST,
            metavar="N",
            rich_help_panel=DATA,
            show_default="the graph's own, or 32",
            help="Numbers per feature.",
        ),
    ] = None,
    rounds: Annotated[
        int,
        typer.Option(
            min=1,
            max=LAST_ROUND,
            metavar="N",
            rich_help_panel=DATA,
            help="Number of exchanges.",
        ),
    ] = 3,
    seed: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", rich_help_panel=DATA, help="For the planner and made-up features."
        ),
    ] = 0,
    strategy: StrategyOption = PAPER,
    strategies: StrategyOptions,
    slots: SlotsOption = None,
    site: SiteOptions,
    bandwidth: BandwidthOption = None,
    window: WindowOption = None,
    mtu: Annotated[
        str,
        typer.Option(
            metavar="BYTES",
            rich_help_panel=NETWORK,
            callback=known_mtu,
            help="The largest IP packet of the hosts alone that the report compares with, into "
            f"which rows are packed; or {FRAGMENT}: a frame of 188 bytes for each fragment of a "
            "row.",
        ),
    ] = str(USUAL_MTU),
    patience: Annotated[
        float,
        typer.Option(
            min=0.1,
            metavar="SECONDS",
            rich_help_panel=NETWORK,
            help="Of silence, or without progress, until a worker gives up.",
        ),
    ] = 20.0,
    grpc_port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65535,
            metavar="PORT",
            rich_help_panel=NETWORK,
            help="TCP port of the switch's P4Runtime, for all users; 0: a socket for you alone.",
        ),
    ] = 0,
    tls: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            rich_help_panel=NETWORK,
            show_default=False,
            help="With ca, switch, switch-key, controller, controller-key .pem.",
        ),
    ] = None,
    keep: Annotated[
        bool,
        typer.Option(
            rich_help_panel=NETWORK,
            show_default=False,
            help="Keep the switch running afterwards, until Ctrl-C.",
        ),
    ] = False,
    ecn_threshold: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            rich_help_panel=CONGESTION,
            show_default="half of a queue",
            help="Packets in a queue from which on they are marked.",
        ),
    ] = None,
    no_congestion_control: NoControlOption = False,
    congestion_control: ControlOption = False,
    background: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            rich_help_panel=CONGESTION,
            help="TCP flows from each worker to the next; with --fabric mininet.",
        ),
    ] = 0,
    faults: FaultsOption = "",
    pcap: PcapOption = None,
    metrics: MetricsOption = None,
    page: LiveOptions,
    as_json: Annotated[
        bool, typer.Option("--json", rich_help_panel=OUTPUT, help="Print one JSON object.")
    ] = False,
    log_dir: LogDirOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Exchange features through the switch and check every sum.

    Partitions the graph over the workers, plans blocks and order, starts a
    switch with the P4 program, installs the tables over P4Runtime, and sends
    every boundary vertex's feature through it, block by block. Exit code 0 when
    every sum equals that of a reference, 1 when one does not, 2 when the run
    could not be done.
    """
    check_outputs({"--log-dir": log_dir})
    page.check()
    leaf_spine = site.leaf_spine(workers)
    limits = site.usual_limits(shaped=bandwidth is not None or background > 0)
    window = window or limits.window
    heeding = heeds_marks(control=congestion_control, no_control=no_congestion_control)
    options = RunOptions(
        graph=graph,
        workers=workers,
        features=features,
        rounds=rounds,
        slots=slots or load_program().slots,
        target=site.target.value,
        fabric=site.fabric.value,
        backend=site.backend,
        bandwidth=bandwidth,
        seed=seed,
        grpc_port=grpc_port,
        ecn_threshold=limits.ecn_threshold if ecn_threshold is None else ecn_threshold,
        pace=Pace(window=window, patience=patience, congestion_control=heeding),
        background=background,
        faults=faults,
        tls=tls,
        asked=strategies.asked(strategy, leaf_spine),
        leaf_spine=leaf_spine,
        pcap=pcap,
        metrics=find_metrics(metrics, workers),
        framing=Framing.parse(mtu),
    )
    console = plain_console(stderr=True)
    if grpc_port and tls is None:
        console.print(
            f"Warning: every user of this machine may write to the switch at port {grpc_port}: "
            "leave --grpc-port out, or give certificates (--tls).",
            soft_wrap=True,
        )
    end_like_interrupted()
    with (
        fork_nursery() as nursery,
        page.looked_at(f"run {graph} over {workers} workers") as onlooker,
        _progress(console) as progress,
        told_aloud(verbose=verbose),
    ):
        steps = _Steps(progress)

        def hold(running: Fabric, report: RunReport) -> None:
            steps.finish()
            progress.stop()
            _show(report, as_json=as_json)
            _wait_for_interrupt(console, running)

        report = run_job(
            options,
            steps,
            hold=hold if keep else None,
            nursery=nursery,
            log_dir=log_dir,
            onlooker=onlooker,
        )
        steps.finish()
    if not keep:
        _show(report, as_json=as_json)
    if not report.exact:
        raise typer.Exit(_WRONG)


def _show(report: RunReport, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(report.to_dict()))
    else:
        print_report(plain_console(), report)


class _Steps:
    """Shows one progress bar per step."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._bars: dict[str, TaskID] = {}

    def __call__(self, step: str, done: float, total: int) -> None:
        name, _, detail = step.partition(": ")
        if name not in self._bars:
            self.finish()
            self._bars[name] = self._progress.add_task(name, total=None)
        self._progress.update(
            self._bars[name],
            description=f"{name}: {detail}" if detail else name,
            completed=done,
            total=total or None,
        )

    def finish(self) -> None:
        """Show the last step as done."""
        for name, bar in list(self._bars.items())[-1:]:
            total = self._progress.tasks[bar].total or 1
            self._progress.update(bar, description=name, completed=total, total=total)


@contextmanager
def _progress(console: Console) -> Iterator[Progress]:
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=False) as progress:
        yield progress


def _wait_for_interrupt(console: Console, fabric: Fabric) -> None:
    console.print(
        f"{_serving(fabric)}; Ctrl-C ends it.",
        soft_wrap=True,
    )
    try:
        wait_for_interrupt()
    except KeyboardInterrupt:
        return


def _serving(fabric: Fabric) -> str:
    addresses = [switch.grpc_address for switch in fabric.site.switches]
    if len(addresses) == 1:
        return f"The switch serves P4Runtime on {addresses[0]}"
    return f"The switches serve P4Runtime on {', '.join(addresses)}"
