# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Sets of strategies: `paper` follows the paper, `best` sends the fewest packets."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from switchgnn.base.machine import how_to_install
from switchgnn.base.names import no_such
from switchgnn.planner.blocks.hypergraph import has_mtkahypar
from switchgnn.planner.blocks.leaf_spine import name_over
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.lanes import BANK_LANES, banks_of_slot
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.planner.partition.metis_leaf_spine import metis_leaf_spine_name
from switchgnn.planner.plan.banks import BANKS
from switchgnn.planner.sending.order import Rates
from switchgnn.planner.strategies import BLOCK_STRATEGIES

# The send strategy for which some block strategies are refined, and the end of their names.
COVER = "cover"
# A slot of a bank is 32 lanes of four bytes; one fragment at a time shares the slots.
NUMBER_BYTES, SLOT_BYTES = 4, 128
# The most directed edges with which Mt-KaHyPar takes only seconds.
_MOST_HYPERGRAPH_EDGES = 500_000
# The most directed edges with which a cover for each of several weights takes a minute at most.
_MOST_TRIED_EDGES = 4_000_000
# What a pass serves on average by banks, measured on social graphs.
_CONTRIBUTIONS_PER_PASS = {1: 1.0, 2: 1.8, 4: 3.0, 8: 5.0}
# A partial sum that saves no packet is not worth more than this.
_MOST_WEIGHT = 1.0


@dataclass(frozen=True)
class Situation:
    """The conditions of a choice.

    Attributes:
        slots: the aggregators of the switch.
        link_rate: packets per second on each worker's link; None: not known.
        recirculation_rate: passes per second of the switch; None: not known.
        leaf_spine: the leaves that the workers are attached to; None: a star around one switch.
        banks: of the switch, one of BANKS_OF_SWITCHES: additions that one pass can make.
        within: plan for the least time within these rates.
        lanes: of the widest frame, one of LANES.
        leaves_complete: leaves of destinations complete sums, not spines; simulator only.
    """

    workers: int
    slots: int
    link_rate: float | None = None
    recirculation_rate: float | None = None
    leaf_spine: LeafSpine | None = None
    banks: int = BANKS
    within: bool = False
    lanes: int = BANK_LANES
    leaves_complete: bool = False

    @property
    def over(self) -> tuple[int, int] | None:
        """Leaves, and spines that complete sums; None: one switch adds everything."""
        if self.leaf_spine is None or self.leaf_spine.leaves == 1:
            return None
        return self.leaf_spine.leaves, 0 if self.leaves_complete else self.leaf_spine.spines

    @property
    def banks_apart(self) -> int:
        """The slots of those lanes that one pass can add to."""
        return self.banks // banks_of_slot(self.lanes)

    @property
    def room(self) -> int:
        """The sums that have room at once."""
        return self.slots // banks_of_slot(self.lanes)


@dataclass(frozen=True)
class Choice:
    """A strategy of each kind, by name.

    Attributes:
        send: `multicast`, or `cover`: partial sums of the workers where they are fewer.
        weight: of `cover_edges`: the cost of a contribution, in packets.
        because: a sentence for each part of the choice, by the name of the part.
        rates: use the weight with the quickest exchange at these; None: use `weight`.
        leaves: leave destinations to the hosts where that is predicted to be quicker (auto.py).
    """

    partition: str
    blocks: str
    send: str
    weight: float
    order: str
    because: Mapping[str, str]
    rates: Rates | None = None
    leaves: bool = False


class Preset(Protocol):
    """Chooses the strategies for a graph."""

    def __call__(self, graph: Graph, situation: Situation) -> Choice:
        """See the class."""


def paper(graph: Graph, situation: Situation) -> Choice:
    """Choose the strategies of the paper: METIS, MLGP, GAMR, and every source multicast."""
    return Choice(
        partition="metis",
        blocks="mlgp",
        send="multicast",
        weight=0.0,
        order="gamr",
        because={"preset": "This is the paper's method, sections 3.2 and 3.3."},
    )


def best(graph: Graph, situation: Situation) -> Choice:
    """Choose the strategies that measured best, as far as the size of the graph allows."""
    partition, why_partition = _partition(situation.leaf_spine)
    blocks, why_blocks = _blocks(graph, situation)
    send, weight, why_send = _send(situation)
    blocks = blocks_for(blocks, send)
    if situation.over is not None and situation.room < graph.vertices:
        blocks = name_over(blocks, *situation.over)
        why_blocks = (
            f"{why_blocks} Each leaf and spine has {situation.room:,} slots for what comes to it, "
            "so a block has more destinations than one switch has slots, spread over the workers."
        )
    rates = _rates(graph, situation)
    if rates is not None:
        why_send = (
            "Workers send a cover of sources and partial sums whose blocks take the least time: "
            f"each link carries {rates.link:,.0f} packets per second and the switch's loop "
            f"{rates.loop:,.0f} passes."
        )
    return Choice(
        partition=partition,
        blocks=blocks,
        send=send,
        weight=weight,
        order="gamr",
        because={
            "partition": why_partition,
            "blocks": why_blocks,
            "send": why_send,
            "order": "The paper's order: of those measured with workers side by side the quickest.",
        },
        rates=rates,
    )


def auto(graph: Graph, situation: Situation) -> Choice:
    """Choose as `best` does, and leave to the hosts what they are predicted to do faster."""
    return replace(best(graph, situation), leaves=situation.leaf_spine is None)


PAPER, BEST, AUTO = "paper", "best", "auto"
PRESETS: Mapping[str, Preset] = {PAPER: paper, BEST: best, AUTO: auto}


def choose(name: str, graph: Graph, situation: Situation) -> Choice:
    """Let a preset choose.

    Args:
        name: a key of PRESETS.
        graph: the graph of the plan.
        situation: the conditions of the choice.

    Returns:
        A strategy of each kind.

    Raises:
        PlannerError: there is no such preset, or a rate is not above 0.
    """
    preset = find_preset(name)
    for rate in (situation.link_rate, situation.recirculation_rate):
        if rate is not None and not rate > 0:
            raise PlannerError(f"a rate must be above 0 packets per second, but it is {rate}")
    return preset(graph, situation)


def find_preset(name: str) -> Preset:
    """Find a preset by its name."""
    if name not in PRESETS:
        raise PlannerError(no_such("preset", name, sorted(PRESETS)))
    return PRESETS[name]


def blocks_for(blocks: str, send: str) -> str:
    """Return the variant of a block strategy that is refined for a send strategy."""
    name, colon, over = blocks.partition(":")
    kind = name.removesuffix(f"-{COVER}")
    covered = f"{kind}-{COVER}"
    return f"{covered if send == COVER and covered in BLOCK_STRATEGIES else kind}{colon}{over}"


def slots_of_memory(memory: int, slot_features: int | None = None) -> int:
    """Return the slots that fit into bytes of memory of a switch."""
    size = slot_bytes(slot_features)
    slots = memory // size
    if slots < 1:
        raise PlannerError(f"{memory} bytes hold no slot of {size} bytes")
    return slots


def slot_bytes(slot_features: int | None = None) -> int:
    """Return the bytes of a slot for that many numbers, or for a fragment (None)."""
    return SLOT_BYTES if slot_features is None else NUMBER_BYTES * slot_features


def _partition(leaf_spine: LeafSpine | None) -> tuple[str, str]:
    if leaf_spine is None or leaf_spine.leaves == 1:
        return "metis", "Workers by METIS: few edges between workers are few boundary vertices."
    return (
        metis_leaf_spine_name(leaf_spine.leaves),
        f"Workers by METIS for {leaf_spine.leaves} leaves: few sums between leaves, then few edges "
        "between workers.",
    )


def _blocks(graph: Graph, situation: Situation) -> tuple[str, str]:
    edges = len(graph.indices)
    if situation.room >= graph.vertices:
        why = f"One block: {situation.room:,} slots hold all {graph.vertices:,} vertices."
    elif edges > _MOST_HYPERGRAPH_EDGES:
        why = f"Destination blocks by METIS: {edges:,} edges are too many for Mt-KaHyPar."
    elif not has_mtkahypar():
        why = (
            "Destination blocks by METIS: Mt-KaHyPar, which makes fewer packets, is not "
            f"installed ({how_to_install('hypergraph')})."
        )
    else:
        why = "Destination blocks by Mt-KaHyPar: sources are sent in the fewest blocks."
        return "hypergraph", why
    return "destination", why


def _rates(graph: Graph, situation: Situation) -> Rates | None:
    link, passes = situation.link_rate, situation.recirculation_rate
    few = len(graph.indices) <= _MOST_TRIED_EDGES
    if not (situation.within and few) or link is None or passes is None:
        return None
    return Rates(link, passes, _CONTRIBUTIONS_PER_PASS[situation.banks_apart])


def _send(situation: Situation) -> tuple[str, float, str]:
    link, passes = situation.link_rate, situation.recirculation_rate
    if link is None or passes is None:
        why = (
            "Workers send a minimum cover of sources and partial sums: the fewest packets, as "
            "no link and recirculation rates are given."
        )
        return COVER, 0.0, why
    # All links carry packets at once, while one switch makes all passes.
    weight = situation.workers * link / (passes * _CONTRIBUTIONS_PER_PASS[situation.banks_apart])
    weight = min(round(weight, 3), _MOST_WEIGHT)
    why = (
        f"Workers send a cover in which a contribution costs {weight:g} packets: the links "
        f"carry {situation.workers * link:,.0f} packets per second and the switch makes "
        f"{passes:,.0f} passes."
    )
    return COVER, weight, why
