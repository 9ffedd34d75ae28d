"""`switchgnn network`: write down where switches and workers are, and check it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from switchgnn.base.files import whole_file, writing
from switchgnn.base.machine import Amount
from switchgnn.base.network import DEFAULT_JOB, NetworkError, bad_job_name, star_network
from switchgnn.base.network_file import (
    DescribedNetwork,
    DescribedSwitch,
    DescribedWorker,
    Interface,
    Target,
    interface_named,
    interfaces,
    is_address,
    network_text,
    read_network,
)
from switchgnn.base.options import PLAIN, with_groups

app = typer.Typer(
    help="Write down where switches and workers are.",
    epilog="Example: switchgnn network init --interface enp1s0 --interface enp2s0",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
NetworkFile = Annotated[Path, typer.Option(metavar="FILE", help="Use this network file.")]
_USUAL = Path("network.toml")


def draft_star(interfaces: Sequence[Interface], *, grpc: str, target: Target) -> DescribedNetwork:
    """Return a star whose switch is this machine: a port and a worker for each interface.

    Workers have default addresses and the interface ``eth0`` until `attach_worker` changes them.
    """
    if not interfaces:
        raise NetworkError(
            "This machine has no Ethernet interface that is up: name those to the workers, "
            "--interface NAME for each."
        )
    usual, name = star_network(len(interfaces)), "s0"
    ports = {str(number): f"eth:{each.name}" for number, each in enumerate(interfaces, 1)}
    switch = DescribedSwitch(name, grpc, target, usual.switch.mac, usual.switch.ip, ports=ports)
    return DescribedNetwork(
        switches=(switch,),
        workers=tuple(
            DescribedWorker(name, each.port, each.station.mac, each.station.ip, interface="eth0")
            for each in usual.neighbours
        ),
    )


def attach_worker(
    network: DescribedNetwork,
    number: int,
    interface: Interface,
    *,
    gloo: str = "",
    metrics: str = "",
) -> DescribedNetwork:
    """Return the network with a worker at an interface of this machine.

    Its MAC and, if it has one, its IPv4 address become the worker's. With `gloo` workers meet over
    another interface.
    """
    if not 0 <= number < len(network.workers):
        raise NetworkError(
            f"There is no worker {number}: the network has the workers 0 to "
            f"{len(network.workers) - 1}."
        )
    old = network.workers[number]
    new = replace(
        old,
        interface=interface.name,
        link="",
        mac=interface.mac,
        ip=interface.ip or old.ip,
        gloo=gloo or old.gloo,
        metrics=metrics or old.metrics,
    )
    workers = (*network.workers[:number], new, *network.workers[number + 1 :])
    return replace(network, workers=workers)


@dataclass(frozen=True, kw_only=True)
class InitOptions:
    """The options of `switchgnn network init`."""

    interface: list[str] | None = PLAIN.option(
        "NAME",
        "Reach a worker through this interface; repeat it, worker 0 first. By default, all "
        "interfaces that are up.",
    )
    grpc: str = PLAIN.option(
        "HOST:PORT", "Serve P4Runtime at this address.", default="127.0.0.1:9559"
    )
    target: Target = PLAIN.option(None, "Write down this kind of switch.", default=Target.EMBEDDED)
    job: str = PLAIN.option(
        "NAME", "Let the workers be this job of the switch.", default=DEFAULT_JOB
    )
    out: NetworkFile = _USUAL


@app.command(epilog="Example: switchgnn network init --interface enp1s0 --interface enp2s0")
@with_groups
def init(asked: InitOptions) -> None:
    """At the switch: write a star with a port and a worker for each of its interfaces."""
    out = asked.out
    if out.exists():
        raise NetworkError(f"{out} exists already: remove it, or name another file with --out.")
    if problem := bad_job_name(asked.job):
        raise NetworkError(f"{problem}.")
    if asked.interface:
        chosen = [interface_named(name) for name in asked.interface]
    else:
        chosen = [each for each in interfaces() if each.up]
    network = draft_star(chosen, grpc=asked.grpc, target=asked.target)
    _write(replace(network, job=asked.job), out)
    typer.echo(
        f"Wrote {out}: {_words(network)}. Now run on each worker's machine: "
        f"switchgnn network worker 0 --interface eth0 --network {out}"
    )


@dataclass(frozen=True, kw_only=True)
class AttachOptions:
    """The options of `switchgnn network worker`."""

    interface: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Reach the switch through this interface of this machine."
        ),
    ]
    gloo: str = PLAIN.option(
        "NAME", "Let workers meet and add gradients over this other interface.", default=""
    )
    metrics: str = PLAIN.option(
        "[ADDRESS:]PORT",
        "Serve metrics for `switchgnn live` and Prometheus here; without ADDRESS, on that of "
        "--gloo, or else on loopback.",
        default="",
    )
    network: NetworkFile = _USUAL


@app.command(epilog="Example: switchgnn network worker 2 --interface enp1s0")
@with_groups
def worker(
    number: Annotated[
        int, typer.Argument(min=0, help="The number of the worker.", show_default=False)
    ],
    asked: AttachOptions,
) -> None:
    """At a worker: write its interface and addresses into the network file."""
    network, metrics, gloo = asked.network, asked.metrics, asked.gloo
    address = interface_named(gloo).ip if gloo else "127.0.0.1"
    if metrics.isdecimal():
        if not address:
            raise NetworkError(f"{gloo} has no IPv4 address: give --metrics ADDRESS:PORT.")
        metrics = f"{address}:{metrics}"
    if metrics and not is_address(metrics):
        raise NetworkError(f"Metrics cannot be served on {metrics!r}: write PORT or ADDRESS:PORT.")
    attached = attach_worker(
        read_network(network), number, interface_named(asked.interface), gloo=gloo, metrics=metrics
    )
    _write(attached, network)
    here = attached.workers[number]
    typer.echo(
        f"Worker {number} is {here.mac}, {here.ip}, on {here.interface}"
        f"{f'; its metrics are on {here.metrics}' if here.metrics else ''}."
    )


@app.command(epilog="Example: switchgnn network check --network network.toml")
def check(network: NetworkFile = _USUAL) -> None:
    """Check a network file and print what it describes."""
    typer.echo(f"{network}: {_words(read_network(network))}.")


def _words(network: DescribedNetwork) -> str:
    workers = f"{Amount(len(network.workers)):worker}"
    if not network.cables:
        (switch,) = network.switches
        return f"{workers} around switch {switch.name}, P4Runtime at {switch.grpc}"
    return f"{workers}, {Amount(len(network.leaves)):leaf}, {Amount(len(network.spines)):spine}"


def _write(network: DescribedNetwork, path: Path) -> None:
    with writing(path, refuse=NetworkError), whole_file(path) as file:
        file.write(network_text(network).encode())
    # Check the file as others will read it.
    read_network(path)
