# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How much is measured."""

from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """What every figure takes.

    Attributes:
        pairs: how often A and B are measured, in turn.
        seconds: length of one measurement that runs for a time.
        plots: folder for pictures, or None for none.
        clone: also run the figure that clones and installs everything anew.
        full: graphs of the paper's size, where a figure has smaller ones.
    """

    pairs: int = 5
    seconds: float = 1.5
    plots: Path | None = None
    clone: bool = False
    full: bool = False

    @property
    def quick(self) -> "Settings":
        """Return the same, short and coarse."""
        return replace(self, pairs=2, seconds=0.7)
