# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Strategies chosen together."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graph import Graph

# A slot is 32 lanes of four bytes; one fragment at a time shares the slots.
SLOT_BYTES = 128


@dataclass(frozen=True)
class Situation:
    """What a choice depends on.

    Attributes:
        workers: their number.
        slots: the aggregators of the switch.
        link_rate: packets per second on each worker's link; None: not known.
        recirculation_rate: passes per second that the switch can make; None: not known.
    """

    workers: int
    slots: int
    link_rate: float | None = None
    recirculation_rate: float | None = None


@dataclass(frozen=True)
class Choice:
    """A strategy of each kind.

    Attributes:
        partition: a key of PARTITION_STRATEGIES.
        blocks: a key of BLOCK_STRATEGIES.
        order: a key of ORDER_STRATEGIES.
        because: a sentence for each part of the choice.
    """

    partition: str
    blocks: str
    order: str
    because: tuple[str, ...]


class Preset(Protocol):
    """Chooses the strategies for a graph."""

    def __call__(self, graph: Graph, situation: Situation) -> Choice:
        """See the class."""


def paper(graph: Graph, situation: Situation) -> Choice:
    """The paper's own: METIS, MLGP, GAMR, and every source multicast."""
    return Choice("metis", "mlgp", "gamr", ("This is the paper's method, sections 3.2 and 3.3.",))


def best(graph: Graph, situation: Situation) -> Choice:
    """The best there is, which is the paper's so far."""
    return Choice("metis", "mlgp", "gamr", ("No strategy here beats the paper's yet.",))


PRESETS: Mapping[str, Preset] = {"paper": paper, "best": best}


def choose(name: str, graph: Graph, situation: Situation) -> Choice:
    """The choice of the preset of that name, or a PlannerError that lists the known ones."""
    if name not in PRESETS:
        raise PlannerError(f"no preset {name!r}; known: {', '.join(sorted(PRESETS))}")
    return PRESETS[name](graph, situation)


def slots_of_memory(memory: int) -> int:
    """The slots that so many bytes of switch memory hold.

    The width of the features does not matter: one fragment at a time shares the slots.
    """
    slots = memory // SLOT_BYTES
    if slots < 1:
        raise PlannerError(f"{memory} bytes hold no slot of {SLOT_BYTES} bytes")
    return slots
