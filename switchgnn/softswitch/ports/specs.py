# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a port is attached to, and how the command line says it."""

from dataclasses import dataclass

from switchgnn.softswitch.errors import PortError
from switchgnn.softswitch.program import DROP_PORT

_MOST_UDP = 65535


@dataclass(frozen=True)
class EthernetSpec:
    """A port that is attached to a network interface, by its name."""

    interface: str


@dataclass(frozen=True)
class XdpSpec:
    """As EthernetSpec, through an AF_XDP socket in place of a packet socket."""

    interface: str


@dataclass(frozen=True)
class UdpSpec:
    """A port that is attached to a UDP socket: one Ethernet frame per datagram, both ways."""

    local: tuple[str, int]
    peer: tuple[str, int]


PortSpec = EthernetSpec | XdpSpec | UdpSpec


def parse_port(text: str) -> tuple[int, PortSpec]:
    """Read a port number and its attachment.

    They are written ``1=eth:NAME``, ``1=xdp:NAME`` or ``1=udp:IP:PORT:IP:PORT``.

    Raises:
        PortError: the text has another form.
    """
    number, _, target = text.partition("=")
    kind, *parts = target.split(":")
    try:
        port = _port_number(int(number), text)
        if kind in {"eth", "xdp"} and len(parts) == 1 and parts[0]:
            return port, EthernetSpec(parts[0]) if kind == "eth" else XdpSpec(parts[0])
        if kind == "udp" and len(parts) == 4:
            local, peer = int(parts[1]), int(parts[3])
            if not (0 <= local <= _MOST_UDP and 0 <= peer <= _MOST_UDP):
                raise PortError(f"Port '{text}' needs UDP ports from 0 to {_MOST_UDP}.")
            return port, UdpSpec((parts[0], local), (parts[2], peer))
    except ValueError:
        pass
    raise PortError(
        f"Port '{text}' is not understood: write NUMBER=eth:INTERFACE, NUMBER=xdp:INTERFACE or "
        "NUMBER=udp:LOCAL_IP:PORT:PEER_IP:PORT."
    )


def _port_number(number: int, text: str) -> int:
    if not 0 <= number < DROP_PORT:
        raise PortError(f"Port '{text}' needs a number from 0 to {DROP_PORT - 1}.")
    return number
