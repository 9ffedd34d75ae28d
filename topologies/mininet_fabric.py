"""A topology in Mininet: each worker in a network namespace of its own."""

import fcntl
import functools
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from switchgnn.base.machine import how_to_install
from switchgnn.base.network_file import Target
from switchgnn.controller.p4runtime.connection import socket_path
from switchgnn.host.wire.addresses import DSCP_EARLY, DSCP_LATE
from switchgnn.topologies.errors import FabricError
from switchgnn.topologies.fabric import Fabric, RelayedCable, WireBytes
from switchgnn.topologies.rpc_address import (
    TcpDoor,
    folder_for_sockets,
    require_free,
    socket_address,
)
from switchgnn.topologies.targets import wait_until_serving
from switchgnn.topologies.topology import ETHERNET_MTU

_DEFAULT = Path("/proc/sys/net/core/wmem_default")
# About seven full Ethernet frames with the kernel's bookkeeping.
_SMALL_BYTES = 16384
_MNEXEC = "mnexec"
_OFFLOADS = ("tx", "rx", "tso", "gso", "gro")
_COMMAND_SECONDS = 60.0
_TRIAL_SECONDS = 10.0
_END_SECONDS = 5.0
# The classes on a shaped link: bytes with a DSCP in host/wire/addresses.py (None: others), least
# sixteenths of the rate, and what a class may save of them. The first one goes first.
_CLASSES = ((None, 14, "15k"), (DSCP_EARLY << 2, 1, "2k"), (DSCP_LATE << 2, 1, "2k"))
# What a fabric asks of the kernel: a namespace, links in it, and their settings.
_TRIAL = """
ip link add one type veth peer name other
ifconfig one up
ethtool -K one tx off
sysctl -q -w net.ipv6.conf.default.disable_ipv6=1
"""


@contextmanager
def small_send_buffers() -> Iterator[None]:
    """Give sockets that are opened inside small send buffers.

    The kernel has one default for the whole machine and no way to set it for another program, so it
    is lowered while the switch opens its ports. Concurrent runs take turns; otherwise the second
    would restore the first one's small default.
    """
    with settled_default() as before:
        _DEFAULT.write_text(str(_SMALL_BYTES))
        try:
            yield
        finally:
            _DEFAULT.write_text(before)


@contextmanager
def settled_default() -> Iterator[str]:
    """Lock the default against changes by other runs; yield it."""
    with _DEFAULT.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file.read()


def mininet_missing() -> str | None:
    """Return why Mininet cannot be used here, or None."""
    if os.geteuid() != 0:
        return "Mininet needs root"
    if shutil.which(_MNEXEC) is None:
        return "Mininet is not installed (apt-get install mininet ethtool)"
    try:
        import mininet.net  # noqa: F401, PLC0415
    except ImportError:
        return f"Mininet's Python package is not installed ({how_to_install('mininet')})"
    reason = _trial_failure()
    return reason and (
        f"Mininet cannot build a network here ({reason}), which takes CAP_SYS_ADMIN, "
        "CAP_NET_ADMIN, CAP_NET_RAW and `apt-get install mininet ethtool`"
    )


@functools.cache
def _trial_failure() -> str | None:
    """Build a link in a temporary network namespace; return why that failed, or None."""
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    except PermissionError as error:
        return f"packet sockets: {error.strerror}"
    try:
        subprocess.run(
            [_MNEXEC, "-n", "sh", "-ec", _TRIAL],
            check=True,
            capture_output=True,
            text=True,
            timeout=_TRIAL_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"a trial did not end within {_TRIAL_SECONDS:g} s"
    except subprocess.CalledProcessError as error:
        lines = error.stderr.split("\n")
        return next((line.strip() for line in lines if line.strip()), f"code {error.returncode}")
    return None


class MininetFabric(Fabric):
    """Hosts and links by Mininet; the switches are processes in network namespaces of their own.

    Their servers are reachable only from there: BMv2's Thrift server, which has no password,
    listens on all interfaces (https://github.com/p4lang/behavioral-model,
    src/bm_runtime/server.cpp), and a worker's frame cannot be addressed to this machine. P4Runtime
    uses Unix sockets.
    """

    _net: Any = None
    _room: Any = None
    _upper_room: Any = None

    def start(self) -> None:
        """See ``Fabric``."""
        if self._net is not None:
            return
        topology = self.topology
        for switch in topology.switches:
            require_free(switch.grpc_address)
        self._build()
        if self.relay is not None:
            self.relay.start()
        shaped_bmv2 = topology.bandwidth is not None and topology.target is Target.BMV2
        with small_send_buffers() if shaped_bmv2 else nullcontext():
            addresses = self._socket_addresses()
            for number, (switch, ports, address) in enumerate(
                zip(topology.switches, self._ports(), addresses, strict=True)
            ):
                self._start_switch(
                    switch,
                    ports,
                    address,
                    namespace=self.switch_namespace(number),
                    bandwidth=topology.bandwidth if topology.switch_paces else None,
                )
            for child, address in zip(self._switches, addresses, strict=True):
                wait_until_serving(child, address)
        for switch, address in zip(topology.switches, addresses, strict=True):
            path = socket_path(address)
            if path is not None and address != switch.grpc_address:
                self._doors.enter_context(TcpDoor(switch.grpc_address, path))

    def _socket_addresses(self) -> list[str]:
        """Return the P4Runtime addresses of the switches; TCP ports would be unreachable."""
        given = [switch.grpc_address for switch in self.topology.switches]
        if all(map(socket_path, given)):
            return given
        folder = self._doors.enter_context(folder_for_sockets(self.folder))
        return [
            address if socket_path(address) else socket_address(folder, switch.name)
            for address, switch in zip(given, self.topology.switches, strict=True)
        ]

    def stop(self) -> None:
        """See ``Fabric``."""
        super().stop()
        net, self._net = self._net, None
        # Not `net.stop()`, which runs a command for each link: the links end with the namespaces.
        for host in [] if net is None else net.hosts:
            _end(host)

    def worker_link(self, worker: int) -> str:
        """Return the worker's interface in its namespace, and the bandwidth if it is limited."""
        link = f"eth:{self._hosts[worker].defaultIntf().name}"
        return link if self.topology.bandwidth is None else f"{link}:{self.topology.bandwidth:g}"

    def worker_namespace(self, worker: int) -> Path:
        """Return the network namespace of the worker's host."""
        return _namespace(self._hosts[worker])

    def switch_namespace(self, switch: int) -> Path:
        """Return the network namespace of a switch: leaves share one, spines another."""
        upper = any(cable.upper.switch == switch for cable in self.topology.cables)
        return _namespace(self._upper_room if upper else self._room)

    @property
    def workers_have_hosts(self) -> bool:
        """See ``Fabric``: they have."""
        return True

    def wire_bytes(self) -> list[WireBytes] | None:
        """Return the counters of the switch's ends of the links."""
        counted = counted_in(_namespace(self._room))
        return [counted[name] for name in self._switch_side]

    def cable_bytes(self) -> list[WireBytes] | None:
        """Return the counters of the upper switches' ends of the cables."""
        if not self._cable_ends:
            return []
        counted = counted_in(_namespace(self._upper_room))
        return [counted[name] for _, name in self._cable_ends]

    def _ports(self) -> list[dict[int, str]]:
        """Return the interface on each port of each switch."""
        topology = self.topology
        ports: list[dict[int, str]] = [{} for _ in topology.switches]
        for worker, (switch, _) in enumerate(topology.positions):
            ports[switch][topology.port(worker)] = f"eth:{self._switch_side[worker]}"
        for cable, names in zip(topology.cables, self._cable_ends, strict=True):
            for end, name in zip((cable.lower, cable.upper), names, strict=True):
                ports[end.switch][end.port] = f"eth:{name}"
        return ports

    def _build(self) -> None:
        from mininet.log import setLogLevel  # noqa: PLC0415
        from mininet.net import Mininet  # noqa: PLC0415

        setLogLevel("warning")
        self._hosts: list[Any] = []
        self._switch_side: list[str] = []
        self._cable_ends: list[tuple[str, str]] = []
        # Names of processes and interfaces show to which run they belong.
        tag = f"{os.getpid() % 0x10000:x}"
        self._net = net = Mininet(controller=None, build=False)
        # Without an address: Mininet would give it one of a worker's, and it would answer for it.
        self._room = _without_ipv6(net.addHost(f"s{tag}", ip=None))
        topology = self.topology
        stations = [topology.station(worker) for worker in range(topology.workers)]
        for worker, station in enumerate(stations):
            name = f"w{tag}x{worker}"
            host = _without_ipv6(net.addHost(name, ip=f"{station.ip}/16", mac=station.mac))
            link = net.addLink(host, self._room, intfName2=f"s{tag}-eth{worker + 1}")
            self._hosts.append(host)
            self._switch_side.append(link.intf2.name)
            self._prepare(link.intf1.name, host.pid)
            self._prepare(link.intf2.name, self._room.pid, of_switch=True)
        if topology.cables:
            self._upper_room = _without_ipv6(net.addHost(f"u{tag}", ip=None))
            self._add_cables(tag)
        net.build()
        for worker, (host, station) in enumerate(zip(self._hosts, stations, strict=True)):
            host.setMAC(station.mac)
            host.setIP(station.ip, 16)
            host.defaultIntf().ifconfig("up")
            # The switch has no IP of its own to talk to: without this a packet that comes after
            # a worker has left makes the kernel ask for its address, on a wire whose bytes count.
            switch = f"{topology.network_of(worker).switch.ip}/32"
            _run(["ip", "route", "add", "blackhole", switch], host.pid)
            # Ordinary TCP between the workers also reacts to the switch's marks.
            _run(["sysctl", "-q", "-w", "net.ipv4.tcp_ecn=1"], host.pid)
        lower = [*self._switch_side, *(name for name, _ in self._cable_ends)]
        for name in lower:
            _open_for_frames_only(name, self._room.pid)
        for _, name in self._cable_ends:
            _open_for_frames_only(name, self._upper_room.pid)

    def _add_cables(self, tag: str) -> None:
        """Add a link for each cable, or two links to a host between the switches, with a relay."""
        rooms, relayed = (self._room, self._upper_room), []
        host = _without_ipv6(self._net.addHost(f"r{tag}", ip=None)) if self._relays else None
        for number, cable in enumerate(self.topology.cables):
            ends = f"s{tag}-dn{number}", f"u{tag}-up{number}"
            self._cable_ends.append(ends)
            if host is None:
                self._add_link(*zip(rooms, ends, strict=True), both_switches=True)
                continue
            inner = f"r{tag}-dn{number}", f"r{tag}-up{number}"
            for room, end, its_other in zip(rooms, ends, inner, strict=True):
                self._add_link((room, end), (host, its_other), both_switches=False)
            relayed.append(RelayedCable(cable.name, *(f"eth:{name}" for name in inner)))
        if host is not None:
            self.relay = self._faulty(relayed, _namespace(host))

    def _add_link(
        self, switch: tuple[Any, str], other: tuple[Any, str], *, both_switches: bool
    ) -> None:
        """Connect a switch with another one or a relay, each with the name of its interface."""
        self._net.addLink(switch[0], other[0], intfName1=switch[1], intfName2=other[1])
        self._prepare(switch[1], switch[0].pid, of_switch=True)
        # What a switch sends has been shaped when it comes to the relay.
        self._prepare(other[1], other[0].pid, of_switch=both_switches, shape=both_switches)

    def _prepare(
        self, interface: str, namespace_pid: int, *, of_switch: bool = False, shape: bool = True
    ) -> None:
        """Set up one end of a link."""
        shape = shape and not (of_switch and self.topology.switch_paces)
        _quiet(interface, namespace_pid)
        if self.topology.mtu != ETHERNET_MTU:
            mtu = str(self.topology.mtu)
            _run(["ip", "link", "set", interface, "mtu", mtu], namespace_pid)
        if shape and self.topology.bandwidth is not None:
            # BMv2's ports have rings too short for a burst at once.
            at_once = "cburst 15k" if self.topology.switch_paces else ""
            _limit(interface, self.topology.bandwidth, namespace_pid, at_once)


def _namespace(node: Any) -> Path:  # noqa: ANN401 - Mininet has no types
    return Path(f"/proc/{node.pid}/ns/net")


def _end(host: Any) -> None:  # noqa: ANN401 - Mininet has no types
    """Kill the shell of a host and its processes; its namespace ends with them."""
    shell, host.shell = host.shell, None
    if shell is None:
        return
    with suppress(ProcessLookupError):
        os.killpg(shell.pid, signal.SIGKILL)
    # One that has just been started has no process group of its own yet.
    shell.kill()
    with suppress(subprocess.TimeoutExpired):
        shell.wait(_END_SECONDS)
    os.close(host.slave)
    if host.stdin is None:
        os.close(host.master)
    else:
        host.stdin.close()


def _without_ipv6(node: Any) -> Any:  # noqa: ANN401 - Mininet has no types
    # No IPv6 on wires whose bytes are counted. An interface that is already up would still finish
    # its reports on multicast groups.
    _run(["sysctl", "-q", "-w", "net.ipv6.conf.default.disable_ipv6=1"], node.pid)
    return node


def _quiet(interface: str, namespace_pid: int) -> None:
    # Checksums must be whole when a program reads the frames. With segmentation or receive
    # offloads the ring through which BMv2 reads a port would hold 30 frames, each with
    # room for 64 kB, instead of a thousand, and BMv2 would lose the others: see
    # iface_get_offload in https://github.com/the-tcpdump-group/libpcap, pcap-linux.c.
    off = [word for name in _OFFLOADS for word in (name, "off")]
    _run(["ethtool", "-K", interface, *off], namespace_pid)


def _open_for_frames_only(interface: str, namespace_pid: int) -> None:
    # The kernel must not answer: all frames are for the switch.
    _run(["ip", "link", "set", interface, "arp", "off", "up"], namespace_pid)


def _limit(interface: str, bandwidth: float, namespace_pid: int, at_once: str = "") -> None:
    """Limit what one end of a link sends, in Mbit/s.

    `at_once`: the part of a burst that may leave at once, for `tc`.
    """
    # The quantum only divides bandwidth between classes of one place in the order; without it the
    # kernel warns of the one that it derives from the rate.
    rest = f"{at_once} quantum 1514"
    commands = [
        "qdisc add dev {} root handle 5: htb default 2",
        f"class add dev {{}} parent 5: classid 5:1 htb rate {bandwidth:f}Mbit burst 15k {rest}",
    ]
    for number, (tos, sixteenths, burst) in enumerate(_CLASSES, 2):
        rate = f"rate {bandwidth * sixteenths / 16:f}Mbit ceil {bandwidth:f}Mbit burst {burst}"
        commands += [
            f"class add dev {{}} parent 5:1 classid 5:{number} htb prio {number} {rate} {rest}",
            # Of these, frames of a higher priority leave first: those without numbers.
            f"qdisc add dev {{}} parent 5:{number} handle {number + 4}: pfifo_fast",
        ]
        if tos is not None:
            match = f"protocol ip prio 1 u32 match ip tos {tos} 0xfc"
            commands.append(f"filter add dev {{}} parent 5: {match} flowid 5:{number}")
    for words in commands:
        _run(["tc", *words.format(interface).split()], namespace_pid)


def _run(command: list[str], namespace_pid: int) -> None:
    words = [_MNEXEC, "-a", str(namespace_pid), *command]
    try:
        subprocess.run(words, check=True, capture_output=True, text=True, timeout=_COMMAND_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise FabricError(
            f"`{' '.join(command)}` did not end within {_COMMAND_SECONDS:g} s: run again."
        ) from error
    except FileNotFoundError as error:
        raise FabricError(
            f"{command[0]} is not installed (apt-get install iproute2 ethtool procps)."
        ) from error
    except subprocess.CalledProcessError as error:
        reason = (error.stderr or error.stdout).strip()
        raise FabricError(f"`{' '.join(command)}` failed: {reason}") from error


def counted_in(namespace: Path) -> dict[str, WireBytes]:
    """Return what each interface in `/proc/PID/ns/net` has received and sent."""
    counted = {}
    for line in (namespace.parents[1] / "net/dev").read_text().splitlines():
        name, colon, numbers = line.partition(":")
        if colon:
            fields = numbers.split()
            counted[name.strip()] = WireBytes(int(fields[0]), int(fields[8]))
    return counted
