"""The memory that a plan takes of its switches."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from switchgnn.base.network import leaf_spine_networks, star_network
from switchgnn.controller.base.plan import SwitchPlan, leaf_spine_switch_plan
from switchgnn.controller.check import Use, memory_of
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.p4src import Program
from switchgnn.planner.plan.banks import BANKS
from switchgnn.planner.plan.leaf_spine import LeafSpineParts
from switchgnn.planner.plan.manifest import Manifest
from switchgnn.planner.plan.plan import Plan
from switchgnn.planner.presets import COVER
from switchgnn.planner.sending.rates import WEIGHTS
from switchgnn.profiles.profile import SwitchProfile


@dataclass(frozen=True)
class PlanMemory:
    """The memory that a plan takes of its switches."""

    tables: tuple[Use, ...]  # the use of each table in the switch that has most of it
    registers: tuple[Use, ...]  # the use of each register, likewise
    table_bytes: int  # of all tables, in the switch with the most
    register_bytes: int  # of all registers, likewise
    allowed: int | None  # the limit of table bytes, or None
    switches: int  # their number
    # passes per fragment after the first of each packet, in the switch with the most
    loop_passes: int = 0
    fewer_entries: str = ""  # how to plan with fewer table entries, or empty

    @property
    def refusals(self) -> tuple[str, ...]:
        """Sentences that explain why it does not fit; empty if it does."""
        where = "a switch" if self.switches > 1 else "the switch"
        sentences = [
            f"The plan needs {use.number:,} of {use.name}, and the P4 program has {use.room:,}: "
            "plan with more slots (--slots), which makes fewer blocks, or over fewer workers, or "
            "compile the program with more."
            for use in (*self.tables, *self.registers)
            if not use.fits
        ]
        if self.allowed is not None and self.table_bytes > self.allowed:
            largest = self.tables[0]
            sentences.append(
                f"The tables of {where} take {self.table_bytes:,} bytes, {largest.bytes:,} of them "
                f"for {largest.number:,} entries of {largest.name}, and may take {self.allowed:,}: "
                "allow more (--table-memory), "
                + (f"{self.fewer_entries}, " if self.fewer_entries else "")
                + "or take another switch (--switch)."
            )
        return tuple(sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data for JSON."""
        return {
            "fits": not self.refusals,
            "entries": {use.name: use.number for use in self.tables},
            "table_bytes": {use.name: use.bytes for use in self.tables},
            "table_bytes_sum": self.table_bytes,
            "table_memory": self.allowed,
            "register_bytes": {use.name: use.bytes for use in self.registers},
            "register_bytes_sum": self.register_bytes,
        }


def plan_memory(
    plan: Plan,
    parts: LeafSpineParts | None,
    program: Program,
    allowed: int | None,
    profile: SwitchProfile | None = None,
) -> PlanMemory:
    """Return the memory that a plan takes of its switches.

    Args:
        plan: the plan.
        parts: its leaves and spines; None for a single switch.
        program: the P4 program of the switches.
        allowed: the limit of a switch's table bytes; None for no limit.
        profile: the profile of the switches; None for the sizes of the program. Other sizes have
            no limit of entries.

    Returns:
        The use of the fullest switch, table by table.
    """
    layout, manifest = Layout.from_text(program.p4info), plan.manifest
    banks = BANKS if profile is None else profile.banks
    if parts is None:
        switches = [
            memory_of(
                SwitchPlan(manifest, plan.switch), layout, star_network(manifest.workers), banks
            )
        ]
        tables = [plan.switch]
    else:
        leaf_spine = parts.leaf_spine
        around = leaf_spine_networks(leaf_spine.leaf_of_worker, leaf_spine.spines)
        switches = [
            memory_of(leaf_spine_switch_plan(manifest, part), layout, network, banks)
            for part, network in zip(parts.switches, (*around.leaves, *around.spines), strict=True)
        ]
        tables = [part.switch for part in parts.switches]
    limited = profile is None or profile.program_sizes
    return PlanMemory(
        tables=_fullest((switch.tables for switch in switches), limited=limited),
        registers=_fullest((switch.registers for switch in switches), limited=limited),
        table_bytes=max(switch.table_bytes for switch in switches),
        register_bytes=max(switch.register_bytes for switch in switches),
        allowed=allowed,
        switches=len(switches),
        loop_passes=max(int(np.count_nonzero(part.entry_hop)) for part in tables),
        fewer_entries=_fewer_entries(manifest),
    )


def _fewer_entries(manifest: Manifest) -> str:
    if manifest.strawman:
        return ""
    if manifest.strategy.send != COVER:
        return "send partial sums (--send cover), which need fewer entries"
    more = manifest.strategy.weight < max(WEIGHTS)
    return "send more partial sums (a lower --recirculation-rate)" if more else ""


def _fullest(switches: Iterable[tuple[Use, ...]], *, limited: bool) -> tuple[Use, ...]:
    """Return the largest use of each table, the largest first."""
    found: dict[str, Use] = {}
    for use in (use for uses in switches for use in uses):
        if use.name not in found or use.number > found[use.name].number:
            found[use.name] = use if limited else replace(use, room=None)
    return tuple(sorted(found.values(), key=lambda use: (-use.bytes, use.name)))
