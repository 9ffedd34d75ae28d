# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What looking for one requirement has found."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """The result of looking for one requirement.

    Attributes:
        name: what was looked for.
        needed_for: what it is used for.
        required: whether nothing runs without it.
        found: its version or place, or None.
        mend: the command that installs it.
    """

    name: str
    needed_for: str
    required: bool
    found: str | None
    mend: str
