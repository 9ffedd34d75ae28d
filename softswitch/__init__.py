# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A software switch that executes p4c's BMv2 JSON and serves P4Runtime."""

from .errors import (
    GrpcAddressError,
    MalformedProgramError,
    PortError,
    SoftSwitchError,
    UnsupportedProgramError,
)
from .p4runtime.server import TlsFiles
from .ports import EthernetSpec, UdpSpec
from .switch import SoftSwitch
from .traffic_manager import QueueSettings

__all__ = [
    "EthernetSpec",
    "GrpcAddressError",
    "MalformedProgramError",
    "PortError",
    "QueueSettings",
    "SoftSwitch",
    "SoftSwitchError",
    "TlsFiles",
    "UdpSpec",
    "UnsupportedProgramError",
]
