"""The points and cells of figures: of those that are there, and of one by hand."""

from dataclasses import replace

import pytest

from switchgnn.lab.experiments.figure import (
    UNLIMITED,
    ExperimentError,
    Figure,
    PlottedSeries,
    Scale,
    ScaledGraph,
    cells_of,
    select,
    with_graphs,
)
from switchgnn.lab.experiments.paper import find_figures
from switchgnn.lab.experiments.point import TrainingPoint
from switchgnn.lab.experiments.table import csv_text, value_of
from switchgnn.lab.simulator.request import LeafSpineOptions
from switchgnn.profiles import find_profile

from .fake_points import ALL, HEAT_MAP, result

SMALL = Scale(
    (2, 4), ("10MB", "1MB"), {"Reddit": ScaledGraph("reddit-like:0.01:{seed}", 0.01)}, seeds=2
)
FIGURE = Figure(
    "mine",
    "a figure",
    "none",
    series=(
        PlottedSeries("hosts", "bns-gcn"),
        PlottedSeries("plan", "paper"),
        PlottedSeries("no limit", "strawman", memory=UNLIMITED),
    ),
    panels=(),
    scales={"small": SMALL},
)


def points_of(figure, **changes):
    """The points at small scale with these changes of it, by series."""
    changed = replace(figure, scales={"small": replace(SMALL, **changes)})
    points = {}
    for cell in cells_of(changed, "small"):
        points.setdefault(cell.series, set()).add(cell.point)
    return points


def with_series(index, **changes):
    series = [*FIGURE.series]
    series[index] = replace(series[index], **changes)
    return replace(FIGURE, series=tuple(series))


@pytest.mark.parametrize("name", ALL)
def test_every_panel_and_row_has_cells_at_every_scale(name):
    (figure,) = find_figures([name])
    assert name in (figure.name, HEAT_MAP)
    assert {"small", "full"} <= figure.scales.keys()
    for scale in figure.scales:
        cells = cells_of(figure, scale)
        for where in (*(it.where for it in figure.panels), *(it.where for it in figure.claims)):
            assert select(cells, where), (scale, where)


def test_a_file_of_python_has_a_figure(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def figure():\n    return 5\n")
    assert find_figures([str(file)]) == [5]
    file.write_text("figures = []\n")
    with pytest.raises(ExperimentError, match=r"mine\.py must define a function figure\(\)"):
        find_figures([str(file)])
    with pytest.raises(ExperimentError, match=r"Cannot read none\.py: No such file"):
        find_figures(["none.py"])


def test_points_of_a_figure():
    points = points_of(FIGURE)
    assert len(cells_of(FIGURE, "small")) == 2 * 2 * 3 * 2
    # Memory and delay shrink with the graph, and a seed draws the graph as well.
    assert {point.memory for point in points["plan"]} == {100_000, 10_000}
    assert {point.delay for point in points["plan"]} == {0.02}
    assert {(point.graph, point.seed) for point in points["plan"]} == {
        ("reddit-like:0.01:0", 0),
        ("reddit-like:0.01:1", 1),
    }
    # Hosts alone do not ask for the switch's memory, and without limit there is none.
    for label in ("hosts", "no limit"):
        assert len(points[label]) == 2 * 2
        assert {point.memory for point in points[label]} == {None}
    assert {cell.point.seed for cell in cells_of(FIGURE, "small", 3)} == {0, 1, 2}


@pytest.mark.parametrize("mtu", [1_500, "fragment"])
def test_frames_of_hosts_alone_are_of_an_mtu_and_others_have_none(mtu):
    points = points_of(replace(FIGURE, mtu=mtu))
    found = {label: {point.mtu for point in each} for label, each in points.items()}
    assert found == {"hosts": {mtu}, "plan": {None}, "no limit": {None}}


def test_tables_shrink_with_the_graph_and_the_loop_is_the_switchs():
    figure, within = with_series(1, switch="tofino2"), find_profile("tofino2")
    points = points_of(figure)
    for point in points["plan"]:
        assert point.switch == "tofino2"
        assert point.table_memory == round(within.table_bytes * 0.01)
        assert point.recirculation_rate == within.passes_per_second
    for point in points["no limit"]:
        assert (point.switch, point.table_memory) == (UNLIMITED, None)
        assert point.recirculation_rate is None
    rates = {it.recirculation_rate for it in points_of(figure, recirculation_rates=(5e8,))["plan"]}
    assert rates == {5e8}


def test_hosts_alone_take_nothing_of_a_switch_and_bins_shrink_with_the_graph():
    points = points_of(with_series(0, switch="tofino2"), recirculation_rates=(5e8,))["hosts"]
    assert {(each.switch, each.recirculation_rate) for each in points} == {(UNLIMITED, None)}
    points = points_of(with_series(0, system="g3"))
    assert {(point.bin_size, point.memory) for point in points["hosts"]} == {(50, None)}
    assert {point.bin_size for point in points["plan"]} == {None}


def test_background_and_buffer_are_of_the_network_and_not_of_the_plan():
    points = points_of(FIGURE, seeds=1, background=(0, 0.5), buffer="500kB", memory=("1MB",))
    assert {point.background for point in points["plan"]} == {0.0, 0.5}
    assert {point.buffer for point in points["plan"]} == {500_000}
    assert len({point.plan for point in points["plan"]}) == 2  # 2 and 4 workers
    assert len({point.name for point in points["plan"]}) == 2 * 2


def test_the_users_graphs_do_not_shrink():
    (mine,) = with_graphs([FIGURE], ["Reddit=my=graph.npz"])
    points = {cell.point for cell in cells_of(mine, "small")}
    assert {point.graph for point in points} == {"my=graph.npz"}
    assert {point.memory for point in points} == {None, 10_000_000, 1_000_000}
    assert {point.delay for point in points} == {2.0}


@pytest.mark.parametrize(
    ("words", "error"),
    [
        *((words, "is not NAME=GRAPH") for words in (["Reddit"], ["=a"], ["Reddit="])),
        (["Reddit=b", "Reddit=c"], "is not NAME=GRAPH"),
        (["Cora=cora.npz"], "No graph 'Cora' in these figures; known: Reddit"),
    ],
)
def test_words_that_name_no_graph_are_refused(words, error):
    with pytest.raises(ExperimentError, match=error):
        with_graphs([FIGURE], words)


def test_points_have_leaves_spines_and_window():
    figure = replace(FIGURE, window=64)
    points = points_of(figure, leaf_spine=LeafSpineOptions(4, 2, "leaf"))["plan"]
    found = {(it.leaves, it.spines, it.completion, it.window) for it in points}
    assert found == {(4, 2, "leaf", 64)}
    assert {point.leaves for point in points_of(figure)["plan"]} == {0}


def test_plans_are_others_on_leaves_but_for_the_strawmans():
    both = [cells_of(figure, "full") for figure in find_figures(["figure15", "figure16"])]
    for system in ("best", "paper", "strawman"):
        star, leaf_spine = (
            {each.point.plan for each in cells if each.point.system == system} for cells in both
        )
        assert star
        assert star == leaf_spine if system == "strawman" else star.isdisjoint(leaf_spine)


def test_trainings_have_one_number_of_slots_for_all_transports_and_nothing_of_a_network():
    training = replace(with_series(0, system="host"), point=TrainingPoint, series=FIGURE.series[:2])
    points = {it for each in points_of(training, seeds=1, layers=(2, 3)).values() for it in each}
    assert len(points) == 2 * 2 * 2 * 2
    assert {point.memory for point in points} == {100_000, 10_000}
    assert {(point.layers, point.epochs) for point in points} == {(2, 10), (3, 10)}
    assert not hasattr(points.pop(), "bandwidth")


def test_what_crosses_is_in_the_csv_only_with_leaves():
    cells = cells_of(FIGURE, "small")
    leaf_spine = {"host_link_bytes": 1, "leaf_spine_bytes": 2_000_000, "partial_sums": 3}
    star = {name: it for name, it in result().items() if name not in leaf_spine}
    both = {**star, **leaf_spine}
    assert value_of("crossings", both) == 2
    with_leaves, without = (
        set(csv_text(cells, {each.point: told for each in cells}).splitlines()[0].split(","))
        for told in (both, star)
    )
    assert {*leaf_spine, "leaves", "spines"} <= with_leaves
    assert not set(leaf_spine) & without
