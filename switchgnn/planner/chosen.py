# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Plans with the strategies of a preset, or with others by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.build import GIVEN, Left, Progress, build_plan
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition.simple import load_assignment
from switchgnn.planner.plan.manifest import Manifest
from switchgnn.planner.plan.plan import Plan
from switchgnn.planner.presets import (
    COVER,
    PAPER,
    Choice,
    Situation,
    blocks_for,
    choose,
    find_preset,
)
from switchgnn.planner.strategies import (
    BLOCK_NAMES,
    ORDER_STRATEGIES,
    PARTITION_STRATEGIES,
    SEND_STRATEGIES,
    find_strategy,
)

# What can be asked for by name, by the part of the choice.
KNOWN: Mapping[str, Mapping[str, object]] = {
    "partition": PARTITION_STRATEGIES,
    "blocks": BLOCK_NAMES,
    "send": SEND_STRATEGIES,
    "order": ORDER_STRATEGIES,
}
# What reports say of the strategies of a plan.
STRATEGY_NAMES = ("partition", "block_strategy", "send", "weight", "order")


@dataclass(frozen=True)
class Asked:
    """A preset, and replacements for its choices; None keeps the choice of the preset."""

    preset: str = PAPER
    partition: str | None = None
    blocks: str | None = None  # a key of BLOCK_NAMES; None: those of `best` follow `send`
    send: str | None = None
    order: str | None = None
    assignment: Path | None = None  # a file for load_assignment that replaces any partition
    # numbers of the widest frame, one of LANES; None: with the least predicted time
    lanes: int | None = None

    def checked(self) -> "Asked":
        """Return the same after checking all names."""
        find_preset(self.preset)
        for part, name in self.named().items():
            find_strategy(part.removesuffix("s"), name, KNOWN[part])
        if self.assignment is not None and self.partition is not None:
            raise PlannerError(
                f"the assignment {self.assignment} leaves no choice to the partition "
                f"{self.partition}; give one of them"
            )
        return self

    def load_assignment(self) -> NDArray[np.int64] | None:
        """Return the assignment in the file, or None without one."""
        return None if self.assignment is None else load_assignment(self.assignment)

    def named(self) -> dict[str, str]:
        """Return the replacements of the preset's strategies."""
        names = {part: getattr(self, part) for part in KNOWN}
        return {part: name for part, name in names.items() if name is not None}


def choose_asked(asked: Asked, graph: Graph, situation: Situation) -> Choice:
    """Return the preset's choice with the replacements."""
    asked.checked()
    choice = choose(asked.preset, graph, situation)
    named: dict[str, Any] = {**asked.named()}
    because = {part: f"{part.capitalize()} {name}: as asked." for part, name in named.items()}
    if asked.assignment is not None:
        named["partition"] = GIVEN
        because["partition"] = f"Workers as {asked.assignment} assigns them."
    if asked.send is not None:
        named.setdefault("blocks", blocks_for(choice.blocks, asked.send))
    weight = choice.weight if named.get("send", choice.send) == COVER else 0.0
    rates = choice.rates if named.get("send", choice.send) == COVER else None
    return replace(
        choice, **named, weight=weight, rates=rates, because={**choice.because, **because}
    )


def build_chosen(
    graph: Graph,
    choice: Choice,
    situation: Situation,
    *,
    program: str,
    seed: int,
    directions: str = "forward",
    assignment: NDArray[np.integer] | None = None,
    fits: Callable[[Plan], bool] | None = None,
    left: Left | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Build a plan with a choice; the other arguments are those of `build_plan`."""
    return build_plan(
        graph,
        workers=situation.workers,
        slots=situation.slots,
        program=program,
        seed=seed,
        partition=choice.partition,
        blocks=choice.blocks,
        send=choice.send,
        weight=choice.weight,
        order=choice.order,
        directions=directions,
        assignment=assignment,
        banks=situation.banks,
        lanes=situation.lanes,
        rates=choice.rates,
        fits=fits,
        left=left,
        progress=progress,
    )


def strategy_names(manifest: Manifest) -> dict[str, Any]:
    """Return the strategies of a plan, by the reports' names for them."""
    strategy = manifest.strategy
    made = (manifest.partition.method, strategy.blocks, strategy.send, strategy.weight)
    return dict(zip(STRATEGY_NAMES, (*made, strategy.order), strict=True))
