"""Profiles of switches: the resources that plans depend on, and the memory that one takes."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.names import no_such
from switchgnn.base.network import leaf_spine_networks, star_network
from switchgnn.base.records import RecordError, make_record, read_toml
from switchgnn.controller.base.plan import SwitchPlan, leaf_spine_switch_plan
from switchgnn.controller.check import Use, memory_of
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.p4src import Program
from switchgnn.planner.costs.seconds import NetworkModel
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.planner.plan.banks import BANKS
from switchgnn.planner.plan.leaf_spine import LeafSpineParts
from switchgnn.planner.plan.manifest import Manifest
from switchgnn.planner.plan.plan import Plan
from switchgnn.planner.presets import COVER, SLOT_BYTES
from switchgnn.planner.sending.rates import WEIGHTS

_MEGA, _GIGA = 1e6, 1e9
_BITS = 8
# A plan needs two slots, whose numbers have 32 bits.
_SlotBytes = Annotated[int, Meta(ge=2 * SLOT_BYTES, lt=SLOT_BYTES << 32)]
# Port numbers of the program have nine bits, and the last one drops.
_Ports = Annotated[int, Meta(ge=1, le=511)]
_Rate = Annotated[float, Meta(gt=0, le=sys.float_info.max)]
_Seconds = Annotated[float, Meta(ge=0, le=1)]
_DEFAULT = NetworkModel()


class ProfileError(SwitchGNNError):
    """A profile cannot be read or is invalid, or a plan does not fit it."""


@dataclass(frozen=True)
class SwitchProfile:
    """The resources of a switch; None stands for no limit."""

    name: str  # of the profile
    banks: Literal[1, 2, 4, 8] = BANKS  # slots that one pass can add to
    least_lanes: Literal[0, 64] = 0  # numbers of the narrowest slot; 0: any
    slot_bytes: _SlotBytes | None = None  # of the registers for features; a slot takes 128
    table_bytes: Annotated[int, Meta(ge=1, le=1 << 50)] | None = None  # of all tables together
    # of all pipelines, without the first pass of each packet
    passes_per_second: _Rate | None = None
    ports: _Ports | None = None  # their number
    port_gbits: _Rate | None = None  # Gbit/s of each port, in each direction
    program_sizes: bool = False  # whether tables and registers have the sizes of the P4 program
    program: Literal["switchgnn", "tofino"] = "switchgnn"  # the P4 program that plans are for
    # processor time of a software switch for each received frame
    frame_seconds: _Seconds | None = None
    # processor time of a host for each frame that it sends or receives in an exchange over the
    # switch
    host_frame_seconds: _Seconds | None = None
    # processor time of a host for an exchange between hosts
    host_exchange_seconds: _Seconds | None = None
    barrier_seconds: _Seconds | None = None  # time of a barrier in addition to frames and links

    @property
    def slots(self) -> int | None:
        """The number of slots."""
        return None if self.slot_bytes is None else self.slot_bytes // SLOT_BYTES

    @property
    def bandwidth(self) -> float | None:
        """The rate of a port in Mbit/s, in each direction."""
        return None if self.port_gbits is None else self.port_gbits * _GIGA / _MEGA

    def frames_per_second(self, frame_bytes: int) -> float | None:
        """Return the frames of a size that a port carries per second, in each direction."""
        if self.port_gbits is None:
            return None
        return self.port_gbits * _GIGA / (_BITS * frame_bytes)

    def check_attached(self, attached: int, bandwidth: float | None = None) -> None:
        """Check the number of attached links, and their Mbit/s if given.

        ProfileError: there are fewer ports, or they are slower.
        """
        if self.ports is not None and attached > self.ports:
            raise ProfileError(
                f"The switch {self.name} has {self.ports} ports, and {attached} links end there: "
                "plan for fewer workers, for more leaves, or for another switch (--switch)."
            )
        if self.bandwidth is not None and bandwidth is not None and bandwidth > self.bandwidth:
            raise ProfileError(
                f"A port of the switch {self.name} has {self.bandwidth:,g} Mbit/s, and the links "
                f"have {bandwidth:,g}: give a lower --bandwidth, or another switch (--switch)."
            )


def most_attached(leaf_spine: LeafSpine | None, workers: int) -> int:
    """Return the largest number of links at one switch."""
    if leaf_spine is None:
        return workers
    leaves: Sequence[int] = leaf_spine.leaf_of_worker
    fullest = max(leaves.count(leaf) for leaf in set(leaves))
    return max(fullest + leaf_spine.spines, leaf_spine.leaves)


UNLIMITED = SwitchProfile("unlimited")


_FOLDER = Path(__file__).parent / "known"
_SUFFIX = ".toml"
_MOST_BYTES = 1 << 16


def known_profiles() -> tuple[str, ...]:
    """Return the names of the bundled profiles."""
    return tuple(sorted(path.stem for path in _FOLDER.glob(f"*{_SUFFIX}")))


def find_profile(switch: str) -> SwitchProfile:
    """Return the profile with a name of `known_profiles`, or that of a TOML file."""
    known = known_profiles()
    if switch in known:
        return _read(_FOLDER / f"{switch}{_SUFFIX}")
    path = Path(switch)
    if path.suffix != _SUFFIX and not path.exists():
        own = f", or a file of your own (NAME{_SUFFIX})"
        raise ProfileError(no_such("switch", switch, known, also=own))
    return _read(path)


def _read(path: Path) -> SwitchProfile:
    told = read_toml(path, _MOST_BYTES, "switch", ProfileError)
    try:
        profile = make_record(SwitchProfile, {"name": path.stem, **told})
    except RecordError as error:
        raise ProfileError(f"{path} is not a profile of a switch: {error}.") from error
    if not profile.name or not profile.name.isprintable():
        raise ProfileError(
            f"{path} is not a profile of a switch: name: {profile.name!r} cannot be printed."
        )
    return profile


def network_of(
    profile: SwitchProfile,
    *,
    bits_per_second: float | None,
    delay: float = _DEFAULT.delay,
    loop: float | None = None,
    mtu: int = _DEFAULT.mtu,
    window: int = _DEFAULT.window,
    cores: int | None = None,
) -> NetworkModel:
    """Return the links, switch and processors of a star, as `NetworkModel` has them.

    By default links are as fast as the ports, or have 100 Gbit/s. `loop`: passes per second of the
    switch; None for no limit.
    """
    own = _DEFAULT.bits_per_second if profile.bandwidth is None else profile.bandwidth * _MEGA
    return NetworkModel(
        bits_per_second=own if bits_per_second is None else bits_per_second,
        delay=delay,
        passes_per_second=loop,
        host_frame=profile.host_frame_seconds or 0.0,
        switch_frame=profile.frame_seconds or 0.0,
        barrier=profile.barrier_seconds or 0.0,
        mtu=mtu,
        window=window,
        cores=cores,
    )


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
