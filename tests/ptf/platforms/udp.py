"""PTF platform: a port is a UDP socket and a datagram is a frame; needs no root.

An interface is written LOCAL_IP:LOCAL_PORT:PEER_IP:PEER_PORT, as in
``-i 1@127.0.0.1:21001:127.0.0.1:22001``.
"""

import socket
import time
from typing import Any

from ptf.dataplane import DataPlanePacketSourceIface, DataPlanePortIface

_FRAME_BYTES = 65_535
_BUFFER_BYTES = 4 << 20


class UdpPort(DataPlanePortIface, DataPlanePacketSourceIface):
    """One port of the dataplane."""

    def __init__(
        self, interface_name: str, device_number: int, port_number: int, config: Any = None
    ):
        local_ip, local_port, peer_ip, peer_port = interface_name.split(":")
        self._place = (device_number, port_number)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        self._socket.bind((local_ip, int(local_port)))
        self._socket.connect((peer_ip, int(peer_port)))

    def __del__(self):
        self._socket.close()

    def fileno(self) -> int:
        return self._socket.fileno()

    def recv(self) -> tuple[int, int, bytes, float]:
        return (*self._place, self._socket.recv(_FRAME_BYTES), time.time())

    def get_packet_source(self) -> "UdpPort":
        return self

    def send(self, packet: bytes) -> int:
        return self._socket.send(packet)

    def down(self) -> None:
        """There is no link to take down."""

    def up(self) -> None:
        """There is no link to bring up."""

    def mac(self) -> str:
        """There is no Ethernet address behind a socket."""
        return "00:00:00:00:00:00"


def platform_config_update(config: dict[str, Any]) -> None:
    """Tell PTF which ports there are and how to open them."""
    config["port_map"] = {(device, port): link for device, port, link in config["interfaces"]}
    config["dataplane"] = {"portclass": UdpPort}
