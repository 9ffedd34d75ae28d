# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The controller's commands."""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from switchgnn.controller.clear import clear as clear_switch
from switchgnn.controller.controls.congestion import DEFAULT_ECN_THRESHOLD
from switchgnn.controller.described import client_of, parts_for
from switchgnn.controller.errors import ControllerError
from switchgnn.controller.install import Share, install_each
from switchgnn.controller.p4runtime.client import DEFAULT_DEADLINE, P4RuntimeClient
from switchgnn.controller.p4runtime.connection import TlsOptions
from switchgnn.controller.plan import SwitchPlan, leaf_spine_switch_plan, load_plan
from switchgnn.controller.show import print_records, print_state, show_entries
from switchgnn.controller.show import show as show_switch
from switchgnn.controller.target import Progress as Teller
from switchgnn.controller.watch import WATCH_DEADLINE, Watched, WatchEvent, WatchEventKind
from switchgnn.controller.watch import watch as keep_installed
from switchgnn.network import Network, leaf_spine_networks, star_network
from switchgnn.network.described import DescribedNetwork
from switchgnn.network.file import read_network
from switchgnn.p4src import Program, load_program, load_strawman
from switchgnn.planner.check.foreign import trusted_plan
from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from switchgnn.planner.plan.files import read_plan
from switchgnn.planner.plan.leaf_spine import split_for_leaf_spine

DEFAULT_ADDRESS = "127.0.0.1:9559"

app = typer.Typer(
    help="Install, show, clear and watch tables.",
    epilog="Example: switchgnn controller show --address 127.0.0.1:9559",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_SWITCHES, _PLAN, _TLS, _OUTPUT = "Switches", "Plan", "TLS", "Output"
PlanFolder = Annotated[
    Path, typer.Argument(metavar="PLAN", help="Folder of the plan.", show_default=False)
]
Addresses = Annotated[
    list[str] | None,
    typer.Option(
        "--address",
        metavar="ADDRESS",
        rich_help_panel=_SWITCHES,
        show_default=DEFAULT_ADDRESS,
        help="Of a switch, unix:PATH or HOST:PORT; repeatable.",
    ),
]
NetworkFile = Annotated[
    Path | None,
    typer.Option(
        "--network",
        metavar="FILE",
        rich_help_panel=_SWITCHES,
        show_default=False,
        help="A network file, which says all of this in place of the other options.",
    ),
]
DeviceId = Annotated[
    int, typer.Option(metavar="N", rich_help_panel=_SWITCHES, help="The switches' device id.")
]
ElectionId = Annotated[
    int,
    typer.Option(
        metavar="N", rich_help_panel=_SWITCHES, help="The controller with the highest is obeyed."
    ),
]
Leaves = Annotated[
    int,
    typer.Option(
        min=0,
        metavar="N",
        rich_help_panel=_SWITCHES,
        help="How many of the switches, the first ones, are leaves; 0: none.",
    ),
]
Spines = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="N",
        rich_help_panel=_SWITCHES,
        help="How many, the others, are spines; with --leaves.",
    ),
]
Deadline = Annotated[
    float,
    typer.Option(
        min=0.1, metavar="SECONDS", rich_help_panel=_SWITCHES, help="To wait for an answer."
    ),
]
EcnThreshold = Annotated[
    int,
    typer.Option(
        min=0,
        metavar="N",
        rich_help_panel=_PLAN,
        help="Packets in a queue from which on they are marked.",
    ),
]
LargestFeature = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        metavar="NUMBER",
        rich_help_panel=_PLAN,
        show_default="any of which no sum overflows float32",
        help="The largest magnitude that a worker may report.",
    ),
]
Check = Annotated[
    bool | None,
    typer.Option(
        "--check/--no-check",
        rich_help_panel=_PLAN,
        show_default="if others may have changed it",
        help="Check the plan before it is installed.",
    ),
]
TlsRoot = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=_TLS,
        show_default=False,
        help="Certificate (PEM) to trust; turns TLS on.",
    ),
]
TlsCertificate = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=_TLS,
        show_default=False,
        help="This controller's certificate (PEM).",
    ),
]
TlsKey = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=_TLS,
        show_default=False,
        help="Key (PEM) of that certificate.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", rich_help_panel=_OUTPUT, help="Print JSON.")]


@dataclass(frozen=True)
class _Connection:
    device_id: int
    election_id: int = 1
    tls: TlsOptions | None = None
    primary: bool = True
    deadline: float = DEFAULT_DEADLINE

    def client(self, address: str, deadline: float | None = None) -> P4RuntimeClient:
        return P4RuntimeClient(
            address,
            self.device_id,
            self.election_id,
            self.tls,
            primary=self.primary,
            deadline=self.deadline if deadline is None else deadline,
        )


def _tls(root: Path | None, certificate: Path | None, key: Path | None) -> TlsOptions | None:
    if root is None and certificate is None and key is None:
        return None
    return TlsOptions(root, certificate, key)


@app.command(epilog="Example: switchgnn controller install karate-plan --address 127.0.0.1:9559")
def install(
    plan: PlanFolder,
    *,
    address: Addresses = None,
    network: NetworkFile = None,
    leaves: Leaves = 0,
    spines: Spines = 1,
    device_id: DeviceId = 0,
    election_id: ElectionId = 1,
    ecn_threshold: EcnThreshold = DEFAULT_ECN_THRESHOLD,
    new_session: Annotated[
        bool,
        typer.Option("--new-session", rich_help_panel=_PLAN, help="For workers that start anew."),
    ] = False,
    largest_feature: LargestFeature = None,
    check: Check = None,
    as_json: AsJson = False,
    tls_root: TlsRoot = None,
    tls_certificate: TlsCertificate = None,
    tls_key: TlsKey = None,
    deadline: Deadline = DEFAULT_DEADLINE,
) -> None:
    """Bring switches to a plan: all of them, or none."""
    tls = _tls(tls_root, tls_certificate, tls_key)
    connection = _Connection(device_id, election_id, tls, deadline=deadline)
    switches = _switches(network, address, connection, leaves, spines)
    with ExitStack() as stack:
        plan = stack.enter_context(trusted_plan(plan, _warn, check=check))
        loaded = load_plan(plan)
        # Not opened yet: a plan that does not fit needs no switch to be told so.
        clients = switches.clients()
        for client in clients:
            stack.callback(client.close)
        with _progress_bar(visible=not as_json) as tell:
            parts = switches.parts(plan, loaded)
            report = install_each(
                [Share(*part, client) for part, client in zip(parts, clients, strict=True)],
                program=_program(loaded),
                ecn_threshold=ecn_threshold,
                new_session=new_session,
                largest_feature=largest_feature,
                progress=tell,
            )
    if as_json:
        typer.echo(json.dumps(asdict(report), indent=2))
        return
    for sentence in report.sentences():
        typer.echo(sentence)
    typer.echo(f"Session {report.session}.")


@app.command(epilog="Example: switchgnn controller show --entries fanout --limit 10")
def show(
    *,
    address: Addresses = None,
    network: NetworkFile = None,
    device_id: DeviceId = 0,
    entries: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            rich_help_panel=_OUTPUT,
            show_default=False,
            help="Print this table's entries instead.",
        ),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", rich_help_panel=_OUTPUT, help="The most entries to print."
        ),
    ] = 100,
    as_json: AsJson = False,
    tls_root: TlsRoot = None,
    tls_certificate: TlsCertificate = None,
    tls_key: TlsKey = None,
    deadline: Deadline = DEFAULT_DEADLINE,
) -> None:
    """Show what switches hold and have counted."""
    tls = _tls(tls_root, tls_certificate, tls_key)
    connection = _Connection(device_id, tls=tls, primary=False, deadline=deadline)
    console = Console()
    found: list[object] = []
    for client in _switches(network, address, connection).clients():
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
def clear(
    *,
    address: Addresses = None,
    network: NetworkFile = None,
    device_id: DeviceId = 0,
    election_id: ElectionId = 1,
    tls_root: TlsRoot = None,
    tls_certificate: TlsCertificate = None,
    tls_key: TlsKey = None,
    deadline: Deadline = DEFAULT_DEADLINE,
) -> None:
    """Take all entries and groups out of switches; the program stays."""
    tls = _tls(tls_root, tls_certificate, tls_key)
    connection = _Connection(device_id, election_id, tls, deadline=deadline)
    for client in _switches(network, address, connection).clients():
        with client:
            counts = clear_switch(client)
        typer.echo(
            f"Switch {client.address}: {counts.deleted:,} entries removed, "
            f"{counts.modified:,} default actions restored."
        )


@app.command(epilog="Example: switchgnn controller watch karate-plan --interval 0.5")
def watch(
    plan: PlanFolder,
    *,
    address: Addresses = None,
    network: NetworkFile = None,
    leaves: Leaves = 0,
    spines: Spines = 1,
    device_id: DeviceId = 0,
    election_id: ElectionId = 1,
    ecn_threshold: EcnThreshold = DEFAULT_ECN_THRESHOLD,
    largest_feature: LargestFeature = None,
    interval: Annotated[
        float,
        typer.Option(min=0.1, metavar="SECONDS", rich_help_panel=_SWITCHES, help="Between looks."),
    ] = 1.0,
    check: Check = None,
    tls_root: TlsRoot = None,
    tls_certificate: TlsCertificate = None,
    tls_key: TlsKey = None,
) -> None:
    """Keep a plan installed, also when switches restart, until Ctrl-C.

    Prints what moves.
    """
    connection = _Connection(device_id, election_id, _tls(tls_root, tls_certificate, tls_key))
    switches = _switches(network, address, connection, leaves, spines)
    with trusted_plan(plan, _warn, check=check) as folder:
        loaded = load_plan(folder)
        parts = switches.parts(folder, loaded)
    clients = switches.clients(WATCH_DEADLINE)
    try:
        keep_installed(
            [Watched(*part, client) for part, client in zip(parts, clients, strict=True)],
            program=_program(loaded),
            on_event=_print_event,
            stop=threading.Event(),
            ecn_threshold=ecn_threshold,
            largest_feature=largest_feature,
            interval=interval,
        )
    except KeyboardInterrupt:
        typer.echo("Stopped watching; the plan stays installed.")


@app.command(epilog="Example: switchgnn controller metrics 127.0.0.1:9559 --port 9560")
def metrics(
    address: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ADDRESS", show_default=DEFAULT_ADDRESS, help="Of switches, as --address."
        ),
    ] = None,
    *,
    network: NetworkFile = None,
    port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65535,
            metavar="PORT",
            rich_help_panel=_OUTPUT,
            help="Where Prometheus asks; 0: any that is free.",
        ),
    ] = 9560,
    listen: Annotated[
        str,
        typer.Option(metavar="IP", rich_help_panel=_OUTPUT, help="The address to listen on."),
    ] = "127.0.0.1",
    device_id: DeviceId = 0,
    interval: Annotated[
        float,
        typer.Option(
            min=0.0,
            metavar="SECONDS",
            rich_help_panel=_SWITCHES,
            help="In which a switch is read once at most.",
        ),
    ] = 1.0,
    tls_root: TlsRoot = None,
    tls_certificate: TlsCertificate = None,
    tls_key: TlsKey = None,
    deadline: Deadline = 1.0,
) -> None:
    """Serve what switches have counted to Prometheus, until Ctrl-C."""
    from switchgnn.controller.metrics import SwitchMetrics  # noqa: PLC0415
    from switchgnn.metrics import serve_metrics  # noqa: PLC0415

    tls = _tls(tls_root, tls_certificate, tls_key)
    connection = _Connection(device_id, tls=tls, primary=False, deadline=deadline)
    switches = SwitchMetrics(_switches(network, address, connection).clients(), interval)
    try:
        with serve_metrics(switches.collect, listen, port) as found:
            typer.echo(f"Metrics are on http://{listen}:{found}/metrics until Ctrl-C.")
            sys.stdout.flush()
            threading.Event().wait()
    finally:
        switches.close()


@dataclass(frozen=True)
class _Switches:
    """The switches that a command is for."""

    network: DescribedNetwork | None
    addresses: list[str]
    connection: _Connection
    leaves: int
    spines: int

    def clients(self, deadline: float | None = None) -> list[P4RuntimeClient]:
        """Return a client for each, leaves first, not opened yet."""
        if self.network is None:
            return [self.connection.client(each, deadline) for each in self.addresses]
        return [
            client_of(
                switch,
                election_id=self.connection.election_id,
                primary=self.connection.primary,
                deadline=self.connection.deadline if deadline is None else deadline,
            )
            for switch in self.network.in_order
        ]

    def parts(self, folder: Path, plan: SwitchPlan) -> list[tuple[SwitchPlan, Network]]:
        """Return what each serves, and what is around it."""
        if self.network is None:
            return _parts(folder, plan, len(self.addresses), self.leaves, self.spines)
        return parts_for(folder, self.network)


def _switches(
    network: Path | None,
    address: list[str] | None,
    connection: _Connection,
    leaves: int = 0,
    spines: int = 1,
) -> _Switches:
    if network is not None and address:
        raise typer.BadParameter("--network says where the switches are: leave out --address")
    described = None if network is None else read_network(network)
    return _Switches(described, address or [DEFAULT_ADDRESS], connection, leaves, spines)


def _parts(
    folder: Path, plan: SwitchPlan, switches: int, leaves: int, spines: int
) -> list[tuple[SwitchPlan, Network]]:
    """Return what each switch serves, and what is around it.

    Raises:
        ControllerError: there are not as many switches as leaves and spines.
    """
    if not leaves:
        return [(plan, star_network(plan.manifest.workers))] * switches
    if switches != leaves + spines:
        raise ControllerError(
            f"{leaves} leaves and {spines} spines need {leaves + spines} addresses, leaves first; "
            f"{switches} are given."
        )
    whole = read_plan(folder)
    leaf_spine = even_leaf_spine(whole.manifest.workers, leaves, spines)
    parts = split_for_leaf_spine(whole, leaf_spine)
    networks = leaf_spine_networks(leaf_spine.leaf_of_worker, spines).switches
    plans = [leaf_spine_switch_plan(whole.manifest, part) for part in parts.switches]
    return list(zip(plans, networks, strict=True))


def _program(plan: SwitchPlan) -> Program:
    return load_strawman() if plan.manifest.strawman else load_program()


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
