# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Where the workers are: ports and addresses around one switch."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Station:
    """A worker as the switch sees it.

    Attributes:
        port: switch port.
        mac: Ethernet address as text, such as ``02:00:00:00:00:01``.
        ip: IPv4 address as text.
    """

    port: int
    mac: str
    ip: str


@dataclass(frozen=True)
class Network:
    """The switch's own addresses and its workers; the place in ``stations`` is the worker."""

    stations: tuple[Station, ...]
    switch_mac: str = "02:00:00:00:ff:fe"
    switch_ip: str = "10.0.255.254"


def star_network(workers: int) -> Network:
    """Return ``workers`` workers around one switch: worker w on port w + 1."""
    return Network(stations=tuple(_station(worker + 1) for worker in range(workers)))


def _station(number: int) -> Station:
    # Above 250 the number takes two bytes, so that no address ends in 255.
    high, low = (0, number) if number <= 250 else (number // 250, number % 250)
    return Station(
        port=number,
        mac=f"02:00:00:00:{high:02x}:{low:02x}",
        ip=f"10.0.{high}.{low}",
    )


def mac_number(mac: str) -> int:
    """Return a MAC address as a number of 48 bits.

    Raises:
        ValueError: it is not six bytes in hexadecimal.
    """
    parts = bytes.fromhex(mac.replace(":", " "))
    if len(parts) != 6:
        raise ValueError(f"{mac!r} is not an Ethernet address")
    return int.from_bytes(parts, "big")


def mac_text(number: int) -> str:
    """Return 48 bits in the usual notation."""
    return number.to_bytes(6, "big").hex(":")
