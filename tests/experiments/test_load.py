# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Description files: those that are there are right, and a wrong one is told in a sentence."""

import json

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
from switchgnn.lab.experiments.table import select
from switchgnn.profiles import find_profile

# Figures whose graphs are not of the paper's sizes at any scale.
OWN_SIZES = ("example", "never-slower")

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


def test_all_figures_are_right_at_both_scales():
    figures = load_figures(known_figures())
    every = "figure2 figure15 figure16 figure17 figure18 figure19 loop switches example"
    every += " never-slower"
    assert set(every.split()) == {figure.name for figure in figures}
    for figure in figures:
        for scale in ("small", "full"):
            cells = cells_of(figure, scale)
            for part in (*figure.panels, *figure.claims):
                assert select(cells, part.where), (figure.name, scale, part)


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
        (["series", 0, "system"], "g4", "no system 'g4'"),
        (["panels", 0, "draw"], "pie", "no way to draw 'pie'"),
        (["panels", 0, "y"], "smell", "no measure 'smell'"),
        (["panels", 0, "x"], "y", "no axis 'y'"),
        (["panels", 0, "series"], ["nobody"], "no series 'nobody'"),
        (["panels", 0, "draw"], "ratios", "no series ''; known: hosts, plan, no limit"),
        (["claims", 0, "after"], "the fastest other", "no series 'the fastest other'"),
        (["claims", 0, "before"], "nobody", "no series 'nobody'"),
        (["claims", 0, "where"], {"weather": "fine"}, "no choice 'weather'"),
        (["scales", "small", "workers"], 4, "scales[...].workers: expected array, got int"),
        (["scales", "small", "workers"], ["4"], "scales[...].workers[0]: expected int, got str"),
        (["series", 0, "switch"], "tofino3", "no switch 'tofino3'; known: bmv2"),
        (["scales", "small", "seeds"], True, "scales[...].seeds: expected int, got bool"),
        (["series", 0], "bns-gcn", "series[0]: expected object, got str"),
        (["scales"], {}, "no scale 'small'"),
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
    with pytest.raises(ExperimentError, match="no scale 'huge'; known: small"):
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
