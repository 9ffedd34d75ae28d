# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
from types import SimpleNamespace

import numpy as np
import pytest

from switchgnn.planner import presets
from switchgnn.planner.plan.banks import BANKS_OF_SWITCHES
from switchgnn.planner.presets import PRESETS, Situation, choose, slots_of_memory
from switchgnn.planner.strategies import BLOCK_STRATEGIES, ORDER_STRATEGIES, PARTITION_STRATEGIES
from tests.planner.helpers import random_graph, reports

GRAPH = random_graph(200, 800, 0)
FEW = Situation(workers=4, slots=50)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("slots", [50, 200])
@pytest.mark.parametrize("installed", [True, False])
@pytest.mark.parametrize("edges", [1, 1000, 10**9])
def test_every_choice_can_be_made(monkeypatch, name, slots, installed, edges):
    monkeypatch.setattr(presets, "has_mtkahypar", lambda: installed)
    monkeypatch.setattr(presets, "_MOST_HYPERGRAPH_EDGES", edges)
    choice = choose(name, GRAPH, Situation(4, slots, 1e6, 1e6))
    assert choice.partition in PARTITION_STRATEGIES
    assert choice.blocks in BLOCK_STRATEGIES
    assert choice.order in ORDER_STRATEGIES
    assert choice.send in ("multicast", "cover")
    assert choice.because
    assert all(reason.endswith(".") for reason in choice.because.values())
    if choice.blocks.startswith("hypergraph"):
        assert installed


def test_the_paper_is_the_paper():
    choice = choose("paper", GRAPH, FEW)
    assert (choice.partition, choice.blocks, choice.send, choice.order) == (
        "metis",
        "mlgp",
        "multicast",
        "gamr",
    )


def test_without_mtkahypar_it_says_so(monkeypatch):
    monkeypatch.setattr(presets, "has_mtkahypar", lambda: False)
    choice = choose("best", GRAPH, FEW)
    assert choice.blocks == "destination-cover"
    assert any("pip install mtkahypar" in reason for reason in choice.because.values())


def test_scarce_recirculation_raises_the_weight():
    def weight(passes):
        return choose("best", GRAPH, Situation(4, 50, 1e6, passes)).weight

    assert choose("best", GRAPH, FEW).weight == 0
    assert weight(1e9) < weight(1e7) < weight(1e6) <= 1
    assert weight(1.0) == 1


def test_contributions_weigh_the_same_at_any_size():
    """Of a graph only its size counts; this one has a hundred million edges and no memory."""
    large = SimpleNamespace(vertices=1_000_000, indices=np.broadcast_to(np.int32(0), 100_000_000))
    situation = Situation(4, 50, 1e6, 1e7)
    assert choose("best", large, situation).weight == choose("best", GRAPH, situation).weight > 0


def test_a_pass_that_adds_less_weighs_less():
    """With one bank a contribution is a pass: its weight is links over passes."""
    weights = [
        choose("best", GRAPH, Situation(4, 50, 1e5, 1e6, banks=banks)).weight
        for banks in BANKS_OF_SWITCHES
    ]
    assert weights == sorted(weights, reverse=True)
    assert weights[0] == pytest.approx(4 * 1e5 / 1e6)
    assert all(
        weights[0] / weight <= banks
        for weight, banks in zip(weights, BANKS_OF_SWITCHES, strict=True)
    )


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan")])
def test_impossible_rates(rate):
    with reports("above 0"):
        choose("best", GRAPH, Situation(4, 50, rate, 1e6))


def test_an_unknown_preset():
    with reports("best, paper"):
        choose("fastest", GRAPH, FEW)


def test_slots_of_memory():
    assert slots_of_memory(10_000_000) == 78_125
    assert slots_of_memory(10_000_000, slot_features=602) == 10_000_000 // (602 * 4)
    with reports("no slot"):
        slots_of_memory(127)
