"""``python -m bench``: measures all figures that this machine can measure, as one table."""

import json
import os
import platform
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from datetime import datetime, timezone
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer
from rich.console import Console

from bench.figures import adapt as fig_adapt
from bench.figures import allreduce as fig_allreduce
from bench.figures import auto as fig_auto
from bench.figures import clone as fig_clone
from bench.figures import compression as fig_compression
from bench.figures import congestion as fig_congestion
from bench.figures import entries as fig_entries
from bench.figures import epoch as fig_epoch
from bench.figures import exchange as fig_exchange
from bench.figures import host as fig_host
from bench.figures import install as fig_install
from bench.figures import jobs as fig_jobs
from bench.figures import lanes as fig_lanes
from bench.figures import local as fig_local
from bench.figures import loss as fig_loss
from bench.figures import machines as fig_machines
from bench.figures import peers as fig_peers
from bench.figures import phases as fig_phases
from bench.figures import plain as fig_plain
from bench.figures import planner as fig_planner
from bench.figures import predicted as fig_predicted
from bench.figures import priorities as fig_priorities
from bench.figures import recovery as fig_recovery
from bench.figures import shared_slots as fig_shared_slots
from bench.figures import simulated as fig_simulated
from bench.figures import stream as fig_stream
from bench.figures import targets as fig_targets
from bench.figures import training as fig_training
from bench.figures import wire as fig_wire
from bench.line import ResultLine
from bench.settings import Settings
from bench.table import make_console, render
from bench.testbeds.namespace import Namespace
from switchgnn.base.errors import SwitchGNNError

_FIGURES = (
    fig_plain,
    fig_targets,
    fig_lanes,
    fig_install,
    fig_jobs,
    fig_entries,
    fig_host,
    fig_exchange,
    fig_loss,
    fig_recovery,
    fig_simulated,
    fig_phases,
    fig_congestion,
    fig_shared_slots,
    fig_local,
    fig_epoch,
    fig_wire,
    fig_predicted,
    fig_auto,
    fig_adapt,
    fig_training,
    fig_machines,
    fig_peers,
    fig_stream,
    fig_allreduce,
    fig_priorities,
    fig_compression,
    fig_planner,
)
_NAMES = [figure.NAME for figure in (*_FIGURES, fig_clone)]


def main(  # noqa: PLR0917 - typer makes options of them
    json_file: Annotated[
        Path | None, typer.Option("--json", help="File to write all measurements to.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help=f"Measure only this; repeatable: {', '.join(_NAMES)}.")
    ] = None,
    quick: Annotated[bool, typer.Option(help="Fewer and shorter measurements.")] = False,
    plots: Annotated[
        Path | None, typer.Option(help="Folder for pictures, of figures that have one.")
    ] = None,
    clone: Annotated[
        bool, typer.Option(help="Also clone, install and run everything anew (minutes).")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(help="Also measure epochs on this data set, as train --data takes it."),
    ] = None,
    peers: Annotated[
        bool, typer.Option("--peers", help="Measure only beside other systems, as --only peers.")
    ] = False,
    full: Annotated[
        bool, typer.Option(help="Plan a graph of the paper's size (8 GB of memory, minutes).")
    ] = False,
) -> None:
    """Measure the figures of docs/evidence/benchmarks.md, as far as this machine can."""
    only = [*(only or ()), fig_peers.NAME] if peers else only
    unknown = sorted(set(only or ()) - set(_NAMES))
    if unknown:
        known = ", ".join(_NAMES)
        raise typer.BadParameter(f"There is no figure {', '.join(unknown)}; known: {known}.")
    # With this, a terminated run cleans up like an interrupted one.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    cloned = clone or fig_clone.NAME in (only or ())
    settings = Settings(clone=cloned, plots=plots, full=full, data=data)
    lines, left_out = _measure(settings.quick if quick else settings, only, Console(stderr=True))
    console = make_console()
    console.print(render(lines))
    for name, reason in left_out.items():
        console.print(f"Left out: {name}: {reason}.", soft_wrap=True)
    if json_file is not None:
        json_file.write_text(json.dumps(_document(lines, left_out), indent=1) + "\n")


def _measure(
    settings: Settings, only: list[str] | None, console: Console
) -> tuple[list[ResultLine], dict[str, str]]:
    lines: list[ResultLine] = []
    left_out: dict[str, str] = {}
    for figure in _chosen(settings, only, left_out):
        started = time.monotonic()
        console.print(f"{figure.NAME} …", end="")
        try:
            lines.extend(_measured(figure, settings))
        except SwitchGNNError as error:
            left_out[figure.NAME] = f"failed: {str(error).rstrip('.')}"
        console.print(f" {time.monotonic() - started:.0f} s")
    return lines, left_out


def _chosen(
    settings: Settings, only: list[str] | None, left_out: dict[str, str]
) -> Iterator[ModuleType]:
    figures = (*_FIGURES, fig_clone) if settings.clone else _FIGURES
    if not settings.clone:
        left_out[fig_clone.NAME] = "takes minutes, ask for it with --clone"
    for figure in figures:
        reason = figure.missing()
        if only and figure.NAME not in only:
            continue
        if reason is not None:
            left_out[figure.NAME] = reason
        else:
            yield figure


def _measured(figure: ModuleType, settings: Settings) -> list[ResultLine]:
    run: Callable[[Settings], Iterator[ResultLine]] = figure.run
    # Most figures make their interfaces in a namespace, which ends together with them.
    own_namespace = getattr(figure, "OWN_NAMESPACE", True)
    with ExitStack() as stack:
        stack.enter_context(Namespace() if own_namespace else nullcontext())
        return list(run(settings))


def _document(lines: list[ResultLine], left_out: dict[str, str]) -> dict[str, object]:
    return {
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "lines": [line.to_dict() for line in lines],
        "left_out": left_out,
    }


if __name__ == "__main__":
    typer.run(main)
