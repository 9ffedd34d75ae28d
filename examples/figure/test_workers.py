# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The figure `workers` can be read, and has the points that it should."""

import pytest

from switchgnn.lab.experiments import cells_of, load_figures


@pytest.mark.parametrize(("scale", "points"), [("small", 2 * 3), ("full", 3 * 3 * 5)])
def test_the_points_of_workers(scale, points):
    (figure,) = load_figures(["workers"])
    assert len({cell.point for cell in cells_of(figure, scale, None)}) == points
