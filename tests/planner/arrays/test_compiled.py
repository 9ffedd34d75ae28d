# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import numba
import numpy as np
import pytest

from switchgnn.planner import arrays as compiled
from switchgnn.planner import build_plan, load_graph
from switchgnn.planner.arrays import Compiled
from switchgnn.planner.costs.bounds import simulate_pool
from switchgnn.planner.costs.forecast import exchange_seconds
from switchgnn.planner.costs.seconds import Network
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.boundary import boundary_edges
from tests.planner.helpers import random_graph
from tests.support.markers import some_of


@Compiled
def add_up(numbers):
    """What it says."""
    total = 0
    for number in numbers:
        total += number
    return total


def test_small_arrays_are_left_to_python(monkeypatch):
    monkeypatch.setattr(compiled, "_FEW", 100)
    assert add_up(np.arange(100)) == 4950
    assert "machine" not in vars(add_up)
    assert add_up(np.arange(101)) == 5050
    assert "machine" in vars(add_up)
    assert add_up.__doc__ == "What it says."


def test_a_cache_that_cannot_be_written_does_not_matter(monkeypatch):
    def njit(function=None, **options):
        if options:
            raise RuntimeError("no locator available")
        return function

    monkeypatch.setattr(numba, "njit", njit)
    assert Compiled(add_up.interpreted).machine(np.arange(4)) == 6


@pytest.mark.parametrize("mode", [0o700, 0o777])
def test_a_cache_that_others_may_write_to_is_not_read(monkeypatch, tmp_path, mode):
    """Numba keeps pickles and machine code there, and would run what it finds."""
    monkeypatch.setattr(numba.core.config, "CACHE_DIR", str(tmp_path))
    own = Compiled(add_up.interpreted)
    folder = Path(own.machine.stats.cache_path)
    assert folder.is_relative_to(tmp_path)
    assert folder.stat().st_mode & 0o022 == 0
    folder.chmod(mode)
    again = Compiled(add_up.interpreted).machine
    assert bool(again.stats.cache_path) == (mode == 0o700)
    assert again(np.arange(4)) == 6


STRATEGIES = [
    {"blocks": "mlgp", "order": "gamr"},
    {"blocks": "destination", "order": "bfs"},
    {"blocks": "destination-cover", "send": "cover", "order": "peel"},
    {"blocks": "destination-cover", "send": "cover", "weight": 0.2, "order": "random"},
]


@pytest.mark.whole
@pytest.mark.parametrize(
    ("strategies", "directed"),
    some_of(lambda which, directed: which % 2 == directed, STRATEGIES, [False, True]),
)
def test_plans_are_the_same_compiled_and_interpreted(monkeypatch, strategies, directed):
    graph = random_graph(150, 900, 3, directed=directed)

    def plan():
        options = {"workers": 5, "slots": 24, "program": "ab", "directions": "both"}
        return build_plan(graph, **options, **strategies).manifest.digest

    monkeypatch.setattr(compiled, "_FEW", 1 << 60)
    interpreted = plan()
    monkeypatch.setattr(compiled, "_FEW", -1)
    assert plan() == interpreted


def test_the_strawman_is_the_same_compiled_and_interpreted(monkeypatch):
    graph = load_graph("digits")
    boundary = boundary_edges(graph, np.arange(graph.vertices, dtype=np.int32) % 4)

    def play():
        pool = simulate_pool(boundary, 200, 4, 1)
        return pool.sums, pool.overflowed, pool.packets.down.tolist()

    monkeypatch.setattr(compiled, "_FEW", 1 << 60)
    interpreted = play()
    monkeypatch.setattr(compiled, "_FEW", -1)
    assert play() == interpreted


def test_predictions_of_mixed_exchanges_are_the_same_compiled_and_interpreted(monkeypatch):
    graph = random_graph(150, 900, 3, directed=True)
    left = np.arange(graph.vertices) % 2 == 0
    plan = build_plan(graph, workers=5, slots=24, program="ab", left=left)
    rows = np.random.default_rng(5).integers(0, 200, (5, 5))
    np.fill_diagonal(rows, 0)

    def predict():
        return [
            exchange_seconds(plan, Direction.FORWARD, 64, network, rows)
            for network in (Network(), Network(passes_per_second=1e7, switch_frame=1e-7))
        ]

    monkeypatch.setattr(compiled, "_FEW", 1 << 60)
    interpreted = predict()
    monkeypatch.setattr(compiled, "_FEW", -1)
    assert predict() == interpreted
