# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""TOML files that people write, of bounded size."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from switchgnn.regular_file import read_bounded


def read_toml(
    path: Path, most_bytes: int, kind: str, refuse: Callable[[str], Exception]
) -> dict[str, Any]:
    """Return what a TOML file holds.

    Args:
        path: the file.
        most_bytes: a longer one is not read.
        kind: what the file is for, as "network".
        refuse: makes the error from its sentence.

    Returns:
        Its keys and values.

    Raises:
        Exception: what `refuse` makes; the file cannot be read, is too long, or is no TOML.
    """
    try:
        content = read_bounded(path, most_bytes)
    except OSError as error:
        raise refuse(f"Cannot read the {kind} {path}: {error.strerror}.") from error
    try:
        found: dict[str, Any] = msgspec.toml.decode(content)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise refuse(f"{path} is no TOML: {error}.") from error
    return found
