# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The preset `auto`: what it tries, and that the least predicted time is taken."""

from dataclasses import dataclass

import numpy as np
import pytest

from switchgnn.planner import Direction, Situation, boundary_edges, choose, load_graph
from switchgnn.planner import auto as module
from switchgnn.planner.auto import build_auto
from switchgnn.planner.costs.forecast import HOST, HOST_PARTIAL, MIXED, SWITCH

WORKERS, SLOTS = 4, 100
GRAPH = "random:600:4000:1"


@dataclass(frozen=True)
class Priced:
    """Seconds by a price list: each block, and each row between hosts."""

    block: float
    row: float
    directions: tuple = (Direction.FORWARD,)

    def of_plan(self, plan, left):
        blocks = sum(len(plan.manifest.direction(it).block_numbers) for it in self.directions)
        return self.block * blocks + self.of_hosts(left)

    def of_hosts(self, rows):
        return self.row * sum(int(each.sum()) for each in rows.values())


@pytest.fixture(scope="module")
def graph():
    return load_graph(GRAPH)


def built(graph, forecast, preset="auto", **options):
    situation = Situation(WORKERS, SLOTS)
    directions = "both" if len(forecast.directions) == 2 else "forward"
    choice = choose(preset, graph, situation)
    return build_auto(
        *(graph, choice, situation, forecast),
        **{"program": "0" * 64, "seed": 0, "directions": directions, **options},
    )


def served(plan, direction=Direction.FORWARD):
    """The destinations that the switch serves, by the tables."""
    record = plan.manifest.direction(direction)
    inside = np.isin(plan.switch.result_block, list(record.block_numbers))
    return set(plan.switch.result_vertex[inside].tolist())


def neighbours(graph, owner):
    """The other workers that contribute to each vertex, one edge at a time."""
    found = {}
    for v in range(graph.vertices):
        for u in graph.indices[graph.indptr[v] : graph.indptr[v + 1]]:
            if owner[u] != owner[v]:
                found.setdefault(v, set()).add(int(owner[u]))
    return found


def test_free_blocks_leave_nothing(graph):
    made = built(graph, Priced(block=0, row=1))
    assert made.chosen == SWITCH
    assert not made.plan.leaves_any
    assert min(made.seconds, key=made.seconds.get) == SWITCH


def test_dear_blocks_leave_everything(graph):
    made = built(graph, Priced(block=1e9, row=1))
    assert made.chosen == HOST_PARTIAL
    assert not served(made.plan)
    assert made.plan.manifest.partition.method == "metis"
    left = np.flatnonzero(made.plan.left(Direction.FORWARD)).tolist()
    assert set(left) == set(neighbours(graph, made.plan.assignment))


@pytest.mark.parametrize("directions", [(Direction.FORWARD,), tuple(Direction)])
def test_between_them_the_switch_serves_what_most_workers_contribute_to(graph, directions):
    block = 200
    made = built(graph, Priced(block, 1, directions))
    assert made.chosen == MIXED
    into = neighbours(graph, made.plan.assignment)
    for direction in directions:
        kept = served(made.plan, direction)
        left = set(np.flatnonzero(made.plan.left(direction)).tolist())
        assert not kept & left
        assert len(kept) % SLOTS == 0
        if direction is Direction.FORWARD:
            assert kept | left == set(into)
            assert min(len(into[v]) for v in kept) >= max(len(into[v]) for v in left)


def test_rows_of_hosts_are_counted_once_for_each_receiver(graph):
    made = built(graph, Priced(block=1e9, row=1))
    owner = made.plan.assignment
    copies = {
        (u, int(owner[v]))
        for v in range(graph.vertices)
        for u in graph.indices[graph.indptr[v] : graph.indptr[v + 1]].tolist()
        if owner[u] != owner[v]
    }
    assert made.seconds[HOST] == len(copies)
    assert made.seconds[HOST_PARTIAL] <= made.seconds[HOST]


def test_what_does_not_fit_the_switch_is_not_taken(graph):
    made = built(graph, Priced(block=0, row=1), fits=lambda plan: not served(plan))
    assert made.chosen == HOST_PARTIAL
    assert set(made.seconds) == {HOST_PARTIAL, HOST}


def test_other_presets_leave_all_or_nothing(graph):
    made = built(graph, Priced(block=600, row=1), preset="best")
    assert MIXED not in made.seconds


def test_the_fewest_workers_first_is_found(graph, monkeypatch):
    right = module._ranked
    monkeypatch.setattr(
        module, "_ranked", lambda *args: {each: it[::-1] for each, it in right(*args).items()}
    )
    with pytest.raises(AssertionError):
        test_between_them_the_switch_serves_what_most_workers_contribute_to(
            graph, (Direction.FORWARD,)
        )


def test_all_workers_alone_exchange_nothing():
    alone = load_graph("karate")
    situation = Situation(1, SLOTS)
    made = build_auto(
        *(alone, choose("auto", alone, situation), situation, Priced(1, 1)),
        program="0" * 64,
        seed=0,
    )
    assert made.seconds[made.chosen] == 0
    assert not len(boundary_edges(alone, made.plan.assignment))
