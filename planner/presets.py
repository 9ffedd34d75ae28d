# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Strategies that go together, under one name."""

from collections.abc import Mapping
from dataclasses import dataclass

from switchgnn.planner.errors import PlannerError


@dataclass(frozen=True)
class Preset:
    """What to give build_plan.

    Attributes:
        partition: a key of PARTITION_STRATEGIES.
        blocks: a key of BLOCK_STRATEGIES.
        order: a key of ORDER_STRATEGIES.
        why: one sentence.
    """

    partition: str
    blocks: str
    order: str
    why: str


_PAPER = Preset("metis", "mlgp", "gamr", "paper: METIS, MLGP and GAMR as they are published.")
_BEST = Preset("metis", "mlgp", "gamr", "best: no block strategy here beats the paper's yet.")

PRESETS: Mapping[str, Preset] = {"paper": _PAPER, "best": _BEST}


def find_preset(name: str) -> Preset:
    """The preset of that name, or a PlannerError that lists the known ones."""
    try:
        return PRESETS[name]
    except KeyError:
        known = ", ".join(sorted(PRESETS))
        raise PlannerError(f"no strategy {name!r}; known: {known}") from None
