# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What stands in the way of a network, seen from this machine: a worker's, or a switch's."""

import shutil
import socket
import subprocess
from collections.abc import Iterator

from switchgnn.base.described import (
    DescribedNetwork,
    DescribedSwitch,
    DescribedWorker,
    Interface,
    interfaces,
)
from switchgnn.base.errors import SwitchGNNError
from switchgnn.commands.doctor.finding import Finding
from switchgnn.controller.controls.passage import Session
from switchgnn.controller.errors import ControllerError
from switchgnn.controller.p4runtime.client import program_cookie
from switchgnn.controller.p4runtime.messages import read_default
from switchgnn.controller.target import client_of
from switchgnn.host.wire.header import FEATURE_FRAME_BYTES
from switchgnn.p4src import load_program

_SECONDS = 3.0
_ETHERNET_BYTES = 14
# A software switch passes packets on as they come: a checksum that the sender left to its card is
# wrong at the other end, and frames that were put together are longer than the link takes.
_OFFLOADS = {
    "tx-checksumming": "tx",
    "tcp-segmentation-offload": "tso",
    "generic-segmentation-offload": "gso",
    "generic-receive-offload": "gro",
}


def examine_network(network: DescribedNetwork) -> list[Finding]:
    """Look at the switches, and at what of this machine belongs to the network.

    A worker belongs to this machine if the interface of its name has its MAC.
    """
    here = {interface.name: interface for interface in interfaces()}
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
        if kind in ("eth", "xdp") and name in here:
            found += _interface(f"port {name}", here[name])
    if own or any(name in here for _, _, name in taken):
        found.append(_packets())
    return found


def _switch(switch: DescribedSwitch) -> Finding:
    """Ask a switch what it serves; nothing is changed."""
    name, use = f"switch {switch.name}", f"P4Runtime at {switch.grpc}"
    start = f"start it: switchgnn switch, or simple_switch_grpc, with P4Runtime at {switch.grpc}"
    try:
        with client_of(switch, primary=False, deadline=_SECONDS) as client:
            cookie = client.get_pipeline_cookie()
            if cookie is None:
                return Finding(name, use, True, "no program yet; installing brings it", "")
            if cookie != program_cookie(load_program()):
                return Finding(name, use, True, "another program; installing replaces it", "")
            session = Session(client.get_layout())
            entry = session.decode(read_default(client, session.table))
    except ControllerError as error:
        return Finding(name, f"{use} ({error})", True, None, start)
    except SwitchGNNError as error:
        return Finding(name, use, True, None, str(error))
    if not entry.plan:
        return Finding(name, use, True, "our program, no plan", "")
    plan = f"plan {entry.plan:08x} for {entry.workers} workers, session {entry.session}"
    return Finding(name, use, True, plan, "")


def _worker(
    number: int, worker: DescribedWorker, interface: Interface, here: dict[str, Interface]
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
    if worker.metrics_place is not None:
        host, _ = worker.metrics_place
        yield Finding(
            f"worker {number}: {worker.metrics}",
            "metrics",
            False,
            "there" if _is_here(host) else None,
            f"switchgnn network worker {number} --interface {interface.name} --metrics PORT",
        )


def _is_here(host: str) -> bool:
    """Tell whether this machine has an address."""
    try:
        socket.create_server((host, 0)).close()
    except OSError:
        return False
    return True


def _interface(name: str, interface: Interface) -> Iterator[Finding]:
    up = f"MTU {interface.mtu}" if interface.up else None
    yield Finding(name, "packets", True, up, f"ip link set {interface.name} up")
    least = FEATURE_FRAME_BYTES - _ETHERNET_BYTES
    if interface.mtu < least:
        mend = f"ip link set {interface.name} mtu {least}"
        yield Finding(f"{name}, MTU", f"packets of {least} bytes", True, None, mend)
    on = _offloads_on(interface.name)
    if on is None:
        yield Finding(f"{name}, offloads", "TCP", False, None, "apt-get install ethtool")
        return
    mend = f"ethtool -K {interface.name} {' '.join(f'{word} off' for word in on)}"
    yield Finding(f"{name}, offloads", "TCP beside it", False, None if on else "off", mend)


def _offloads_on(name: str) -> list[str] | None:
    """Return the offloads that are on, as `ethtool -K` calls them; None: it cannot be asked."""
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
