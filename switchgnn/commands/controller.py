"""The controller's commands."""

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from enum import Enum
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from switchgnn.base.interruptible import wait_for_interrupt
from switchgnn.base.machine import Amount
from switchgnn.base.network import (
    DEFAULT_JOB,
    Network,
    leaf_spine_networks,
    network_on,
    star_network,
)
from switchgnn.base.network_file import DescribedNetwork, read_network
from switchgnn.base.options import JOB, OUTPUT, PLAN, SWITCHES, TLS, with_groups
from switchgnn.commands.shared import switch_state
from switchgnn.commands.shared.console import plain_console
from switchgnn.commands.shared.options import parse_ports
from switchgnn.controller import ControllerError, JobRequest, SwitchPlan, TlsOptions, read_counters
from switchgnn.controller.controls.congestion import BMV2_QUEUE, DEFAULT_ECN_THRESHOLD
from switchgnn.controller.install import DesiredStates, Share, install_each
from switchgnn.controller.install import clear as clear_switch
from switchgnn.controller.jobs import loop_use, remove_job
from switchgnn.controller.p4runtime.client import DEFAULT_DEADLINE, P4RuntimeClient, program_cookie
from switchgnn.controller.show import NO_TABLES, show_entries
from switchgnn.controller.show import show as show_switch
from switchgnn.controller.target import Progress as Teller
from switchgnn.controller.target import client_of, manifest_of, parts_for, parts_over
from switchgnn.controller.watch import WATCH_DEADLINE, WatchEventKind, watch_jobs
from switchgnn.controller.watch import watch as keep_installed
from switchgnn.p4src import Program, load_program, load_strawman, load_tofino, program_named
from switchgnn.planner.check.foreign import trusted_plan
from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from switchgnn.planner.plan.plan import Plan

DEFAULT_ADDRESS = "127.0.0.1:9559"
# A running job sends signs of life at least this often.
_WATCHED_SECONDS = 1.0
_warn = partial(typer.echo, err=True)


def parts_by_number(
    plan: Path | Plan, switches: int, leaves: int, spines: int, ports: list[int] | None = None
) -> list[tuple[SwitchPlan, Network]]:
    """Return what each of some switches serves of a plan, and what is around it."""
    workers = manifest_of(plan).workers
    if ports is not None and (leaves or len(ports) != workers):
        raise ControllerError(
            f"--ports names {Amount(len(ports)):port}, but the plan has {Amount(workers):worker}: "
            "name one for each."
            if not leaves
            else "--ports is for one switch: describe leaves and spines in a file (--network)."
        )
    if not leaves:
        around = star_network(workers) if ports is None else network_on(ports)
        return parts_over(plan, None, [around] * switches)
    if switches != leaves + spines:
        raise ControllerError(
            f"--leaves {leaves} and --spines {spines} need {leaves + spines} addresses, "
            f"leaves first; {switches} are given."
        )
    leaf_spine = even_leaf_spine(workers, leaves, spines)
    networks = leaf_spine_networks(leaf_spine.leaf_of_worker, spines).switches
    return parts_over(plan, leaf_spine, networks)


PlanFolder = Annotated[
    Path, typer.Argument(metavar="PLAN", help="The folder of the plan.", show_default=False)
]
Addresses = Annotated[
    list[str] | None,
    SWITCHES.info(
        "Of a switch, unix:PATH or HOST:PORT; repeatable.",
        "--address",
        metavar="ADDRESS",
        show_default=DEFAULT_ADDRESS,
    ),
]
ElectionId = Annotated[
    int, SWITCHES.info("The controller with the highest is obeyed.", metavar="N")
]
Deadline = Annotated[float, SWITCHES.info("To wait for an answer.", min=0.1, metavar="SECONDS")]
AsJson = Annotated[bool, OUTPUT.info("Print JSON.", "--json")]


@dataclass(frozen=True)
class Access:
    """How switches are reached; all commands have these options."""

    network: Path | None = SWITCHES.option(
        "FILE", "Read all of this from a network file instead of the other options."
    )
    device_id: int = SWITCHES.option("N", "Use this device id of the switches.", default=0)
    tls_root: Path | None = TLS.option("FILE", "Trust this certificate (PEM); turns TLS on.")
    tls_certificate: Path | None = TLS.option(
        "FILE", "Identify this controller by this certificate (PEM)."
    )
    tls_key: Path | None = TLS.option("FILE", "Use this key (PEM) of that certificate.")

    @cached_property
    def described(self) -> DescribedNetwork | None:
        """The network file, if there is one."""
        return None if self.network is None else read_network(self.network)

    def clients(
        self,
        addresses: list[str] | None,
        *,
        election_id: int | None = None,
        deadline: float = DEFAULT_DEADLINE,
    ) -> list[P4RuntimeClient]:
        """Return a client for each switch, leaves first, not opened yet; without an id, to read."""
        options: dict[str, Any] = {
            "election_id": election_id or 1,
            "primary": election_id is not None,
            "deadline": deadline,
        }
        if self.described is None:
            files = (self.tls_root, self.tls_certificate, self.tls_key)
            tls = None if files == (None, None, None) else TlsOptions(*files)
            return [
                P4RuntimeClient(address, self.device_id, tls=tls, **options)
                for address in addresses or [DEFAULT_ADDRESS]
            ]
        if addresses:
            raise typer.BadParameter("--network says where the switches are: leave out --address")
        return [client_of(switch, **options) for switch in self.described.in_order]

    def shares(
        self, plan: Path | Plan, installed: "Installed", clients: list[P4RuntimeClient]
    ) -> list[Share]:
        """Return what each switch serves of a plan, and what is around it."""
        if self.described is None:
            ports = None if installed.ports is None else parse_ports(installed.ports)
            shape = installed.leaves, installed.spines, ports
            parts = parts_by_number(plan, len(clients), *shape)
        elif installed.ports is not None:
            raise typer.BadParameter("--network says which ports: leave out --ports")
        else:
            parts = parts_for(plan, self.described)
        return [Share(*part, client) for part, client in zip(parts, clients, strict=True)]


class Slots(str, Enum):
    """Whose the slots of a job are."""

    FIXED = "fixed"
    SHARED = "shared"


@dataclass(frozen=True)
class Installed:
    """How a plan comes to be on switches, once or again and again."""

    leaves: int = SWITCHES.option(
        "N", "Take the first N switches as leaves; 0: a star.", default=0, min=0
    )
    spines: int = SWITCHES.option(
        "N", "Take the other N switches as spines; with --leaves.", default=1, min=1
    )
    job: str | None = JOB.option(
        "NAME", "Install it as this job, beside others.", shown=DEFAULT_JOB
    )
    ports: str | None = JOB.option(
        "PORTS", "The ports of its workers, such as 1-4,7.", shown="1 to the number of workers"
    )
    slots: Slots = JOB.option(
        None,
        "Let jobs of the strawman's program take slots from one memory (shared).",
        default=Slots.FIXED,
    )
    quota: int | None = JOB.option(
        "SLOTS", "Refuse a plan that needs more slots.", shown="any that are free"
    )
    ecn_threshold: int = PLAN.option(
        "N",
        "Beside ordinary traffic, mark packets that find N or more in a queue.",
        default=DEFAULT_ECN_THRESHOLD,
        min=0,
    )
    queue: int = PLAN.option(
        "N",
        "The switch's queues hold N packets; without ordinary traffic, packets that find more "
        "than the sums of a block, or three quarters of N, are marked.",
        default=BMV2_QUEUE,
        min=1,
    )
    largest_feature: float | None = PLAN.option(
        "NUMBER",
        "Refuse workers that report a larger magnitude.",
        min=0.0,
        shown="any of which no sum overflows float32",
    )
    check: bool | None = PLAN.option(
        None,
        "Check the plan before it is installed.",
        "--check/--no-check",
        shown="if others may have changed it",
    )

    def desired(self, shares: list[Share]) -> DesiredStates:
        """Return what switches shall hold for a plan, with the program that it is for."""
        manifest = shares[0].plan.manifest
        program = load_strawman() if manifest.strawman else program_named(manifest.program)
        return DesiredStates(program, self.ecn_threshold, self.queue, self.largest_feature)

    def request(self, described: DescribedNetwork | None) -> JobRequest:
        """Return what the job asks for, with the name of a network file unless one is given."""
        named = described.job if described is not None else DEFAULT_JOB
        shared = self.slots is Slots.SHARED
        return JobRequest(self.job or named, self.quota, int(time.time()), shared)


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
        bool, PLAN.info("For workers that have restarted.", "--new-session")
    ] = False,
    as_json: AsJson = False,
    deadline: Deadline = DEFAULT_DEADLINE,
) -> None:
    """Bring switches to a plan: all of them, or none."""
    # Not opened yet: a plan that does not fit needs no switch to be told so.
    clients = access.clients(address, election_id=election_id, deadline=deadline)
    shares = access.shares(trusted_plan(plan, _warn, check=installed.check), installed, clients)
    with ExitStack() as stack:
        for client in clients:
            stack.callback(client.close)
        with _progress_bar(visible=not as_json) as tell:
            report = install_each(
                shares,
                installed.desired(shares),
                installed.request(access.described),
                new_session=new_session,
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
        OUTPUT.info("Print this table's entries instead.", metavar="TABLE", show_default=False),
    ] = None,
    limit: Annotated[int, OUTPUT.info("The most entries to print.", min=1, metavar="N")] = 100,
    as_json: AsJson = False,
    deadline: Deadline = DEFAULT_DEADLINE,
) -> None:
    """Show what switches hold and have counted."""
    console = plain_console()
    found: list[object] = []
    for client in access.clients(address, deadline=deadline):
        with client:
            if entries is not None:
                records = show_entries(client, entries, limit)
                found.append({"address": client.address, "table": entries, "entries": records})
                if not as_json:
                    switch_state.print_records(console, records, f"{client.address} {entries}")
            else:
                state = show_switch(client)
                found.append(state.as_json())
                if not as_json:
                    switch_state.print_state(console, state)
    if as_json:
        typer.echo(json.dumps(found, indent=2))


@app.command(epilog="Example: switchgnn controller jobs --seconds 2")
@with_groups
def jobs(
    *,
    address: Addresses = None,
    access: Access,
    seconds: Annotated[
        float,
        OUTPUT.info("Measure for this long how jobs share the loop.", min=0, metavar="SECONDS"),
    ] = 0.0,
    as_json: AsJson = False,
    deadline: Deadline = DEFAULT_DEADLINE,
) -> None:
    """List the jobs of each switch with their ports, slots and share of the loop."""
    console = plain_console()
    found: list[object] = []
    for client in access.clients(address, deadline=deadline):
        with client:
            before = read_counters(client) if seconds else None
            if before is not None:
                threading.Event().wait(seconds)
            state = show_switch(client, NO_TABLES)
            uses = [] if before is None else loop_use(before, state.counters)
        records = [
            {**job.as_json(), **({"use": asdict(uses[job.place.job])} if uses else {})}
            for job in state.jobs
        ]
        found.append({"address": client.address, "jobs": records})
        if not as_json:
            console.print(f"Switch {client.address}: {Amount(len(records)):job}")
            if records:
                console.print(switch_state.jobs_table(state.jobs, uses, seconds))
    if as_json:
        typer.echo(json.dumps(found, indent=2))


@app.command(epilog="Example: switchgnn controller remove training-b")
@with_groups
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The job.", show_default=False)],
    *,
    address: Addresses = None,
    access: Access,
    election_id: ElectionId = 1,
    force: Annotated[
        bool, PLAN.info("Remove it even if its workers are sending.", "--force")
    ] = False,
    deadline: Deadline = DEFAULT_DEADLINE,
) -> None:
    """Remove a job from switches; other jobs continue."""
    with ExitStack() as stack:
        found = access.clients(address, election_id=election_id, deadline=deadline)
        clients = [stack.enter_context(client) for client in found]
        before = [] if force else [read_counters(client) for client in clients]
        if before:
            threading.Event().wait(_WATCHED_SECONDS)
        removed = remove_job(clients, name, before)
    for client, (place, counts) in zip(clients, removed, strict=True):
        typer.echo(
            f"Switch {client.address}: job {place.name} removed, {counts.deleted:,} entries; ports "
            f"{switch_state.ranges_text(place.ports)} and {switch_state.slots_text(place)} slots "
            "in each bank are free."
        )


@app.command(epilog="Example: switchgnn controller clear --address 127.0.0.1:9559")
@with_groups
def clear(
    *,
    address: Addresses = None,
    access: Access,
    election_id: ElectionId = 1,
    deadline: Deadline = DEFAULT_DEADLINE,
) -> None:
    """Take all entries and groups out of switches, of all jobs; the program stays."""
    for client in access.clients(address, election_id=election_id, deadline=deadline):
        with client:
            counts = clear_switch(client)
        typer.echo(
            f"Switch {client.address}: {counts.deleted:,} entries removed, "
            f"{counts.modified:,} default actions restored."
        )


@app.command(epilog="Example: switchgnn controller watch karate-plan --interval 0.5")
@with_groups
def watch(
    plan: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PLAN]",
            help="The folder of a plan to install; without one, only jobs that are there.",
            show_default=False,
        ),
    ] = None,
    *,
    address: Addresses = None,
    access: Access,
    installed: Installed,
    election_id: ElectionId = 1,
    interval: Annotated[float, SWITCHES.info("Between looks.", min=0.1, metavar="SECONDS")] = 1.0,
) -> None:
    """Restore the jobs of restarted switches, and keep a plan installed, until Ctrl-C."""
    clients = access.clients(address, election_id=election_id, deadline=WATCH_DEADLINE)
    how: dict[str, Any] = {
        "on_event": lambda it: typer.echo(it.message, err=it.kind is WatchEventKind.LOST),
        "stop": threading.Event(),
        "interval": interval,
    }
    try:
        if plan is None:
            watch_jobs(clients, _program_of(clients[0]), **how)
        else:
            trusted = trusted_plan(plan, _warn, check=installed.check)
            shares = access.shares(trusted, installed, clients)
            request = installed.request(access.described)
            keep_installed(shares, installed.desired(shares), request, **how)
    except KeyboardInterrupt:
        typer.echo("Stopped watching; the jobs stay installed.")


@app.command(epilog="Example: switchgnn controller metrics 127.0.0.1:9559 --port 9560")
@with_groups
def metrics(
    address: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ADDRESS",
            show_default=DEFAULT_ADDRESS,
            help="Addresses of switches, as for --address.",
        ),
    ] = None,
    *,
    access: Access,
    port: Annotated[
        int,
        OUTPUT.info(
            "Where Prometheus asks; 0: any that is free.", min=0, max=65535, metavar="PORT"
        ),
    ] = 9560,
    listen: Annotated[str, OUTPUT.info("The address to listen on.", metavar="IP")] = "127.0.0.1",
    interval: Annotated[
        float, SWITCHES.info("In which a switch is read once at most.", min=0.0, metavar="SECONDS")
    ] = 1.0,
    deadline: Deadline = 1.0,
) -> None:
    """Serve what switches have counted to Prometheus, until Ctrl-C."""
    from switchgnn.base.metrics import serve_metrics  # noqa: PLC0415
    from switchgnn.controller.metrics import SwitchMetrics  # noqa: PLC0415

    switches = SwitchMetrics(access.clients(address, deadline=deadline), interval)
    try:
        with serve_metrics(switches, listen, port) as found:
            typer.echo(f"Metrics are on http://{listen}:{found}/metrics until Ctrl-C.")
            sys.stdout.flush()
            wait_for_interrupt()
    finally:
        switches.close()


def _program_of(client: P4RuntimeClient) -> Program:
    """Return the program of ours that a switch runs, and else the product's."""
    with client.another() as observer:
        cookie = observer.get_pipeline_cookie()
    others = (load_strawman(), load_tofino())
    return next((each for each in others if program_cookie(each) == cookie), load_program())


@contextmanager
def _progress_bar(*, visible: bool) -> Iterator[Teller]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, disable=not visible, console=plain_console(stderr=True)) as bar:
        tasks: dict[str, TaskID] = {}

        def tell(address: str, done: int, total: int) -> None:
            if address not in tasks:
                tasks[address] = bar.add_task(address, total=total)
            bar.update(tasks[address], completed=done)

        yield tell
