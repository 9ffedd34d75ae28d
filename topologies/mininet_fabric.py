# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A site in Mininet: each worker in a network namespace of its own."""

import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from switchgnn.topologies.child import Child
from switchgnn.topologies.errors import FabricError
from switchgnn.topologies.fabric import Fabric, WireBytes
from switchgnn.topologies.faulty_cables import FaultyCables, RelayedCable
from switchgnn.topologies.nursery import Nursery
from switchgnn.topologies.send_buffer import small_send_buffers
from switchgnn.topologies.site import Site
from switchgnn.topologies.targets import Target, require_free, switch_child, wait_until_serving

_MNEXEC = "mnexec"
_OFFLOADS = ("tx", "rx", "tso", "gso", "gro")
# How long an interrupted command may take to end.
_COMMAND_SECONDS = 3.0


def mininet_missing() -> str | None:
    """Return why Mininet cannot be used here, or None when it can."""
    if os.geteuid() != 0:
        return "Mininet needs root"
    if shutil.which(_MNEXEC) is None:
        return "Mininet is not installed (apt-get install mininet)"
    try:
        import mininet.net  # noqa: F401, PLC0415
    except ImportError:
        return "Mininet's Python package is not installed (pip install 'switchgnn[mininet]')"
    return None


class MininetFabric(Fabric):
    """Hosts and links by Mininet; the switches are processes in the root namespace.

    Args:
        site, folder, cable_faults, nursery: as ``Fabric`` takes them.

    Raises:
        FabricError: Mininet cannot be used here.
    """

    def __init__(
        self, site: Site, folder: Path, cable_faults: str = "", nursery: Nursery | None = None
    ) -> None:
        reason = mininet_missing()
        if reason is not None:
            raise FabricError(f"{reason}; or take FABRIC=loopback.")
        super().__init__(site, folder, cable_faults, nursery)
        self._net: Any = None
        self._hosts: list[Any] = []
        self._switch_side: list[str] = []
        self._cable_ends: list[tuple[str, str]] = []
        self._switches: list[Child] = []

    def start(self) -> None:
        """Build the network, start the switches, and wait until they serve P4Runtime."""
        if self._net is not None:
            return
        site = self.site
        for switch in site.switches:
            require_free(switch.grpc_address)
        self._build()
        if self.relay is not None:
            self.relay.start()
        shaped_bmv2 = site.bandwidth is not None and site.target is Target.BMV2
        with small_send_buffers() if shaped_bmv2 else nullcontext():
            for switch, ports in zip(site.switches, self._ports(), strict=True):
                child = switch_child(
                    site.target,
                    ports=ports,
                    grpc_address=switch.grpc_address,
                    device_id=0,
                    log=self.folder / f"{switch.name}.log",
                    tls=site.tls,
                    nursery=self._nursery,
                )
                self._switches.append(child)
                child.start()
            for switch, child in zip(site.switches, self._switches, strict=True):
                wait_until_serving(child, switch.grpc_address)

    def stop(self) -> None:
        """End the switches and take the network down."""
        self._stop_relay()
        switches, self._switches = self._switches, []
        for switch in switches:
            switch.stop()
        net, self._net = self._net, None
        if net is not None:
            for node in net.hosts:
                _end_command(node)
            net.stop()

    def worker_link(self, worker: int) -> str:
        """Return the worker's interface in its namespace."""
        return f"eth:{self._hosts[worker].defaultIntf().name}"

    def worker_command(self, worker: int, command: Sequence[str]) -> list[str]:
        """Return the command, run in the worker's network namespace."""
        return [_MNEXEC, "-a", str(self._hosts[worker].pid), *command]

    def worker_namespace(self, worker: int) -> Path:
        """Return the network namespace of the worker's host."""
        return Path(f"/proc/{self._hosts[worker].pid}/ns/net")

    @property
    def workers_have_hosts(self) -> bool:
        """Whether each worker has a host of its own: here it has."""
        return True

    def wire_bytes(self) -> list[WireBytes] | None:
        """Return what the switch's ends of the links have received and sent."""
        return [
            WireBytes(_counted(name, "rx_bytes"), _counted(name, "tx_bytes"))
            for name in self._switch_side
        ]

    def cable_bytes(self) -> list[WireBytes] | None:
        """Return what the upper switches' ends of the cables have received and sent."""
        return [
            WireBytes(_counted(name, "rx_bytes"), _counted(name, "tx_bytes"))
            for _, name in self._cable_ends
        ]

    def _ports(self) -> list[dict[int, str]]:
        """Return the interface on each port of each switch."""
        site = self.site
        ports: list[dict[int, str]] = [{} for _ in site.switches]
        for worker, (switch, _) in enumerate(site.places):
            ports[switch][site.port(worker)] = f"eth:{self._switch_side[worker]}"
        for cable, names in zip(site.cables, self._cable_ends, strict=True):
            for socket, name in zip((cable.lower, cable.upper), names, strict=True):
                ports[socket.switch][socket.port] = f"eth:{name}"
        return ports

    def _build(self) -> None:
        from mininet.link import Link, TCLink  # noqa: PLC0415
        from mininet.log import setLogLevel  # noqa: PLC0415
        from mininet.net import Mininet  # noqa: PLC0415
        from mininet.node import Node  # noqa: PLC0415

        setLogLevel("warning")
        # Interface names are shared by the whole machine: the process id keeps runs apart.
        tag = f"{os.getpid() % 0x10000:x}"
        self._net = net = Mininet(controller=None, link=TCLink, build=False)
        # Without an address: Mininet would give it one of a worker's, and the root namespace
        # would answer for it.
        plug = net.addHost(f"s{tag}", cls=Node, inNamespace=False, ip=None)
        site = self.site
        shape = {} if site.bandwidth is None else {"bw": site.bandwidth}
        stations = [site.station(worker) for worker in range(site.workers)]
        for worker, station in enumerate(stations):
            host = net.addHost(f"w{tag}x{worker}", ip=f"{station.ip}/16", mac=station.mac)
            link = net.addLink(
                host,
                plug,
                intfName2=f"s{tag}-eth{worker + 1}",
                cls=TCLink if shape else Link,
                **shape,
            )
            self._hosts.append(host)
            self._switch_side.append(link.intf2.name)
            _quiet(link.intf1.name, host.pid)
            _quiet(link.intf2.name, None)
        if self._cable_faults:
            self._add_relayed_cables(plug, tag)
        elif site.cables:
            self._add_cables(plug, tag)
        net.build()
        for worker, (host, station) in enumerate(zip(self._hosts, stations, strict=True)):
            host.setMAC(station.mac)
            host.setIP(station.ip, 16)
            host.defaultIntf().ifconfig("up")
            # The switch has no IP of its own to talk to: without this a packet that comes after
            # a worker has left makes the kernel ask for its address, on a wire whose bytes count.
            switch = f"{site.network_of(worker).switch.ip}/32"
            _run(["ip", "route", "add", "blackhole", switch], host.pid)
            # Ordinary TCP between the workers heeds the switch's marks, too.
            _run(["sysctl", "-q", "-w", "net.ipv4.tcp_ecn=1"], host.pid)
        for name in (*self._switch_side, *sum(self._cable_ends, ())):
            # The machine may have one of the workers' addresses itself, and must not answer.
            _run(["ip", "link", "set", name, "arp", "off", "up"], None)

    def _add_cables(self, plug: Any, tag: str) -> None:  # noqa: ANN401 - Mininet has no types
        from mininet.node import Node  # noqa: PLC0415

        # Mininet cannot take down a link of a node with itself.
        upper_plug = self._net.addHost(f"u{tag}", cls=Node, inNamespace=False, ip=None)
        for number in range(len(self.site.cables)):
            lower, upper = f"s{tag}-dn{number}", f"s{tag}-up{number}"
            self._add_link((plug, lower), (upper_plug, upper), shape_both=True)
            self._cable_ends.append((lower, upper))

    def _add_relayed_cables(self, plug: Any, tag: str) -> None:  # noqa: ANN401
        """Add for each cable two links to a host between the switches, where a relay is."""
        from mininet.node import Node  # noqa: PLC0415

        host = self._net.addHost(f"r{tag}", cls=Node, ip=None)
        relayed = []
        for number, cable in enumerate(self.site.cables):
            ends = f"s{tag}-dn{number}", f"s{tag}-up{number}"
            inner = f"r{tag}-dn{number}", f"r{tag}-up{number}"
            for end, its_other in zip(ends, inner, strict=True):
                # What a switch sends has been shaped when it comes to the relay.
                self._add_link((plug, end), (host, its_other), shape_both=False)
            self._cable_ends.append(ends)
            relayed.append(RelayedCable(cable.name, *(f"eth:{name}" for name in inner)))
        enter = [_MNEXEC, "-a", str(host.pid)]
        self.relay = FaultyCables(
            relayed, self._cable_faults, self.folder, place=lambda command: [*enter, *command]
        )

    def _add_link(self, one: tuple[Any, str], other: tuple[Any, str], *, shape_both: bool) -> None:
        """Connect two nodes, each with the name of its interface."""
        from mininet.link import Link, TCLink  # noqa: PLC0415

        bandwidth = self.site.bandwidth
        shape = {} if bandwidth is None else {"bw": bandwidth}
        self._net.addLink(
            one[0],
            other[0],
            intfName1=one[1],
            intfName2=other[1],
            cls=TCLink if shape else Link,
            params1=shape,
            params2=shape if shape_both else {},
        )
        for node, name in (one, other):
            _quiet(name, node.pid if node.inNamespace else None)


def _quiet(interface: str, namespace_pid: int | None) -> None:
    # Checksums must be whole when a program reads the frames, and the kernel must
    # not speak IPv6 on wires whose bytes are counted. With segmentation or receive
    # offloads the ring through which BMv2 reads a port would hold 30 frames, each with
    # room for 64 kB, instead of a thousand, and BMv2 would lose the others: see
    # iface_get_offload in https://github.com/the-tcpdump-group/libpcap, pcap-linux.c.
    disable = f"net.ipv6.conf.{interface}.disable_ipv6=1"
    _run(["sysctl", "-q", "-w", disable], namespace_pid)
    off = [word for name in _OFFLOADS for word in (name, "off")]
    _run(["ethtool", "-K", interface, *off], namespace_pid)


def _run(command: list[str], namespace_pid: int | None) -> None:
    prefix = [] if namespace_pid is None else [_MNEXEC, "-a", str(namespace_pid)]
    try:
        subprocess.run([*prefix, *command], check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise FabricError(
            f"{command[0]} is not installed (apt-get install iproute2 ethtool procps)."
        ) from error
    except subprocess.CalledProcessError as error:
        reason = (error.stderr or error.stdout).strip()
        raise FabricError(f"`{' '.join(command)}` failed: {reason}") from error


def _end_command(node: Any) -> None:  # noqa: ANN401 - Mininet has no types
    """Interrupt what a node still runs; Mininet would refuse to stop it.

    The terminal forgets what it holds when it is interrupted. A command that the shell had not
    yet read is then never run, and never ends either; and one may ignore the interrupt. So the
    wait has a deadline, after which what still runs is killed.
    """
    if not node.waiting:
        return
    node.sendInt()
    _wait_for_end(node)
    if node.waiting:
        for child in _children(node.shell.pid):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        _wait_for_end(node)
    node.waiting = False


def _wait_for_end(node: Any) -> None:  # noqa: ANN401
    deadline = time.monotonic() + _COMMAND_SECONDS
    while node.waiting and (left := deadline - time.monotonic()) > 0:
        # Not `monitor(timeoutms=...)`: it also polls for writing, which is always possible.
        if select.select([node.stdout], [], [], left)[0]:
            node.monitor()


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in tasks.read_text().split()] if tasks.exists() else []


def _counted(interface: str, counter: str) -> int:
    return int(Path(f"/sys/class/net/{interface}/statistics/{counter}").read_text())
