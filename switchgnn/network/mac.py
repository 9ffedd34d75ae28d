# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Ethernet addresses, as numbers and as text."""


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
