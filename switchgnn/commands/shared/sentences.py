# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Sentences that reports of several commands have in common."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol


class Planned(Protocol):
    """A report that names the strategies of a plan; None where nothing was planned."""

    @property
    def partition(self) -> str | None:
        """Who holds which vertex."""

    @property
    def block_strategy(self) -> str | None:
        """How blocks form."""

    @property
    def send(self) -> str | None:
        """What workers send."""

    @property
    def order(self) -> str | None:
        """In which order they send."""


class Ran(Protocol):
    """A report that says what the embedded switch ran; None where there was none."""

    @property
    def backend(self) -> str | None:
        """What it ran the program as."""

    @property
    def backend_reason(self) -> str | None:
        """Why that is Python where native code might have been."""

    @property
    def compile_seconds(self) -> float | None:
        """How long the compilation took."""


def ran_as(report: Ran, hosts: str | None = None) -> str:
    """Return what comes behind the name of the switch: what its program ran as, and the hosts."""
    words = ""
    if report.backend is not None:
        words = f"; the program runs as {report.backend} code"
        if report.compile_seconds:
            words += f", compiled in {report.compile_seconds:.1f} s"
        if report.backend_reason is not None:
            words += f" ({report.backend_reason.rstrip('.')})"
    return words if hosts is None else f"{words}; hosts run {hosts} code"


def strategies_line(report: Planned) -> str:
    """Say in one line what was planned with; nothing where nothing was planned."""
    names = {
        "partition": report.partition,
        "blocks": report.block_strategy,
        "send": report.send,
        "order": report.order,
    }
    used = [f"{part} {name}" for part, name in names.items() if name is not None]
    return ", ".join(used)


def counted(title: str, counts: dict[str, int]) -> str:
    """Return the counts that are not 0 as a sentence."""
    words = (f"{number:,} {name.replace('_', ' ')}" for name, number in counts.items() if number)
    return f"{title}: {', '.join(words) or 'none'}."


def captured_line(files: Sequence[Path]) -> str:
    """Say where the packets of a run are."""
    size = sum(each.stat().st_size for each in files if each.exists())
    links = f"{len(files)} link{'s' if len(files) > 1 else ''}"
    return f"Packets of {links}: {files[0].parent}, {size:,} bytes; none was left out."
