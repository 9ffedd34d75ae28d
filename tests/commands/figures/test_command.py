# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What `switchgnn figures` reports of points that fail, without simulating any."""

from functools import partial

import pytest
from typer.testing import CliRunner

from switchgnn.commands.application import app
from switchgnn.lab.commands import figures
from switchgnn.lab.experiments import ExperimentError, cells_of, load_figures, run_points
from switchgnn.lab.experiments.runner import REFUSED
from tests.experiments.fake_points import FakeCommand

(EXAMPLE,) = load_figures(["example"])
POINTS = list(dict.fromkeys(cell.point for cell in cells_of(EXAMPLE, "small")))


@pytest.mark.parametrize(
    ("code", "hint"), [(REFUSED, "gives the same result."), (1, "tries them again.")]
)
def test_failed_points_are_counted_and_retried_where_that_can_help(
    tmp_path, monkeypatch, code, hint
):
    command = FakeCommand(tmp_path, fails={POINTS[0]: "no room."}, code=code)
    monkeypatch.setattr(figures, "run_points", partial(run_points, command=command))
    monkeypatch.setattr(figures, "current_versions", lambda: {"code": "1"})
    done = CliRunner().invoke(app, ["figures", "example", "--out", str(tmp_path / "out")])
    assert isinstance(done.exception, ExperimentError)
    some, others = len(POINTS), len(POINTS) - 1
    assert f"1 figure of {some} points, {others} of them simulated" in done.stdout
    assert str(done.exception).startswith(f"1 of {some} points failed")
    assert str(done.exception).endswith(hint)
