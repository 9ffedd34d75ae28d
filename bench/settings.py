"""The settings that say how much is measured."""

from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """The settings of every figure."""

    pairs: int = 5  # how often A and B are measured, in turn
    seconds: float = 1.5  # the length of one measurement that runs for a time
    plots: Path | None = None  # the folder for pictures, or None for none
    clone: bool = False  # whether to run also the figure that clones and installs everything
    data: Path | None = None  # a data set that a figure measures besides its own, or None
    # whether graphs have the paper's size, in figures that also have smaller ones
    full: bool = False

    @property
    def quick(self) -> "Settings":
        """The same settings with fewer and shorter measurements."""
        return replace(self, pairs=2, seconds=0.7)
