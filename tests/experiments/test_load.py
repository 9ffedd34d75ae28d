# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Description files: those that are there are right, and a wrong one is told in a sentence."""

import json
import operator
import re
from pathlib import Path

import pytest

from switchgnn.host.registry import HOST_PARTIAL
from switchgnn.lab.experiments import (
    ExperimentError,
    cells_of,
    load_figures,
    parse_graphs,
    with_graphs,
)
from switchgnn.lab.experiments.load import known_figures
from switchgnn.lab.experiments.measures import value_of
from switchgnn.lab.experiments.table import csv_text, select
from switchgnn.profiles import find_profile

from .fake_points import result

# Figures whose graphs are not of the paper's sizes at any scale.
OWN_SIZES = ("example", "never-slower")
ROOT = Path(__file__).parents[2]
RIGHT = {
    "about": "a comment",
    "title": "a figure",
    "paper": "none",
    "series": [
        {"label": "hosts", "system": "bns-gcn"},
        {"label": "plan", "system": "paper"},
        {"label": "no limit", "system": "strawman", "memory": "unlimited"},
    ],
    "panels": [{"title": "p", "draw": "bars", "x": "workers", "y": "epoch"}],
    "scales": {
        "small": {
            "graphs": {"Reddit": {"graph": "reddit-like:0.01:{seed}", "shrink": 0.01}},
            "workers": [2, 4],
            "memory": ["10MB", "1MB"],
            "seeds": 2,
        }
    },
    "claims": [
        {
            "says": "s",
            "paper": "1%",
            "measure": "traffic",
            "before": "hosts",
            "after": "plan",
            "where": {"workers": "most"},
            "why": "w",
        }
    ],
}


def write(folder, told):
    (folder / "mine.json").write_text(json.dumps(told))
    return load_figures(["mine"], folder)[0]


def changed(path, value):
    """RIGHT with another value; None as the value removes the key."""
    told = json.loads(json.dumps(RIGHT))
    inside = told
    for step in path[:-1]:
        inside = inside[step]
    if value is None:
        del inside[path[-1]]
    else:
        inside[path[-1]] = value
    return told


def test_all_figures_are_right_at_all_scales():
    figures = load_figures(known_figures())
    every = "figure2 figure15 figure16 figure17 figure18 figure19 loop switches example"
    every += " never-slower"
    assert set(every.split()) == {figure.name for figure in figures}
    for figure in figures:
        assert {"small", "full"} <= figure.scales.keys()
        for scale in figure.scales:
            cells = cells_of(figure, scale)
            for part in (*figure.panels, *figure.claims):
                assert select(cells, part.where), (figure.name, scale, part)


def test_small_takes_five_minutes_of_two_cores():
    """More points need another measurement; docs/evidence/figures.md has the time of each figure.

    Points of several figures belong to the first one.
    """
    lines = (ROOT / "docs/evidence/figures.md").read_text().splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("| points that no figure"))
    names = re.findall(r"`([\w-]+)`", lines[start - 2])
    numbers, seconds = (
        [int(each) for each in re.findall(r" (\d+) ", lines[start + n])] for n in (0, 1)
    )
    points, seen = {}, set()
    for figure in load_figures([]):
        own = {cell.point for cell in cells_of(figure, "small")} - seen
        points[figure.name] = len(own)
        seen |= own
    assert dict(zip(names, numbers, strict=True)) == points
    assert all(map(operator.gt, seconds, numbers))
    assert sum(seconds) <= 2 * 5 * 60


def test_the_papers_sizes_at_full_scale():
    for figure in load_figures([name for name in known_figures() if name not in OWN_SIZES]):
        cells = cells_of(figure, "full")
        assert {cell.point.seed for cell in cells} == set(range(5))
        assert max(cell.workers for cell in cells) == 128
        assert {cell.point.graph.split(":")[1] for cell in cells} == {"1"}


def test_the_grid_of_never_slower():
    (figure,) = load_figures(["never-slower"])
    systems = ["bns-gcn", "host-partial", "strawman", "paper", "auto"]
    assert [series.system for series in figure.series] == systems
    cells = cells_of(figure, "full")
    assert {cell.workers for cell in cells} == {8, 32, 128}
    for name, least in {"graph": 6, "memory": 4, "recirculation": 3}.items():
        assert len({getattr(cell, name) for cell in cells}) >= least
    # Every place has every system, on the same vertices of the same workers.
    places = {}
    for cell in cells:
        where = (cell.graph, cell.workers, cell.memory, cell.recirculation)
        places.setdefault(where, []).append(cell.point)
    assert len(places) == 6 * 3 * 4 * 3
    for points in places.values():
        assert [point.system for point in points] == systems
        assert len({point.partition_name for point in points}) == 1
    # The best plan is made for the rate of its loop.
    best = {cell.point for cell in cells if cell.point.system == "auto"}
    assert len({point.plan_name for point in best}) == len(best) == len(places)


def test_a_series_is_called_what_its_transport_is():
    for figure in load_figures(known_figures()):
        for series in figure.series:
            if series.system == HOST_PARTIAL.name:
                assert series.label == HOST_PARTIAL.label


def test_without_names_all_but_the_example():
    assert [figure.name for figure in load_figures([])] == [
        name for name in known_figures() if name != "example"
    ]


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (["colour"], "red", "unknown field colour; known: bandwidth"),
        (["series", 0, "colour"], "red", "series[0]: unknown field colour"),
        (["scales", "small", "colour"], "red", "scales.small: unknown field colour"),
        (["title"], None, "missing required field title"),
        (["claims", 0, "why"], None, "claims[0]: object missing required field why"),
        (["series", 0, "system"], "g4", "No system 'g4'"),
        (["panels", 0, "draw"], "pie", "No way to draw 'pie'"),
        (["panels", 0, "y"], "smell", "No measure 'smell'"),
        (["panels", 0, "x"], "y", "No axis 'y'"),
        (["panels", 0, "series"], ["nobody"], "No series 'nobody'"),
        (["panels", 0, "draw"], "ratios", "No series ''; known: hosts, plan, no limit"),
        (["claims", 0, "after"], "the fastest other", "No series 'the fastest other'"),
        (["claims", 0, "before"], "nobody", "No series 'nobody'"),
        (["claims", 0, "where"], {"weather": "fine"}, "No choice 'weather'"),
        (["scales", "small", "workers"], 4, "scales[...].workers: expected array, got int"),
        (["scales", "small", "workers"], ["4"], "scales[...].workers[0]: expected int, got str"),
        (["series", 0, "switch"], "tofino3", "No switch 'tofino3'; known: bmv2"),
        (["scales", "small", "seeds"], True, "scales[...].seeds: expected int, got bool"),
        (["series", 0], "bns-gcn", "series[0]: expected object, got str"),
        (["scales"], {}, "No scale 'small'"),
        (["delay"], "2", "delay: expected float, got str"),
        (["mtu"], 40, "from 50 to 9,202 bytes"),
        (["mtu"], "jumbo", "mtu: "),
        (["series", 0, "about"], "a comment", "series[0]: unknown field about"),
    ],
)
def test_a_wrong_description_is_told(tmp_path, path, value, words):
    with pytest.raises(ExperimentError) as caught:
        write(tmp_path, changed(path, value))
    assert words in str(caught.value)
    assert "mine.json" in str(caught.value)


def test_frames_of_hosts_alone_are_of_an_mtu_and_others_have_none(tmp_path):
    for told, expected in ((RIGHT, 1_500), ({**RIGHT, "mtu": "fragment"}, "fragment")):
        mtu = {cell.series: cell.point.mtu for cell in cells_of(write(tmp_path, told), "small")}
        assert mtu == {"hosts": expected, "plan": None, "no limit": None}


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff", b'{"delay": NaN}', b'{"delay": 1e999}', b"[" * 100_000]
)
def test_no_json_is_told(tmp_path, data):
    (tmp_path / "mine.json").write_bytes(data)
    with pytest.raises(ExperimentError, match=r"the description .*mine\.json: it is not"):
        load_figures(["mine"], tmp_path)


def test_unknown_names_are_told(tmp_path):
    with pytest.raises(ExperimentError, match="No figure 'figure99'; known: figure2"):
        load_figures(["figure99"])
    with pytest.raises(ExperimentError, match="No scale 'huge'; known: small"):
        cells_of(write(tmp_path, RIGHT), "huge")


def test_seeds_in_place_of_the_scales(tmp_path):
    figure = write(tmp_path, RIGHT)
    for seeds in (1, 3):
        cells = cells_of(figure, "small", seeds)
        assert {cell.point.seed for cell in cells} == set(range(seeds))
        assert len(cells) == 2 * 2 * 3 * seeds


def test_tables_shrink_with_the_graph_and_the_loop_is_the_switchs(tmp_path):
    told = changed(["series", 1, "switch"], "tofino2")
    told["series"][0]["switch"] = "tofino2"
    points = {cell.series: cell.point for cell in cells_of(write(tmp_path, told), "small")}
    within = find_profile("tofino2")
    assert points["plan"].switch == "tofino2"
    assert points["plan"].table_memory == round(within.table_bytes * 0.01)
    assert points["plan"].recirculation_rate == within.passes_per_second
    # Hosts alone take nothing of it, and nobody else is limited.
    for label in ("hosts", "no limit"):
        assert (points[label].switch, points[label].table_memory) == ("unlimited", None)
        assert points[label].recirculation_rate is None
    told["scales"]["small"]["recirculation_rates"] = [5e8]
    points = {cell.series: cell.point for cell in cells_of(write(tmp_path, told), "small")}
    assert points["plan"].recirculation_rate == 5e8


def test_bins_shrink_with_the_graph(tmp_path):
    told = changed(["series", 0, "system"], "g3")
    points = {cell.series: cell.point for cell in cells_of(write(tmp_path, told), "small")}
    assert (points["hosts"].bin_size, points["hosts"].memory) == (50, None)
    assert points["plan"].bin_size is None


def test_background_and_buffer_are_of_the_network_and_not_of_the_plan():
    cells = cells_of(load_figures(["figure19"])[0], "full")
    points = {cell.point for cell in cells if cell.workers == 64 and cell.point.seed == 0}
    assert {point.background for point in points} == {0.0, 0.1, 0.2, 0.3, 0.4, 0.5}
    assert {point.buffer for point in points} == {500_000}
    # With and without control, at all loads: one plan.
    assert len({point.plan_name for point in points if point.system == "paper"}) == 1
    assert len({point.name for point in points}) == len(points) == 3 * 6


def test_points_of_a_figure(tmp_path):
    cells = cells_of(write(tmp_path, RIGHT), "small")
    assert len(cells) == 2 * 2 * 3 * 2
    points = {cell.point for cell in cells if cell.series == "plan"}
    # Memory and delay shrink with the graph, and a seed draws the graph as well.
    assert {point.memory for point in points} == {100_000, 10_000}
    assert {point.delay for point in points} == {0.02}
    assert {(point.graph, point.seed) for point in points} == {
        ("reddit-like:0.01:0", 0),
        ("reddit-like:0.01:1", 1),
    }
    # Hosts alone do not ask for the switch's memory, and without limit there is none.
    for label in ("hosts", "no limit"):
        points = {cell.point for cell in cells if cell.series == label}
        assert len(points) == 2 * 2
        assert {point.memory for point in points} == {None}


def test_the_users_graphs_in_place_of_generated_ones(tmp_path):
    figure = write(tmp_path, RIGHT)
    (name,) = figure.scales["small"].graphs
    (mine,) = with_graphs([figure], parse_graphs([f"{name}=my=graph.npz"]))
    points = {cell.point for cell in cells_of(mine, "small")}
    assert {point.graph for point in points} == {"my=graph.npz"}
    # It has its own size: the switch's memory is what the description says.
    assert {point.memory for point in points} == {None, 10_000_000, 1_000_000}
    assert {point.delay for point in points} == {2.0}
    with pytest.raises(ExperimentError, match="No graph 'Cora' in these figures; known: "):
        with_graphs([figure], {"Cora": "cora.npz"})


@pytest.mark.parametrize("words", [["Reddit"], ["=a"], ["Reddit="], ["A=b", "A=c"]])
def test_graphs_without_names_are_told(words):
    with pytest.raises(ExperimentError, match="is not NAME=GRAPH"):
        parse_graphs(words)


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
