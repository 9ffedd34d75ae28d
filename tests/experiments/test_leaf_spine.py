# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Figures over leaves and spines: from the description to the process that simulates a point."""

import json
import subprocess

import pytest

from switchgnn.lab.experiments import ExperimentError, cells_of, load_figures
from switchgnn.lab.experiments.measures import value_of
from switchgnn.lab.experiments.runner import point_command
from switchgnn.lab.experiments.table import csv_text
from switchgnn.lab.simulator.compile import what_is_missing

from .fake_points import point, result

MISSING = what_is_missing()


def described(folder, leaf_spine):
    told = {
        "title": "a figure",
        "paper": "none",
        "window": 64,
        "series": [{"label": "plan", "system": "paper"}],
        "panels": [{"title": "p", "draw": "lines", "x": "workers", "y": "crossings"}],
        "scales": {
            "small": {
                "graphs": {"karate": {"graph": "karate"}},
                "workers": [8, 4],
                "memory": ["2kB"],
                "leaf_spine": leaf_spine,
            }
        },
    }
    (folder / "mine.json").write_text(json.dumps(told))
    return load_figures(["mine"], folder)[0]


def test_points_have_leaves_spines_and_window(tmp_path):
    cells = cells_of(described(tmp_path, {"leaves": 4, "spines": 2}), "small")
    assert {(each.point.leaves, each.point.spines) for each in cells} == {(4, 2)}
    assert {each.point.window for each in cells} == {64}


def test_points_without_are_stars():
    (star,) = load_figures(["figure15"])
    assert {each.point.leaves for each in cells_of(star, "full")} == {0}
    (figure,) = load_figures(["figure16"])
    full = cells_of(figure, "full")
    assert {(each.point.leaves, each.point.spines) for each in full} == {(8, 8)}
    # The same plans as a star's, but for the best one, whose blocks are for leaves and spines.
    both = full, cells_of(star, "full")
    for is_best in (False, True):
        plans = [
            {each.point.plan_name for each in cells if (each.point.system == "best") is is_best}
            for cells in both
        ]
        assert plans[0]
        assert plans[0].isdisjoint(plans[1]) if is_best else plans[0] == plans[1]


@pytest.mark.parametrize(
    ("leaf_spine", "told"),
    [
        ({"leaves": 5, "spines": 1}, "5 leaves and 4 workers"),
        ({"leaves": 2, "spines": 0}, "needs a leaf and a spine"),
        ({"leaves": 2, "spins": 2}, "leaf_spine: unknown field spins; known: "),
        ({"leaves": "2"}, "leaf_spine.leaves: expected int, got str"),
        (4, "leaf_spine: expected object | null, got int"),
    ],
)
def test_what_cannot_be_is_told(tmp_path, leaf_spine, told):
    with pytest.raises(ExperimentError) as caught:
        described(tmp_path, leaf_spine)
    assert told in str(caught.value)
    assert "mine.json: scales" in str(caught.value)


def test_what_crosses_is_in_the_csv_only_with_leaves(tmp_path):
    cells = cells_of(described(tmp_path, {"leaves": 2, "spines": 2}), "small")
    leaf_spine = {"host_link_bytes": 1, "leaf_spine_bytes": 2_000_000, "partial_sums": 3}
    with_leaf_spine = result(**leaf_spine)
    assert value_of("crossings", with_leaf_spine) == 2
    head = (
        csv_text(cells, {each.point: with_leaf_spine for each in cells}).splitlines()[0].split(",")
    )
    assert {*leaf_spine, "leaves", "spines"} <= set(head)
    star = {name: it for name, it in result().items() if name not in leaf_spine}
    head = csv_text(cells, {each.point: star for each in cells}).splitlines()[0].split(",")
    assert not set(leaf_spine) & set(head)


@pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
@pytest.mark.parametrize(
    ("system", "memory", "mtu"), [("paper", 2_000, None), ("bns-gcn", None, 9_000)]
)
def test_a_point_is_simulated_on_its_leaves(tmp_path, system, memory, mtu):
    one = point(system=system, leaves=2, spines=3, window=32, memory=memory, mtu=mtu)
    run = subprocess.run(
        point_command(one, tmp_path / "plan"), capture_output=True, text=True, check=True
    )
    told = json.loads(run.stdout)
    assert (told["leaves"], told["spines"], told["network"]["window"]) == (2, 3, 32)
    assert told["bytes"] == told["host_link_bytes"] + told["leaf_spine_bytes"]
    assert told["mtu"] == (mtu or 1_500)
