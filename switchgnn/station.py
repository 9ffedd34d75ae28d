# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The addresses of whatever sends and receives packets."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Station:
    """A worker or a switch, as it is called in packets.

    Attributes:
        mac: Ethernet address as text, such as ``02:00:00:00:00:01``.
        ip: IPv4 address as text, in dotted form.
    """

    mac: str
    ip: str
