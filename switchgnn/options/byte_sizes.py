# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Sizes as people write them: 10MB, 8MiB."""

import re

from switchgnn.errors import SwitchGNNError

_UNITS = {
    "": 1,
    "k": 10**3,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "ki": 2**10,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
}
# An exact float, and more than any machine has.
_MOST = 1 << 60
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kKMG]i?|)B?")


def parse_bytes(option: str, text: str) -> int:
    """Return a size in bytes.

    Args:
        option: what it was given with.
        text: the size.

    Raises:
        SwitchGNNError: it is none, or more than anything has.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise SwitchGNNError(f"cannot read {option} {text}: write it as 10MB or 8MiB")
    size = float(found[1]) * _UNITS[found[2]]
    if size > _MOST:
        raise SwitchGNNError(f"{option} is too much: give at most {_MOST >> 50:,} PiB")
    return int(size)
