"""A software switch that executes p4c's BMv2 JSON and serves P4Runtime."""

from switchgnn.softswitch.base.errors import (
    GrpcAddressError,
    MalformedProgramError,
    PortError,
    SoftSwitchError,
    UnsupportedProgramError,
)
from switchgnn.softswitch.base.ports import EthernetSpec, QueueSettings, UdpSpec
from switchgnn.softswitch.native.build import Backend
from switchgnn.softswitch.p4runtime.server import ServerTls
from switchgnn.softswitch.switch import SoftSwitch

__all__ = [
    "Backend",
    "EthernetSpec",
    "GrpcAddressError",
    "MalformedProgramError",
    "PortError",
    "QueueSettings",
    "ServerTls",
    "SoftSwitch",
    "SoftSwitchError",
    "UdpSpec",
    "UnsupportedProgramError",
]
