# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a frame generator knows of the plan it attacks."""

import os
from dataclasses import dataclass

from switchgnn.controller.network import Network, star_network
from switchgnn.host.innetwork.exchange import plan_id
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
        owner: worker of each source, vertex or partial sum.
        counts: the Count of every (block, source) that is sent.
        sums: (block, vertex) of every sum, with its worker and its count.
    """

    graph: Graph
    plan: Plan
    plan_id: int
    network: Network
    owner: dict[int, int]
    counts: dict[tuple[int, int], int]
    sums: dict[tuple[int, int], tuple[int, int]]

    @property
    def blocks(self) -> int:
        return self.plan.manifest.blocks

    def places(self) -> list[tuple[int, int]]:
        """Block and fragment of every barrier of a round, in order."""
        blocks = range(1, self.blocks + 1)
        return [(0, 0), *((b, f) for b in blocks for f in range(FRAGMENTS))]


def make_world(program_digest: str, *, slots: int = 16) -> World:
    graph = load_graph("karate")
    plan = build_plan(graph, workers=WORKERS, slots=slots, program=program_digest, send="cover")
    return world_of(graph, plan, star_network(WORKERS + 1))


def world_of(graph: Graph, plan: Plan, network: Network) -> World:
    part = plan.switch
    return World(
        graph=graph,
        plan=plan,
        plan_id=plan_id(plan.manifest),
        network=network,
        owner=dict(zip(part.source_vertex.tolist(), part.source_worker.tolist(), strict=True)),
        counts={
            (block, source): count
            for block, source, count in zip(
                part.entry_block.tolist(),
                part.entry_source.tolist(),
                part.entry_count.tolist(),
                strict=True,
            )
        },
        sums={
            (block, vertex): (worker, count)
            for block, vertex, worker, count in zip(
                part.result_block.tolist(),
                part.result_vertex.tolist(),
                part.result_worker.tolist(),
                part.result_expected.tolist(),
                strict=True,
            )
        },
    )
