"""Network files: switches, workers, and the cables between switches, written by users."""

import fcntl
import ipaddress
import json
import re
import socket
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from itertools import chain
from pathlib import Path
from typing import Annotated, TypeVar

from msgspec import Meta

from switchgnn.base.network import (
    DEFAULT_JOB,
    Neighbour,
    Network,
    NetworkError,
    Station,
    bad_job_name,
    joined_networks,
    mac_number,
)
from switchgnn.base.records import RecordError, make_record, read_toml

MOST_WORKERS = 128
# Port numbers of the program have nine bits; the last one drops, and 0 is none.
_Port = Annotated[int, Meta(ge=1, le=510)]
_MOST_BYTES = 1 << 20


class Target(str, Enum):
    """The software of a switch; embedded switches are this project's own."""

    BMV2 = "bmv2"
    EMBEDDED = "embedded"
    TOFINO = "tofino"  # an embedded switch with the controls of the Tofino program

    @property
    def is_embedded(self) -> bool:
        """Whether it is an embedded switch, with either program."""
        return self is not Target.BMV2


@dataclass(frozen=True)
class TlsFiles:
    """Certificates (PEM) for a switch's P4Runtime."""

    root: Path  # the trusted authority
    # the controller's own, if the switch requires them
    certificate: Path | None = None
    key: Path | None = None


@dataclass(frozen=True)
class DescribedSwitch:
    """A switch."""

    name: str  # used by workers and cables
    grpc: str  # the address of its P4Runtime, `HOST:PORT` or `unix:PATH`
    target: Target
    # its own addresses, to which workers send
    mac: str
    ip: str
    device_id: int = 0  # of P4Runtime
    # its ports in the form of `switchgnn switch --port`; only the switch itself uses them
    ports: Mapping[str, str] = field(default_factory=dict)
    tls: TlsFiles | None = None  # certificates, if it serves TLS

    @property
    def station(self) -> Station:
        """Its addresses."""
        return Station(self.mac, self.ip)


@dataclass(frozen=True)
class DescribedWorker:
    """A worker; workers are numbered from 0 in the order of the file."""

    switch: str  # the name of its switch
    port: _Port  # of that switch
    mac: str
    ip: str
    interface: str = ""  # its interface to the switch, on its own machine
    link: str = ""  # instead of `interface`, such as `udp:HOST:PORT:SWITCH_HOST:SWITCH_PORT`
    namespace: str = ""  # of `link`, if it is not the one of commands, such as `/proc/PID/ns/net`
    gloo: str = ""  # the interface for gradients; PyTorch chooses one if it is empty
    metrics: str = ""  # `HOST:PORT` of its metrics, or empty
    # how many processes of its machine share the port, see `plan --parts`
    processes: Annotated[int, Meta(ge=1, le=MOST_WORKERS)] = 1

    @property
    def station(self) -> Station:
        """Its addresses."""
        return Station(self.mac, self.ip)

    @property
    def opens(self) -> str:
        """The link as the argument of a worker."""
        return self.link or f"eth:{self.interface}"

    @property
    def metrics_address(self) -> tuple[str, int] | None:
        """Host and port of its metrics, or None."""
        host, _, port = self.metrics.rpartition(":")
        return (host.strip("[]"), int(port)) if self.metrics else None


@dataclass(frozen=True)
class Cable:
    """A link between ports of a leaf and a spine."""

    leaf: str
    leaf_port: _Port
    spine: str
    spine_port: _Port


@dataclass(frozen=True)
class DescribedNetwork:
    """A network."""

    switches: tuple[DescribedSwitch, ...]  # leaves and spines in any order, or the only switch
    workers: tuple[DescribedWorker, ...]
    cables: tuple[Cable, ...] = ()  # empty in a star
    job: str = DEFAULT_JOB  # the name of the workers' job on the switches

    @property
    def leaves(self) -> tuple[DescribedSwitch, ...]:
        """The switches with workers, in the order of the workers."""
        names = dict.fromkeys(worker.switch for worker in self.workers)
        by_name = {switch.name: switch for switch in self.switches}
        return tuple(by_name[name] for name in names)

    @property
    def spines(self) -> tuple[DescribedSwitch, ...]:
        """The switches without workers."""
        taken = {worker.switch for worker in self.workers}
        return tuple(switch for switch in self.switches if switch.name not in taken)

    @property
    def in_order(self) -> tuple[DescribedSwitch, ...]:
        """All switches, leaves first."""
        return (*self.leaves, *self.spines)

    @property
    def leaf_of_worker(self) -> tuple[int, ...]:
        """The index of each worker's switch among the leaves."""
        index = {switch.name: number for number, switch in enumerate(self.leaves)}
        return tuple(index[worker.switch] for worker in self.workers)


_Value = TypeVar("_Value")
# Environment variable: the file that `switchgnn launch` has written for its workers.
NETWORK = "SWITCHGNN_NETWORK"
_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,64}\]")
_TCP_PORT = re.compile(r"[0-9]{1,5}")
_LAST_PORT = 65_535
_LINK = r"(?:eth:[^\s/:]{1,15}|udp:([^:\s]+:\d+):([^:\s]+:\d+))"
# The patterns of fields, with groups for addresses, and their forms in words.
_FORMS = {
    "interface": (r"[^\s/:]{0,15}", "the name of an interface"),
    "link": (rf"|{_LINK}(?::\d*\.?\d+)?", "eth:INTERFACE or udp:HOST:PORT:SWITCH_HOST:SWITCH_PORT"),
    "namespace": (r"|/proc/\d+/ns/net", "the /proc/PID/ns/net of a process"),
    "gloo": (r"[^\s/:]{0,15}", "the name of an interface"),
    "metrics": ("|(.+)", "HOST:PORT"),
    "mac": (r"[0-9A-Fa-f][02468ACEace](?::[0-9A-Fa-f]{2}){5}", "the Ethernet address of a station"),
    "grpc": ("unix:.+|(.+)", "HOST:PORT or unix:PATH"),
    "ports": (rf"(?:[1-9]\d*={_LINK} ?)*", "NUMBER=eth:INTERFACE or NUMBER=udp:IP:PORT:IP:PORT"),
}


def is_address(text: str) -> bool:
    """Return whether a text is HOST:PORT."""
    host, _, port = text.rpartition(":")
    named = _HOST.fullmatch(host) and _TCP_PORT.fullmatch(port)
    return bool(named) and 0 < int(port) <= _LAST_PORT


def _of_names(network: DescribedNetwork) -> Iterator[str]:
    if problem := bad_job_name(network.job):
        yield problem
    if not network.switches:
        yield "it has no switch; write a [[switches]]"
    if not 1 <= len(network.workers) <= MOST_WORKERS:
        yield f"it has {len(network.workers)} workers, not 1 to {MOST_WORKERS}"
    names = [switch.name for switch in network.switches]
    if "" in names:
        yield "a switch has no name"
    for twice in _twice(names):
        yield f"two switches are named {twice}"
    for number, worker in enumerate(network.workers):
        if worker.switch not in names:
            yield f"worker {number} is attached to {worker.switch!r}, which is not its switch"


def _of_addresses(network: DescribedNetwork) -> Iterator[str]:
    told = [(f"switch {switch.name}", vars(switch)) for switch in network.switches]
    told += [(f"worker {number}", vars(each)) for number, each in enumerate(network.workers)]
    for who, given in told:
        for name in [name for name in _FORMS if name in given]:
            value, (pattern, form) = given[name], _FORMS[name]
            if name == "ports":
                value = " ".join(map("=".join, value.items()))
            found = re.fullmatch(pattern, value)
            if found is None or not all(map(is_address, filter(None, found.groups()))):
                yield f"{who} has the {name} {value!r}, which is not {form}"
    named = [(who, Station(given["mac"], given["ip"])) for who, given in told]
    for who, station in named:
        if not _is_ip(station.ip):
            yield f"the IP of {who}, {station.ip!r}, is not the IPv4 address of a station"
    for twice in _twice(mac_number(station.mac) for _, station in named):
        both = [who for who, station in named if mac_number(station.mac) == twice]
        yield f"{' and '.join(both)} have the same MAC"
    for same in _twice(station.ip for _, station in named):
        both = [who for who, station in named if station.ip == same]
        yield f"{' and '.join(both)} have the same IP, {same}"


def _of_links(network: DescribedNetwork) -> Iterator[str]:
    for number, worker in enumerate(network.workers):
        if bool(worker.interface) == bool(worker.link):
            yield f"worker {number} needs either an interface or a link"
    for same in _twice(each.metrics for each in network.workers if each.metrics):
        yield f"two workers serve metrics on {same}"
    taken = [(worker.switch, worker.port) for worker in network.workers]
    taken += [(cable.leaf, cable.leaf_port) for cable in network.cables]
    taken += [(cable.spine, cable.spine_port) for cable in network.cables]
    for switch, port in _twice(taken):
        yield f"port {port} of switch {switch} leads to two neighbours"


def _of_tiers(network: DescribedNetwork) -> Iterator[str]:
    if not network.cables:
        if len(network.switches) > 1:
            yield (
                f"it has {len(network.switches)} switches and no cable; leaves and spines need a "
                "[[cables]] for each pair"
            )
        return
    leaves = [switch.name for switch in network.leaves]
    spines = [switch.name for switch in network.spines]
    ends = Counter((cable.leaf, cable.spine) for cable in network.cables)
    for leaf, spine in ends:
        if leaf not in leaves:
            yield f"a cable has the leaf {leaf!r}, which is not a switch with workers"
        if spine not in spines:
            yield f"a cable has the spine {spine!r}, which is not a switch without workers"
    if not spines:
        yield "it has cables, but no spine: a spine is a switch without workers"
    for leaf in leaves:
        for spine in spines:
            if ends[leaf, spine] != 1:
                yield f"{ends[leaf, spine]} cables join leaf {leaf} and spine {spine}, not one"
    if list(network.leaf_of_worker) != sorted(network.leaf_of_worker):
        yield "the workers of a leaf are not consecutive"


def _is_ip(text: str) -> bool:
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return not (address.is_multicast or address.is_unspecified or address.is_reserved)


def _twice(values: Iterable[_Value]) -> Iterator[_Value]:
    return (value for value, times in Counter(values).items() if times > 1)


def read_network(path: Path) -> DescribedNetwork:
    """Read and check a network file, whose paths are relative to its folder; raise NetworkError."""
    told = read_toml(path, _MOST_BYTES, "network", NetworkError)
    try:
        network = make_record(DescribedNetwork, told)
    except RecordError as error:
        raise NetworkError(f"{path} is not a network file: {error}.") from error
    for number, worker in enumerate(told["workers"]):
        for name in [name for name in _FORMS if worker.get(name) == ""]:
            raise NetworkError(f"{path}: worker {number} has the {name} '', not {_FORMS[name][1]}.")
    checks = (_of_names, _of_addresses, _of_links, _of_tiers)
    for problem in chain.from_iterable(check(network) for check in checks):
        raise NetworkError(f"{path}: {problem}.")
    return replace(
        network,
        switches=tuple(_with_paths_from(switch, path.parent) for switch in network.switches),
    )


def network_text(network: DescribedNetwork) -> str:
    """Return a network as TOML, without default values."""
    job = [] if network.job == DEFAULT_JOB else [f"job = {_value(network.job)}\n"]
    blocks = [*job, *(_block("switches", switch) for switch in network.switches)]
    for number, worker in enumerate(network.workers):
        blocks.append(f"# worker {number}\n" + _block("workers", worker))
    return "\n".join([*blocks, *(_block("cables", cable) for cable in network.cables)])


def _with_paths_from(switch: DescribedSwitch, folder: Path) -> DescribedSwitch:
    if (tls := switch.tls) is None:
        return switch
    return replace(
        switch,
        tls=TlsFiles(
            folder / tls.root,
            tls.certificate and folder / tls.certificate,
            tls.key and folder / tls.key,
        ),
    )


def _block(kind: str, record: DescribedSwitch | DescribedWorker | Cable) -> str:
    usual = {each.name: each.default for each in fields(record)} | {"ports": {}}
    told = ((name, value) for name, value in vars(record).items() if value != usual[name])
    return "\n".join([f"[[{kind}]]", *(f"{name} = {_value(value)}" for name, value in told)]) + "\n"


def _value(value: object) -> str:
    if isinstance(value, TlsFiles):
        value = {name: str(path) for name, path in vars(value).items() if path}
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {_value(v)}" for k, v in value.items()) + " }"
    # JSON strings are TOML strings unless surrogates are escaped.
    return json.dumps(value, ensure_ascii=False)


# <net/if_arp.h>, <net/if.h> and <bits/ioctls.h>; /sys may belong to another namespace.
_ETHERNET, _UP, _LOOPBACK = 1, 0x1, 0x8
_GET_FLAGS, _GET_ADDRESS, _GET_MTU, _GET_MAC = 0x8913, 0x8915, 0x8921, 0x8927
_NAME_BYTES, _REQUEST_BYTES = 16, 40


@dataclass(frozen=True)
class Interface:
    """A network interface."""

    name: str
    mac: str
    ip: str  # its first IPv4 address, or empty
    mtu: int  # in bytes
    up: bool  # whether it is enabled


def interfaces() -> tuple[Interface, ...]:
    """Return the Ethernet interfaces of this machine except loopback, by name."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        names = sorted(name for _, name in socket.if_nameindex())
        found = [_read(sock.fileno(), name) for name in names]
    return tuple(interface for interface in found if interface is not None)


def interface_named(name: str) -> Interface:
    """Return an interface; NetworkError lists the existing ones."""
    known = {interface.name: interface for interface in interfaces()}
    if name in known:
        return known[name]
    names = ", ".join(known) or "none"
    raise NetworkError(f"This machine has no Ethernet interface {name!r}; it has: {names}.")


def mtu_of(name: str) -> int:
    """Return the MTU of an interface of any kind, in bytes; OSError: there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        return _mtu(sock.fileno(), name)


def _mtu(sock: int, name: str) -> int:
    (mtu,) = struct.unpack_from("i", _ask(sock, _GET_MTU, name))
    return int(mtu)


def _read(sock: int, name: str) -> Interface | None:
    try:
        (flags,) = struct.unpack_from("H", _ask(sock, _GET_FLAGS, name))
        kind, mac = struct.unpack_from("H6s", _ask(sock, _GET_MAC, name))
        mtu = _mtu(sock, name)
    except OSError:  # removed in the meantime
        return None
    if kind != _ETHERNET or flags & _LOOPBACK:
        return None
    try:
        ip = socket.inet_ntoa(_ask(sock, _GET_ADDRESS, name)[4:8])
    except OSError:
        ip = ""
    return Interface(name, mac.hex(":"), ip, mtu, bool(flags & _UP))


def _ask(sock: int, what: int, name: str) -> bytes:
    asked = name.encode().ljust(_NAME_BYTES, b"\0").ljust(_REQUEST_BYTES, b"\0")
    return fcntl.ioctl(sock, what, asked)[_NAME_BYTES:]


def networks_of(network: DescribedNetwork) -> tuple[Network, ...]:
    """Return the surroundings of each switch of a checked network, in its `in_order`."""
    leaves, spines = network.leaves, network.spines
    leaf, spine = ({each.name: n for n, each in enumerate(tier)} for tier in (leaves, spines))
    return joined_networks(
        [Neighbour(worker.port, worker.station) for worker in network.workers],
        network.leaf_of_worker,
        [switch.station for switch in leaves],
        [switch.station for switch in spines],
        {
            (leaf[cable.leaf], spine[cable.spine]): (cable.leaf_port, cable.spine_port)
            for cable in network.cables
        },
    ).switches
