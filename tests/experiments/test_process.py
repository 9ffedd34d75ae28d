# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a point's process plans, and how it ends."""

import subprocess
import sys
from unittest.mock import Mock

import pytest

from switchgnn.lab.experiments import cells_of, load_figures, process
from switchgnn.lab.experiments.load import known_figures
from switchgnn.lab.experiments.runner import REFUSED, point_command
from switchgnn.lab.experiments.table import select
from switchgnn.lab.simulator.errors import SimulationStoppedError
from switchgnn.lab.simulator.within import check_fits
from switchgnn.profiles import UNLIMITED
from tests.experiments.fake_points import point
from tests.support.markers import full, whole


def hardest(figure):
    """The cells with the most workers and the least memory: plans have the most entries there."""
    where = {"workers": "most", "memory": "least"}
    return select(cells_of(figure, "small"), where)


LIMITED = {
    cell.point: figure.name
    for figure in load_figures(known_figures())
    for cell in hardest(figure)
    if cell.point.switch != UNLIMITED.name
}


def points_of_switches():
    """All; with the quickest loop of a figure plans have the most entries, the others vary it."""
    for one, name in LIMITED.items():
        rates = [other.recirculation_rate for other in LIMITED if LIMITED[other] == name]
        marks = [] if one.recirculation_rate == max(rates) else full
        yield pytest.param(one, id=f"{name}-{one.graph}-{one.recirculation_rate:g}", marks=marks)


@whole
@pytest.mark.parametrize("one", points_of_switches())
def test_points_of_small_figures_fit_their_switch(tmp_path, one):
    partition = tmp_path / "partition.npy"
    process._write_partition(one, partition)
    options = process._options(one, tmp_path / "plan", partition)
    assert check_fits(process._plan(one, options, partition), options).table_bytes > 0


@pytest.mark.parametrize(
    "changes", [{"graph": "no-such-graph"}, {"workers": 100}, {"slot_features": 1}]
)
def test_a_point_that_cannot_be_simulated_is_refused(tmp_path, changes):
    command = point_command(point(**changes), tmp_path / "plan")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (REFUSED, "")
    assert done.stderr.startswith("Error: ")


def test_a_simulation_that_stops_is_not_refused(tmp_path, monkeypatch, capsys):
    def stopped(*_):
        raise SimulationStoppedError("The simulation stopped: it ended with code -9.")

    words = [*point_command(point(), tmp_path / "plan")][-3:]
    monkeypatch.setattr(process, "ctypes", Mock())  # this process is not to end with its parent
    monkeypatch.setattr(process, "_simulate", stopped)
    monkeypatch.setattr(sys, "argv", ["process", *words])
    with pytest.raises(SystemExit) as left:
        process.main()
    assert left.value.code == 1
    assert capsys.readouterr().err == "Error: The simulation stopped: it ended with code -9.\n"
