"""Options that several commands share; each is declared here once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

import typer

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.metrics import MetricsError, parse_address
from switchgnn.base.options import (
    CONGESTION,
    DATA,
    FAULTS,
    NETWORK,
    OUTPUT,
    PLAN,
    OptionPanel,
    parse_bytes,
)
from switchgnn.host.base.errors import FramingError
from switchgnn.host.base.pace import CongestionRule, Pace
from switchgnn.host.direct.framing import USUAL_MTU, Framing
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.base.lanes import AUTO, parse_lanes, parse_rows
from switchgnn.planner.graphs.edge_list import EDGE_WEIGHTS, IGNORE_WEIGHTS
from switchgnn.planner.partition.leaf_spine import (
    LeafSpine,
    even_leaf_spine,
    partition_for_leaf_spine,
)
from switchgnn.planner.plan.banks import MOST_POOLS
from switchgnn.planner.presets import KNOWN, PRESETS, PlanRequest
from switchgnn.profiles import SwitchProfile, find_profile, known_profiles
from switchgnn.topologies import Backend, Bmv2Log, FlowLimits, choose, usual_limits
from switchgnn.topologies.choice import KeptPorts

_LAST_PORT = 65_535
_LEAVES, _SPINES = 2, 1
# As many as there may be workers, and therefore leaves.
_MOST_SPINES = 128
_PORTS = re.compile(r"(\d{1,3})(?:-(\d{1,3}))?")


def workers_option(default: int | None) -> Any:  # noqa: ANN401
    """Declare --workers."""
    return DATA.option("N", "Run N workers.", default=default, min=1, max=128)


def per_machine_option(let: str = "Let") -> Any:  # noqa: ANN401
    """Declare --per-machine."""
    text = f"{let} N workers share a switch port; they add up among themselves first."
    return DATA.option("N", text, "--per-machine", default=1, min=1, max=128)


def seed_option() -> Any:  # noqa: ANN401
    """Declare --seed."""
    return DATA.option("N", "Draw all random numbers from this seed.", default=0, min=0)


def ignore_weights_option() -> Any:  # noqa: ANN401
    """Declare --ignore-weights."""
    return DATA.flag("Ignore the edge weights of a file.", IGNORE_WEIGHTS)


def parse_ports(text: str) -> list[int]:
    """Return ports in the order of a text such as 1-4,7."""
    found: list[int] = []
    for part in text.split(","):
        match = _PORTS.fullmatch(part.strip())
        if match is None:
            raise typer.BadParameter(f"{text!r} names no ports: write them like 1-4,7")
        first = int(match[1])
        found += range(first, int(match[2] or first) + 1)
    return found


def refuse_with_on(given: Mapping[str, object]) -> None:
    """Refuse options of a new switch, by name, whose value is true."""
    for name, value in given.items():
        if value:
            raise SwitchGNNError(
                f"{name} is for a switch that the command starts itself: leave it out, or leave "
                "out --on."
            )


@dataclass(frozen=True)
class WeightOptions:
    """Whether a training uses edge weights."""

    edge_weights: bool = DATA.flag("Train with the edge weights of the file.", EDGE_WEIGHTS)
    ignore_weights: bool = ignore_weights_option()

    @property
    def asked(self) -> bool | None:
        """Whether weights are used, or dropped; None: neither."""
        if self.edge_weights and self.ignore_weights:
            raise PlannerError(f"Give {EDGE_WEIGHTS} or {IGNORE_WEIGHTS}, not both.")
        return self.edge_weights or (False if self.ignore_weights else None)


def mtu_option(panel: OptionPanel, text: str) -> Any:  # noqa: ANN401
    """Declare --mtu."""
    return panel.option("BYTES", text, default=str(USUAL_MTU), callback=_known_mtu)


def timeout_option(default: float) -> Any:  # noqa: ANN401
    """Declare --timeout."""
    text = "A worker gives up after this long without progress."
    return NETWORK.option("SECONDS", text, default=default, min=0.1)


def json_option(text: str = "Print JSON instead of tables.") -> Any:  # noqa: ANN401
    """Declare --json."""
    return OUTPUT.flag(text, "--json")


def _known_mtu(text: str) -> str:
    try:
        Framing.parse(text)
    except FramingError as error:
        raise typer.BadParameter(str(error)) from error
    return text


# Paragraphs become lines of the help.
_GRAMMAR = (
    "Inject faults into frames: parts, separated by commas.",
    "A part is [LINK.][WAY.]KIND=PROBABILITY, or seed=N for the random numbers.",
    "KIND: loss, duplicate, reorder or corrupt.",
    "WAY: up, away from the workers, or down; default: both.",
    "LINK: w3, the link of worker 3; l0s1, the cable from leaf 0 to spine 1; workers or cables: "
    "all of that kind; default: all links.",
    "A part with a more specific link takes precedence, then one with a way.",
    "Example: loss=0.01,w3.up.loss=0.1,cables.loss=0,seed=7",
)


def congestion_option() -> Any:  # noqa: ANN401
    """Declare --congestion."""
    text = (
        "When packets come marked, narrow the window by half their share (dctcp), halve it "
        "(paper), or keep it (none)."
    )
    return CONGESTION.option("RULE", text, default=CongestionRule.DCTCP)


def find_metrics(text: str | None, workers: int) -> tuple[str, int] | None:
    """Return the address and port where worker 0 serves metrics; None: no worker does."""
    if text is None:
        return None
    host, port = parse_address(text)
    if not 0 < port <= _LAST_PORT - workers + 1:
        raise MetricsError(
            f"Metrics of {workers} workers cannot be served from port {port} on: choose one from "
            f"1 to {_LAST_PORT - workers + 1}."
        )
    return host, port


@dataclass(frozen=True)
class MemoryOptions:
    """The memory of the switch that is planned for."""

    memory: str | None = PLAN.option(
        "SIZE",
        "Use slots of this total size, such as 10MB; a slot has 128 bytes.",
        shown="all of the switch",
    )
    switch: str | None = PLAN.option(
        "NAME|FILE",
        f"Plan within the limits of a switch: {', '.join(known_profiles())}, or a TOML file.",
        autocompletion=lambda: list(known_profiles()),
    )
    table_memory: str | None = PLAN.option(
        "SIZE",
        "Limit the tables of the switch to this size, such as 10MB.",
        shown="all of the switch",
    )

    @property
    def memory_bytes(self) -> int | None:
        """The size of --memory."""
        return None if self.memory is None else parse_bytes("--memory", self.memory)

    @property
    def table_bytes(self) -> int | None:
        """The size of --table-memory."""
        if self.table_memory is None:
            return None
        return parse_bytes("--table-memory", self.table_memory)

    @property
    def profile(self) -> SwitchProfile | None:
        """The profile of --switch."""
        return None if self.switch is None else find_profile(self.switch)


def _part_option(part: str, text: str, more: str = "") -> Any:  # noqa: ANN401
    text = f"{text} instead of --strategy: {', '.join(KNOWN[part])}.{more}"
    return PLAN.option("NAME", text, autocompletion=lambda: list(KNOWN[part]))


@dataclass(frozen=True)
class StrategyOptions:
    """Choices that replace those of a strategy."""

    partition: str | None = _part_option(
        "partition",
        "Choose how vertices are divided",
        " On several leaves also metis-leaf-spine. Edges are divided by vertex-cut, "
        "vertex-cut-hdrf, vertex-cut-ebv and vertex-cut-metis.",
    )
    blocks: str | None = _part_option("blocks", "Choose how blocks form")
    send: str | None = _part_option("send", "Choose what workers send")
    order: str | None = _part_option("order", "Choose the order of packets")
    assignment: Path | None = PLAN.option(
        "FILE", "Read the worker of each vertex from this file, one per line."
    )
    lanes: str | None = PLAN.option(
        "auto|N",
        "Put at most N numbers, a multiple of 8, into a row of a frame; auto: by predicted time.",
        shown="auto, and 32 for simulate",
    )
    rows: str | None = PLAN.option(
        "auto|N",
        "Put 1, 2, 4 or 8 rows into a frame of at most 256 numbers; auto: by predicted time.",
        shown="auto; 1 for paper and simulate",
    )
    pools: int | None = PLAN.option(
        "N",
        "Divide the slots into N pools, so that N fragments of blocks are in flight at once.",
        min=1,
        max=MOST_POOLS,
        shown="by predicted time; 1 for paper, leaves and simulate",
    )

    def switch_only(self) -> str:
        """Return the given options that only the switch uses; empty: none."""
        names = ("blocks", "send", "order", "lanes", "rows", "pools")
        return ", ".join(f"--{each}" for each in names if getattr(self, each) not in (None, AUTO))

    def with_preset(self, preset: str, leaf_spine: LeafSpine | None = None) -> PlanRequest:
        """Return the strategies to plan with; without a leaf-spine, around one switch."""
        return PlanRequest(
            preset,
            partition_for_leaf_spine(self.partition, leaf_spine),
            self.blocks,
            self.send,
            self.order,
            self.assignment,
            lanes=None if self.lanes in (None, AUTO) else parse_lanes(self.lanes, ()),
            pools=self.pools,
            rows=None if self.rows in (None, AUTO) else parse_rows(self.rows),
        ).checked()


@dataclass(frozen=True)
class PlanningOptions(StrategyOptions):
    """How a command plans."""

    strategy: str | None = PLAN.option(
        "NAME",
        f"Choose partition, blocks, packets and order together: {', '.join(PRESETS)}.",
        shown=f"{PlanRequest.preset}; auto where `train` chooses the transport",
        autocompletion=lambda: list(PRESETS),
    )
    slots: int | None = PLAN.option(
        "N", "Let a block use N aggregators.", min=2, max=2**32 - 1, shown="all of the switch"
    )

    def request(self, leaf_spine: LeafSpine | None) -> PlanRequest:
        """Return the strategies to plan with."""
        return self.with_preset(self.strategy or PlanRequest.preset, leaf_spine)


# Values of --topology, --target and --fabric.
TopologyOption = Enum("TopologyOption", {"STAR": "star", "LEAF_SPINE": "leaf-spine"}, type=str)
TargetOption = Enum(
    "TargetOption",
    {
        "AUTO": "auto",
        "REFERENCE": "reference",
        "BMV2": "bmv2",
        "EMBEDDED": "embedded",
        "TOFINO": "tofino",
    },
    type=str,
)
FabricOption = Enum(
    "FabricOption", {"AUTO": "auto", "MININET": "mininet", "LOOPBACK": "loopback"}, type=str
)


@dataclass(frozen=True)
class TopologyOptions:
    """How switches connect the workers."""

    topology: TopologyOption = NETWORK.option(
        "NAME",
        "Connect the workers by one switch (star), or by leaves below spines (leaf-spine).",
        default=TopologyOption.STAR,
    )
    leaves: int | None = NETWORK.option(
        "N", "Spread the workers of a leaf-spine over N leaves.", min=1, shown=str(_LEAVES)
    )
    spines: int | None = NETWORK.option(
        "N", "Put N spines above the leaves.", min=1, max=_MOST_SPINES, shown=str(_SPINES)
    )

    def leaves_and_spines(self) -> tuple[int, int] | None:
        """Return the numbers of leaves and spines, each of which implies them; None for a star."""
        if self.topology is TopologyOption.STAR and self.leaves is self.spines is None:
            return None
        return self.leaves or _LEAVES, self.spines or _SPINES

    def leaf_spine(self, workers: int) -> LeafSpine | None:
        """Divide the workers over the leaves; None for a star."""
        numbers = self.leaves_and_spines()
        return None if numbers is None else even_leaf_spine(workers, *numbers)


# The fields of JobNetworkOptions that do not concern a new switch.
_OF_JOBS = frozenset({"window", "congestion", "faults", "on", "ports", "job"})


@dataclass(frozen=True)
class JobNetworkOptions(TopologyOptions):
    """The network of a job: its switches, what its links carry, and what goes wrong on them."""

    target: TargetOption = NETWORK.option(
        "NAME",
        "Use the embedded switch (embedded or auto), the same with the program for a Tofino 2 "
        "(tofino), bmv2, or reference: bmv2 if it is installed.",
        default=TargetOption.AUTO,
    )
    fabric: FabricOption = NETWORK.option(
        "NAME",
        "Use this network: mininet, loopback, or auto, the best available.",
        default=FabricOption.AUTO,
    )
    backend: Backend | None = NETWORK.option(
        "NAME",
        "Run the program of the embedded switch as native code (C++), as python, or auto: native "
        "if there is a compiler.",
        shown="$SWITCHGNN_BACKEND, or auto",
    )
    bmv2_log: Bmv2Log = NETWORK.option(
        "LEVEL",
        f"Let BMv2 log at this level, for --log-dir: {', '.join(each.value for each in Bmv2Log)}.",
        default=Bmv2Log.OFF,
    )
    bandwidth: float | None = NETWORK.option(
        "MBIT/S",
        "Limit each link to this many Mbit/s in each direction.",
        min=0.1,
        shown="no limit",
    )
    window: int | None = NETWORK.option(
        "N",
        "Allow each worker N features in flight.",
        min=1,
        shown="128 on the embedded switch with unlimited links, 64 with slower ones; 16 on BMv2",
    )
    congestion: CongestionRule = congestion_option()
    on: Path | None = NETWORK.option(
        "FILE",
        "Start no switch, but be a job on one that `switchgnn run --keep` keeps, by its network "
        "file.",
    )
    ports: str | None = NETWORK.option("PORTS", "With --on: use these ports, such as 5-8.")
    job: str | None = NETWORK.option(
        "NAME", "With --on: be this job, beside others.", shown="that of the file"
    )
    faults: str = FAULTS.option("PARTS", "\n\n".join(_GRAMMAR), default="", shown=False)

    @cached_property
    def kept(self) -> KeptPorts | None:
        """The ports of --on, or None."""
        if self.on is None:
            if self.ports is not None or self.job is not None:
                raise SwitchGNNError(
                    "--ports and --job are for a switch that is kept: add --on with its network "
                    "file."
                )
            return None
        own = [each for each in fields(self) if each.name not in _OF_JOBS]
        changed = {each.name: getattr(self, each.name) != each.default for each in own}
        refuse_with_on({f"--{name.replace('_', '-')}": value for name, value in changed.items()})
        if self.ports is None:
            raise SwitchGNNError("--on needs the ports of the workers: add --ports, such as 5-8.")
        return KeptPorts.read(self.on, parse_ports(self.ports), self.job)

    def pace(self, timeout: float = Pace.timeout, skew: float = 0.0, *, busy: bool = False) -> Pace:
        """Return the bounds of workers, by --window or the default one, and --congestion."""
        window = self.window or self._usual(busy=busy).window
        return Pace(window=window, timeout=timeout, skew=skew, congestion=self.congestion)

    def _usual(self, *, busy: bool) -> FlowLimits:
        if self.kept is not None:
            here, limit = self.kept.choice, self.kept.bandwidth
        else:
            here = choose(self.target.value, self.fabric.value, self.backend)
            limit = self.bandwidth
        return usual_limits(here.target, shaped=busy or limit is not None)

    def job_fields(self, workers: int, *, busy: bool = False) -> dict[str, Any]:
        """Return the fields of a NetworkJob, without slots for exchanges."""
        usual, kept = self._usual(busy=busy), self.kept
        there: dict[str, Any] = {}
        if kept is not None:
            given, choice = len(kept.network.workers), kept.choice
            if given != workers:
                raise SwitchGNNError(
                    f"--ports names {given} of the ports, but --workers needs {workers}: change "
                    "one of them."
                )
            there = {"target": choice.target.value, "fabric": choice.fabric.value}
            there |= {"bandwidth": kept.bandwidth, "on": kept}
        return {
            "workers": workers,
            "slots": 0,
            "target": self.target.value,
            "fabric": self.fabric.value,
            "backend": self.backend,
            "bmv2_log": self.bmv2_log,
            "bandwidth": self.bandwidth,
            "ecn_threshold": usual.ecn_threshold,
            "queue": usual.queue,
            "leaf_spine": self.leaf_spine(workers),
            "faults": self.faults,
            **there,
        }
