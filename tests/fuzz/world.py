# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a frame generator knows of the plan it attacks."""

import os
from dataclasses import dataclass

from switchgnn.base.network import Network, star_network
from switchgnn.lab.virtual.byzantine import Facts, facts_of
from switchgnn.planner.build import build_plan
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.graphs.load import load_graph
from switchgnn.planner.plan.plan import Plan

WORKERS = 3
WIDTH = 33
FRAGMENTS = 2
SCALE = 10 if os.environ.get("SWITCHGNN_LEVEL") == "all" else 1


@dataclass(frozen=True)
class World:
    """A plan with partial sums, its graph, and a network with one port more than it has workers.

    Attributes:
        facts: what its frames are made of.
    """

    graph: Graph
    plan: Plan
    network: Network
    facts: Facts

    @property
    def blocks(self) -> int:
        return self.plan.manifest.blocks

    def places(self) -> list[tuple[int, int]]:
        """(block, fragment word) of every barrier of a round, in order."""
        blocks = range(1, self.blocks + 1)
        return [(0, 0), *((b, f) for b in blocks for f in self.facts.words)]


def make_world(program_digest: str, *, slots: int = 16) -> World:
    graph = load_graph("karate")
    plan = build_plan(graph, workers=WORKERS, slots=slots, program=program_digest, send="cover")
    return world_of(graph, plan, star_network(WORKERS + 1))


def world_of(graph: Graph, plan: Plan, network: Network) -> World:
    return World(graph, plan, network, facts_of(plan, WIDTH))
