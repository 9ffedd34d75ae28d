# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers that differ little are one: a state shall not be new because it came once more."""

_LAST = 8


def bucket_of(number: int) -> str:
    """Return the range in which a number is, from powers of two; empty for 0."""
    bits = min(number.bit_length(), _LAST)
    if bits < 2:
        return str(number) if number else ""
    least = 1 << bits - 1
    return f"{least}+" if bits == _LAST else f"{least}-{2 * least - 1}"
