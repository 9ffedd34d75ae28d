# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The controller's commands."""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from switchgnn.base.interruptible import wait_for_interrupt
from switchgnn.base.network import Network
from switchgnn.base.options import with_groups
from switchgnn.controller.clear import clear as clear_switch
from switchgnn.controller.cli.options import (
    OUTPUT,
    PLAN,
    SWITCHES,
    Access,
    Addresses,
    AsJson,
    Deadline,
    ElectionId,
    Installed,
    PlanFolder,
)
from switchgnn.controller.cli.switches import DEFAULT_ADDRESS
from switchgnn.controller.install import Share, install_each
from switchgnn.controller.p4runtime.client import DEFAULT_DEADLINE
from switchgnn.controller.plan import SwitchPlan
from switchgnn.controller.show import print_records, print_state, show_entries
from switchgnn.controller.show import show as show_switch
from switchgnn.controller.target import Progress as Teller
from switchgnn.controller.watch import WATCH_DEADLINE, Watched, WatchEvent, WatchEventKind
from switchgnn.controller.watch import watch as keep_installed
from switchgnn.p4src import Program, load_program, load_strawman
from switchgnn.planner.check.foreign import trusted_plan

app = typer.Typer(
    help="Install, show, clear and watch tables.",
    epilog="Example: switchgnn controller show --address 127.0.0.1:9559",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command(epilog="Example: switchgnn controller install karate-plan --address 127.0.0.1:9559")
@with_groups
def install(
    plan: PlanFolder,
    *,
    address: Addresses = None,
    access: Access,
    installed: Installed,
    election_id: ElectionId = 1,
    new_session: Annotated[
        bool,
        typer.Option("--new-session", rich_help_panel=PLAN, help="For workers that start anew."),
    ] = False,
    as_json: AsJson = False,
    deadline: Deadline = DEFAULT_DEADLINE,
) -> None:
    """Bring switches to a plan: all of them, or none."""
    switches = access.switches(address, election_id=election_id, deadline=deadline)
    with ExitStack() as stack:
        folder = stack.enter_context(trusted_plan(plan, _warn, check=installed.check))
        parts = switches.parts(folder, installed.leaves, installed.spines)
        # Not opened yet: a plan that does not fit needs no switch to be told so.
        clients = switches.clients()
        for client in clients:
            stack.callback(client.close)
        with _progress_bar(visible=not as_json) as tell:
            report = install_each(
                [Share(*part, client) for part, client in zip(parts, clients, strict=True)],
                program=_program(parts),
                ecn_threshold=installed.ecn_threshold,
                new_session=new_session,
                largest_feature=installed.largest_feature,
                progress=tell,
            )
    if as_json:
        typer.echo(json.dumps(asdict(report), indent=2))
        return
    for sentence in report.sentences():
        typer.echo(sentence)
    typer.echo(f"Session {report.session}.")


@app.command(epilog="Example: switchgnn controller show --entries fanout --limit 10")
@with_groups
def show(
    *,
    address: Addresses = None,
    access: Access,
    entries: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            rich_help_panel=OUTPUT,
            show_default=False,
            help="Print this table's entries instead.",
        ),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(min=1, metavar="N", rich_help_panel=OUTPUT, help="The most entries to print."),
    ] = 100,
    as_json: AsJson = False,
    deadline: Deadline = DEFAULT_DEADLINE,
) -> None:
    """Show what switches hold and have counted."""
    console = Console()
    found: list[object] = []
    for client in access.switches(address, deadline=deadline).clients():
        with client:
            if entries is not None:
                records = show_entries(client, entries, limit)
                found.append({"address": client.address, "table": entries, "entries": records})
                if not as_json:
                    print_records(console, records, f"{client.address} {entries}")
            else:
                state = show_switch(client)
                found.append(state.as_json())
                if not as_json:
                    print_state(console, state)
    if as_json:
        typer.echo(json.dumps(found, indent=2))


@app.command(epilog="Example: switchgnn controller clear --address 127.0.0.1:9559")
@with_groups
def clear(
    *,
    address: Addresses = None,
    access: Access,
    election_id: ElectionId = 1,
    deadline: Deadline = DEFAULT_DEADLINE,
) -> None:
    """Take all entries and groups out of switches; the program stays."""
    switches = access.switches(address, election_id=election_id, deadline=deadline)
    for client in switches.clients():
        with client:
            counts = clear_switch(client)
        typer.echo(
            f"Switch {client.address}: {counts.deleted:,} entries removed, "
            f"{counts.modified:,} default actions restored."
        )


@app.command(epilog="Example: switchgnn controller watch karate-plan --interval 0.5")
@with_groups
def watch(
    plan: PlanFolder,
    *,
    address: Addresses = None,
    access: Access,
    installed: Installed,
    election_id: ElectionId = 1,
    interval: Annotated[
        float,
        typer.Option(min=0.1, metavar="SECONDS", rich_help_panel=SWITCHES, help="Between looks."),
    ] = 1.0,
) -> None:
    """Keep a plan installed, also when switches restart, until Ctrl-C.

    Prints what moves.
    """
    switches = access.switches(address, election_id=election_id, deadline=WATCH_DEADLINE)
    with trusted_plan(plan, _warn, check=installed.check) as folder:
        parts = switches.parts(folder, installed.leaves, installed.spines)
    clients = switches.clients()
    try:
        keep_installed(
            [Watched(*part, client) for part, client in zip(parts, clients, strict=True)],
            program=_program(parts),
            on_event=_print_event,
            stop=threading.Event(),
            ecn_threshold=installed.ecn_threshold,
            largest_feature=installed.largest_feature,
            interval=interval,
        )
    except KeyboardInterrupt:
        typer.echo("Stopped watching; the plan stays installed.")


@app.command(epilog="Example: switchgnn controller metrics 127.0.0.1:9559 --port 9560")
@with_groups
def metrics(
    address: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ADDRESS", show_default=DEFAULT_ADDRESS, help="Of switches, as --address."
        ),
    ] = None,
    *,
    access: Access,
    port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65535,
            metavar="PORT",
            rich_help_panel=OUTPUT,
            help="Where Prometheus asks; 0: any that is free.",
        ),
    ] = 9560,
    listen: Annotated[
        str,
        typer.Option(metavar="IP", rich_help_panel=OUTPUT, help="The address to listen on."),
    ] = "127.0.0.1",
    interval: Annotated[
        float,
        typer.Option(
            min=0.0,
            metavar="SECONDS",
            rich_help_panel=SWITCHES,
            help="In which a switch is read once at most.",
        ),
    ] = 1.0,
    deadline: Deadline = 1.0,
) -> None:
    """Serve what switches have counted to Prometheus, until Ctrl-C."""
    from switchgnn.base.metrics import serve_metrics  # noqa: PLC0415
    from switchgnn.controller.metrics import SwitchMetrics  # noqa: PLC0415

    reading = access.switches(address, deadline=deadline)
    switches = SwitchMetrics(reading.clients(), interval)
    try:
        with serve_metrics(switches.collect, listen, port) as found:
            typer.echo(f"Metrics are on http://{listen}:{found}/metrics until Ctrl-C.")
            sys.stdout.flush()
            wait_for_interrupt()
    finally:
        switches.close()


def _program(parts: list[tuple[SwitchPlan, Network]]) -> Program:
    return load_strawman() if parts[0][0].manifest.strawman else load_program()


def _warn(sentence: str) -> None:
    typer.echo(sentence, err=True)


def _print_event(event: WatchEvent) -> None:
    typer.echo(event.message, err=event.kind is WatchEventKind.LOST)


@contextmanager
def _progress_bar(*, visible: bool) -> Iterator[Teller]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, disable=not visible, console=Console(stderr=True)) as bar:
        tasks: dict[str, TaskID] = {}

        def tell(address: str, done: int, total: int) -> None:
            if address not in tasks:
                tasks[address] = bar.add_task(address, total=total)
            bar.update(tasks[address], completed=done)

        yield tell
