# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Attaches the ports of a switch."""

from collections.abc import Callable, Iterable

from switchgnn.softswitch.errors import PortError
from switchgnn.softswitch.ports.port import Port
from switchgnn.softswitch.ports.sockets import open_ethernet, open_udp
from switchgnn.softswitch.ports.specs import EthernetSpec, PortSpec, UdpSpec, XdpSpec

XdpOpener = Callable[[int, XdpSpec], Port]


def open_ports(
    specs: Iterable[tuple[int, PortSpec]], open_xdp: XdpOpener | None = None
) -> dict[int, Port]:
    """Attach every port, or none if one fails.

    Args:
        specs: the number of each port, and what it is attached to.
        open_xdp: attaches those with AF_XDP sockets; None: there may be none.

    Returns:
        The ports by number.

    Raises:
        PortError: a port is given twice or cannot be attached.
    """
    ports: dict[int, Port] = {}
    try:
        for number, spec in specs:
            if number in ports:
                raise PortError(f"Port {number} is given twice: use each number once.")
            ports[number] = _open(number, spec, open_xdp)
    except PortError:
        for port in ports.values():
            port.close()
        raise
    return ports


def _open(number: int, spec: PortSpec, open_xdp: XdpOpener | None) -> Port:
    if isinstance(spec, EthernetSpec):
        return open_ethernet(number, spec)
    if isinstance(spec, UdpSpec):
        return open_udp(spec)
    if open_xdp is None:
        raise PortError(f"Port {number} cannot be 'xdp:{spec.interface}' here: take 'eth:'.")
    return open_xdp(number, spec)
