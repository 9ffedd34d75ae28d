"""`switchgnn doctor`: what is installed, what is missing, and the commands that install it."""

import json
import os
import platform
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from switchgnn.base import network_file
from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.machine import how_to_install, version_of
from switchgnn.base.native import find_compiler
from switchgnn.commands.shared.console import plain_console
from switchgnn.controller import ControllerError, program_cookie
from switchgnn.controller.target import client_of, served_jobs
from switchgnn.host.wire.header import FEATURE_FRAME_BYTES
from switchgnn.p4src import load_program
from switchgnn.topologies.mininet_fabric import mininet_missing
from switchgnn.topologies.targets import backend_of_auto

_SECONDS = 3.0
_ETHERNET_BYTES = 14
# A software switch forwards packets unchanged: checksums left to the network card are wrong at the
# other end, and merged frames exceed the MTU.
_OFFLOADS = {
    "tx-checksumming": "tx",
    "tcp-segmentation-offload": "tso",
    "generic-segmentation-offload": "gso",
    "generic-receive-offload": "gro",
}
_MISSING_REQUIRED = 2
_COMPILED = "switchgnn simulate, and native code in the embedded switch and hosts"
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class Finding:
    """A requirement: its version or path (None: missing), and the command that installs it."""

    name: str
    needed_for: str
    required: bool
    found: str | None
    fix: str


def examine_network(network: network_file.DescribedNetwork) -> list[Finding]:
    """Examine the switches and this machine's part of the network.

    A worker belongs to this machine if the interface of its name has its MAC.
    """
    here = {interface.name: interface for interface in network_file.interfaces()}
    found = [_switch(switch) for switch in network.in_order]
    own = [
        (number, worker, here[worker.interface])
        for number, worker in enumerate(network.workers)
        if worker.interface in here and here[worker.interface].mac == worker.mac.lower()
    ]
    for number, worker, interface in own:
        found += _worker(number, worker, interface, here)
    taken = [name.partition(":") for each in network.switches for name in each.ports.values()]
    for kind, _, name in taken:
        if kind == "eth" and name in here:
            found += _interface(f"port {name}", here[name])
    if own or any(name in here for _, _, name in taken):
        found.append(_packets())
    return found


def _switch(switch: network_file.DescribedSwitch) -> Finding:
    name, use = f"switch {switch.name}", f"P4Runtime at {switch.grpc}"
    start = f"start it: switchgnn switch, or simple_switch_grpc, with P4Runtime at {switch.grpc}"
    try:
        with client_of(switch, primary=False, deadline=_SECONDS) as client:
            cookie = client.get_pipeline_cookie()
            if cookie is None:
                return Finding(name, use, True, "no program yet; installing brings it", "")
            if cookie != program_cookie(load_program()):
                return Finding(name, use, True, "another program; installing replaces it", "")
            jobs = served_jobs(client)
    except ControllerError as error:
        return Finding(name, f"{use} ({error})", True, None, start)
    except SwitchGNNError as error:
        return Finding(name, use, True, None, str(error))
    served = (
        f"{place.name} (plan {entry.plan:08x}, {entry.workers} workers, session {entry.session})"
        for place, entry in jobs
    )
    return Finding(name, use, True, "; ".join(served) or "our program, no job", "")


def _worker(
    number: int,
    worker: network_file.DescribedWorker,
    interface: network_file.Interface,
    here: dict[str, network_file.Interface],
) -> Iterator[Finding]:
    yield from _interface(f"worker {number}: {interface.name}", interface)
    if worker.gloo:
        known = worker.gloo in here or worker.gloo == "lo"
        yield Finding(
            f"worker {number}: {worker.gloo}",
            "meeting other workers, adding gradients",
            True,
            "there" if known else None,
            f"switchgnn network worker {number} --interface {interface.name} --gloo NAME",
        )
    if worker.metrics_address is not None:
        host, _ = worker.metrics_address
        yield Finding(
            f"worker {number}: {worker.metrics}",
            "metrics",
            False,
            "there" if _is_here(host) else None,
            f"switchgnn network worker {number} --interface {interface.name} --metrics PORT",
        )


def _is_here(host: str) -> bool:
    try:
        socket.create_server((host, 0)).close()
    except OSError:
        return False
    return True


def _interface(name: str, interface: network_file.Interface) -> Iterator[Finding]:
    up = f"MTU {interface.mtu}" if interface.up else None
    yield Finding(name, "packets", True, up, f"ip link set {interface.name} up")
    least = FEATURE_FRAME_BYTES - _ETHERNET_BYTES
    if interface.mtu < least:
        fix = f"ip link set {interface.name} mtu {least}"
        yield Finding(f"{name}, MTU", f"packets of {least} bytes", True, None, fix)
    on = _offloads_on(interface.name)
    if on is None:
        yield Finding(f"{name}, offloads", "TCP", False, None, "apt-get install ethtool")
        return
    fix = f"ethtool -K {interface.name} {' '.join(f'{word} off' for word in on)}"
    yield Finding(f"{name}, offloads", "TCP beside it", False, None if on else "off", fix)


def _offloads_on(name: str) -> list[str] | None:
    """Return the active offloads as `ethtool -K` calls them; None without ethtool."""
    if shutil.which("ethtool") is None:
        return None
    told = subprocess.run(
        ["ethtool", "-k", name], capture_output=True, text=True, check=False, timeout=_SECONDS
    )
    lines = [line.strip().split(": ") for line in told.stdout.splitlines()]
    states = {line[0]: line[1] for line in lines if len(line) == 2}
    return [word for long, word in _OFFLOADS.items() if states.get(long, "off").startswith("on")]


def _packets() -> Finding:
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
        found: str | None = "yes"
    except PermissionError:
        found = None
    return Finding(
        "packet sockets", "links of eth:", True, found, "sudo, or CAP_NET_RAW for the process"
    )


@app.command(epilog="Example: switchgnn doctor --json")
def doctor(
    network: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Examine the network of this file instead, seen from here: switches, MTU, "
            "offloads, permissions.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List what is installed, what is missing, and how to install it.

    The exit code is 0 if everything required is here, and 2 otherwise.
    """
    findings = examine() if network is None else examine_network(network_file.read_network(network))
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings]))
    else:
        plain_console().print(_table(findings))
        # Cells of a table would wrap commands.
        absent = [finding for finding in findings if finding.found is None]
        lines = dict.fromkeys(f"  {finding.name}: {finding.fix}" for finding in absent)
        for line in ["To fix it:", *lines] if lines else ["Everything is here."]:
            plain_console(highlight=False, soft_wrap=True).print(line)
    if any(finding.required and finding.found is None for finding in findings):
        raise typer.Exit(_MISSING_REQUIRED)


def examine() -> list[Finding]:
    """Look for everything that some part of the project uses."""
    root, no_mininet = "yes" if os.geteuid() == 0 else None, mininet_missing()
    return [
        Finding("Python", "everything", True, platform.python_version(), "install Python 3.10+"),
        Finding("compiled P4 program", "both switches", True, _program(), "make p4"),
        *(
            Finding(name, use, True, version_of(name), how_to_install())
            for name, use in _PACKAGES.items()
        ),
        *(
            Finding(name, use, False, version_of(name), how_to_install(extra))
            for name, (use, extra) in _OPTIONAL.items()
        ),
        Finding("root", "Mininet, packet tests on veth", False, root, "sudo"),
        _program_finding("mnexec", "Mininet", _FIX_MININET),
        Finding("mininet", "Mininet", False, version_of("mininet"), how_to_install("mininet")),
        _program_finding("ethtool", "Mininet", _FIX_MININET),
        Finding(
            *("fabric mininet", "hosts in namespaces of their own", False),
            *((None, no_mininet) if no_mininet else ("a trial network works", "")),
        ),
        Finding("C++ compiler", _COMPILED, False, find_compiler(), "apt-get install g++"),
        Finding(
            *("embedded switch", "everything without BMv2", False, backend_of_auto()),
            "install a C++ compiler",
        ),
        _program_finding("simple_switch_grpc", "the bmv2 switch", _FIX_BMV2),
        _program_finding("p4c-bm2-ss", "changing the P4 program", _FIX_P4C),
    ]


_FIX_MININET = "apt-get install mininet ethtool"
_FIX_BMV2 = (
    "apt-get install p4lang-bmv2 (packages of p4lang: see the README of p4lang/behavioral-model); "
    "or build p4lang/PI, then p4lang/behavioral-model"
)
_FIX_P4C = (
    "apt-get install p4lang-p4c (packages of p4lang: see the README of p4lang/p4c), or take it "
    "from the image p4lang/p4c; or build p4lang/p4c"
)
_PACKAGES = {
    "numpy": "everything",
    "scipy": "the reference",
    "numba": "the planner, on large graphs",
    "pymetis": "the planner",
    "scikit-learn": "the digits graph",
    "networkx": "the karate graph and random graphs",
    "msgspec": "files and tasks",
    "grpcio": "P4Runtime",
    "finsy": "P4Runtime stubs",
    "scapy": "switchgnn run --hosts scapy, packet layers",
}
# What each is for, and the extra that has it.
_OPTIONAL = {
    "torch": ("switchgnn train", "training"),
    "torch_geometric": ("switchgnn train", "training"),
    "ogb": ("switchgnn train --data ogbn-products", "ogb"),
    "tensorboard": ("switchgnn train --tensorboard", "tensorboard"),
    "matplotlib": ("--plots, and switchgnn figures", "plots"),
    "starlette": ("--live of run and train", "live"),
    "uvicorn": ("--live of run and train", "live"),
    "mtkahypar": ("--strategy best: fewer packets", "hypergraph"),
    "ptf": ("packet tests: python -m pytest tests/ptf", "test"),
}


def _program_finding(name: str, use: str, fix: str) -> Finding:
    return Finding(name, use, False, shutil.which(name), fix)


def _program() -> str | None:
    with suppress(SwitchGNNError):
        program = load_program()
        return f"{program.digest[:12]}, p4c {program.compiler}"
    return None


def _table(findings: list[Finding]) -> Table:
    table = Table()
    for name in ("", "what", "needed for", "found"):
        table.add_column(name, overflow="fold")
    for finding in findings:
        missing = Text("missing", "red") if finding.required else Text("absent", "yellow")
        mark = missing if finding.found is None else Text("ok", "green")
        table.add_row(mark, finding.name, finding.needed_for, finding.found or "")
    return table
