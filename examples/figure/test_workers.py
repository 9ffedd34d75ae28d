"""The figure `workers` has the points that it should."""

import pytest

from switchgnn.lab.experiments.figure import cells_of
from switchgnn.lab.experiments.paper import find_figures


@pytest.mark.parametrize(("scale", "points"), [("small", 2 * 3), ("full", 3 * 3 * 5)])
def test_the_points_of_workers(scale, points):
    (figure,) = find_figures(["examples/figure/workers.py"])
    assert len({cell.point for cell in cells_of(figure, scale)}) == points
