"""CSV, pictures and table say what the result files say."""

import csv
import json

import pytest

from switchgnn.lab.experiments.draw import OVER_TIME, draw_figure, write_figures
from switchgnn.lab.experiments.figure import cells_of
from switchgnn.lab.experiments.paper import find_figures
from switchgnn.lab.experiments.runner import Store, run_points
from switchgnn.lab.experiments.table import RESULT_COLUMNS, rows_of, value_of
from tests.experiments.fake_points import ALL, HEAT_MAP, VERSIONS, FakeProgram, result
from tests.support.markers import some_of

FIGURE = find_figures(["figure15"])[0]
CELLS = cells_of(FIGURE, "small")
POINTS = list(dict.fromkeys(cell.point for cell in CELLS))
RESULTS = {
    point: result(
        communication_seconds=number * 1e-3,
        compute_seconds=1e-3,
        epoch_seconds=(number + 1) * 1e-3,
        bytes=1_000 * number,
    )
    for number, point in enumerate(POINTS, 1)
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One point has failed, and is missing."""
    folder = tmp_path_factory.mktemp("figures")
    store = Store(folder, VERSIONS)
    program = FakeProgram(folder, RESULTS, {POINTS[0]: "bad luck."})
    with store.opened():
        run_points(POINTS, store, 2, lambda _: None, program.words)
    found = {point: store.find(point) for point in POINTS}
    write_figures(
        [(FIGURE, CELLS)], {point: it for point, it in found.items() if it}, "small", folder
    )
    return folder


def test_the_csv_is_the_result_files(folder):
    with (folder / "figure15.csv").open() as file:
        rows = list(csv.DictReader(file))
    shown = [cell for cell in CELLS if cell.point != POINTS[0]]
    assert len(rows) == len(shown) == len(CELLS) - 1
    for cell, row in zip(shown, rows, strict=True):
        kept = json.loads((folder / "points" / f"{cell.point.name}.json").read_text())
        assert (row["series"], row["figure_graph"]) == (cell.series, cell.graph)
        assert int(row["workers"]) == kept["parameters"]["workers"]
        assert int(row["seed"]) == kept["parameters"]["seed"]
        for name in RESULT_COLUMNS:
            assert float(row[name]) == kept["result"][name]


DRAWN = ("figure15", "figure19", HEAT_MAP)


@pytest.mark.parametrize("name", some_of(lambda n: ALL[n] in DRAWN, ALL))
def test_every_figure_is_drawn_with_its_spread(tmp_path, name):
    figure = find_figures([name])[0]
    cells = cells_of(figure, "full")
    results = {cell.point: result(epoch_seconds=1.0 + cell.point.seed) for cell in cells}
    rows = write_figures([(figure, cells)], results, "full", tmp_path)
    assert (tmp_path / f"{figure.name}.png").stat().st_size > 10_000
    assert "no result" not in {row[3] for row in rows}


@pytest.mark.parametrize("compute", [0.5, 1.0, 2.0, 9.0])
def test_bins_hide_a_part_of_the_computing_that_is_there(compute):
    """Four bins, 6 ms of communication and 5 ms of computing: three quarters of the less."""
    saved = {0.5: 2.5, 1.0: 5, 2.0: 6, 9.0: 6}[compute] * 0.75
    parts = {"communication_seconds": 6e-3, "compute_seconds": 5e-3, "bins": 4}
    one = result(**parts, epoch_seconds=(11 - 5 * 0.75) * 1e-3)
    assert value_of("epoch", one, compute) == pytest.approx(6 + 5 * compute - saved)


def epochs(numbers):
    """Results in which the series have these epochs, half of it computing."""
    return {
        cell.point: result(
            epoch_seconds=numbers[cell.series] * (1 + cell.workers / 100),
            compute_seconds=1.0 if cell.series == "BNS-GCN" else 0.0,
        )
        for cell in CELLS
    }


def test_the_table_by_hand():
    numbers = {series.label: 3.0 for series in FIGURE.series}
    numbers |= {"BNS-GCN": 10.0, "SwitchGNN": 4.0}
    rows = rows_of(FIGURE, CELLS, epochs(numbers))
    first, both_small = rows[0], next(row for row in rows if "10 MB" in row[1])
    # Whose memory is their own is not said to have the axis's.
    assert "100MB" in first[6] and "MB" not in both_small[6]
    assert first[2:4] == [FIGURE.claims[0].paper, "60%"]
    # With 8 workers: 1 - 4 * 1.08 / (10.8 - 0.5), and 1 - 4.32 / 11.8.
    at = first[6]
    workers = next(number for number in (8, 16, 32) if f", {number} workers" in at)
    whole = 10 * (1 + workers / 100)
    assert first[4] == f"{1 - 0.4 * whole / (whole - 0.5):.0%}"
    assert first[5] == f"{1 - 0.4 * whole / (whole + 1):.0%}"


def test_a_claim_without_another_series_is_the_number_itself():
    """The largest of all workers: METIS's copies as a number, other shares as per cents."""
    for name, shown in (("figure1", "4.00×"), ("figure9", "80%")):  # noqa: RUF001
        figure = find_figures([name])[0]
        cells = cells_of(figure, "small")
        results = {
            it.point: result(copies_per_vertex=it.workers / 8, connected_share=it.workers / 40)
            for it in cells
        }
        ((_, _, _, ours, _, _, at),) = rows_of(figure, cells, results)
        assert (ours, at) == (shown, "Reddit, 32 workers")


def test_utilization_repeats_the_exchange_of_each_layer():
    """Two links, 8 Gbit/s both ways: half used for 1 ms, then 1 ms of computing, three times."""
    series = {"seconds": [0, 0.5e-3, 1e-3], "link_bytes": [0, 1e6, 2e6], "slots": [5, 5, 5]}
    one = result(
        exchange_seconds=1e-3, epoch_seconds=6e-3, layers=2, series=series, workers=2, slots=10
    )
    one["network"] = {"bandwidth": 8_000.0}
    for name in ("links", "switch"):
        times, values = OVER_TIME[name][1](one)
        assert times == pytest.approx([0.25, 0.75, 1, 2, *(2.25, 2.75, 3, 4), *(4.25, 4.75, 5, 6)])
        assert values == pytest.approx([50, 50, 0, 0] * 3)


def test_the_table_keeps_backgrounds_apart():
    """Control costs nothing without a background, and a factor of four beside the heaviest."""
    figure = find_figures(["figure19"])[0]
    cells = cells_of(figure, "small")
    results = {
        cell.point: result(
            epoch_seconds=1 + (6 * cell.background if cell.series == "SwitchGNN" else 0)
        )
        for cell in cells
    }
    heaviest, none, *_ = rows_of(figure, cells, results)
    assert (heaviest[3], none[3]) == ("4.00×", "1.00×")  # noqa: RUF001
    assert heaviest[6] == "Reddit, 32 workers, 100MB, background 0.5"


GRID = find_figures([HEAT_MAP])[0]
GRID_CELLS = cells_of(GRID, "medium")


def communicating(milliseconds):
    """Results of the grid: what each system communicates for, given the workers and the memory."""
    return {
        cell.point: result(communication_seconds=1e-3 * milliseconds(cell))
        for cell in GRID_CELLS
        if milliseconds(cell)
    }


def by_hand(cell):
    """`auto` is a third slower than the strawman with 3 MB, and half as fast with 10 MB."""
    if cell.point.system == "auto":
        return {"3MB": 4, "10MB": 1}.get(cell.memory, 2)
    return {"strawman": 3 if cell.memory == "3MB" else 2}.get(cell.point.system, 5)


def test_the_fastest_other_is_another_one_at_each_point():
    rows = rows_of(GRID, GRID_CELLS, communicating(by_hand))
    assert [row[3] for row in rows] == ["1.33×"] * 3 + ["0.80×"] * 3  # noqa: RUF001
    assert "3MB" in rows[0][6]
    rows = rows_of(
        GRID,
        GRID_CELLS,
        communicating(lambda cell: by_hand(cell) * (cell.point.system != "strawman")),
    )
    assert {row[3] for row in rows} == {"0.80×"}  # noqa: RUF001


def test_a_heat_map_has_the_ratio_of_each_point():
    picture = draw_figure(GRID, GRID_CELLS, communicating(by_hand), "")
    expected = {"3MB": "1.33", "10MB": "0.50", "30MB": "1.00", "100MB": "1.00"}
    for panel, axes in zip(GRID.panels, picture.axes, strict=True):
        columns = [label.get_text() for label in axes.get_xticklabels()]
        rows = [label.get_text() for label in axes.get_yticklabels()]
        workers = [f"digits, {each} workers" for each in (8, 32, 128)]
        assert rows[:4] == [*workers, "digits:80, 8 workers"]
        assert columns == list(expected), panel
        assert {tuple(text.get_position()): text.get_text() for text in axes.texts} == {
            (x, y): expected[columns[x]] for x in range(len(columns)) for y in range(len(rows))
        }
        assert f"above 1 in {len(rows)} of {4 * len(rows)}" in axes.get_xlabel()


def test_the_results_have_a_row_for_each_cell_but_one_whose_tables_do_not_fit(request):
    kept = (request.config.rootpath / "docs/results/headline.csv").read_text()
    (figure,) = find_figures(["examples/figure/headline.py"])
    assert kept.count("\n") == len(cells_of(figure, "medium"))
