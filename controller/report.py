# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The report of an install."""

from collections.abc import Mapping
from dataclasses import dataclass

from switchgnn.controller.change import ChangeCounts


@dataclass(frozen=True)
class SwitchReport:
    """One switch's part of an install.

    Attributes:
        address: of the switch.
        pipeline_pushed: whether the P4 program had to be loaded.
        counts: entries, groups and default actions that were written.
        entries: entries of each table now, by its name.
        groups: multicast groups now.
        seconds: from the first write to the end of verification.
    """

    address: str
    pipeline_pushed: bool
    counts: ChangeCounts
    entries: Mapping[str, int]
    groups: int
    seconds: float

    @property
    def changed(self) -> bool:
        """Whether anything was written."""
        return self.pipeline_pushed or self.counts.total > 0

    def sentence(self) -> str:
        """Return what happened, in words."""
        if not self.changed:
            return f"Switch {self.address}: nothing to do, the plan is installed."
        loaded = "P4 program loaded, " if self.pipeline_pushed else ""
        return (
            f"Switch {self.address}: {loaded}{self.counts.inserted:,} entries inserted, "
            f"{self.counts.modified:,} modified, {self.counts.deleted:,} deleted and all "
            f"verified in {self.seconds:.1f} s."
        )


@dataclass(frozen=True)
class InstallReport:
    """A whole install.

    Attributes:
        session: its number, the same at all switches.
        plan: digest (hex) of the plan.
        switches: one report each, in the order given.
    """

    session: int
    plan: str
    switches: tuple[SwitchReport, ...]

    @property
    def changed(self) -> bool:
        """Whether anything was written to any switch."""
        return any(switch.changed for switch in self.switches)

    def sentences(self) -> list[str]:
        """Return what happened on each switch, in words."""
        return [switch.sentence() for switch in self.switches]
