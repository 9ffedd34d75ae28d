# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What is shown of a training that is interrupted."""

import json
from types import SimpleNamespace

import pytest
import typer

from switchgnn.commands.train.follow import Reached


def event(epoch, test=None):
    accuracy = None if test is None else {"test": test}
    return {"epoch": epoch, "loss": 1 / epoch, "seconds": 0.01 * epoch, "accuracy": accuracy}


def interrupt(epochs, *, reports=(), checkpoint=None, as_json=False):
    reached = Reached(reports, 100, checkpoint, as_json=as_json)
    with pytest.raises(typer.Exit) as ended, reached.over("switch"):
        for each in epochs:
            reached.epoch(each)
        raise KeyboardInterrupt
    assert ended.value.exit_code == 130


def test_epochs_loss_and_accuracy_are_shown(capsys):
    done = SimpleNamespace(transport="local", epochs=[event(1), event(4, 0.75)])
    interrupt([event(1), event(2, 0.5), event(3)], reports=[done])
    said = capsys.readouterr().out
    assert "Interrupted over switch after 3 of 100 epochs." in said
    rows = [line.split() for line in said.splitlines()]
    assert ["local", "4", "0.2500", "75.0%", "25"] in rows
    assert ["switch", "3", "0.3333", "50.0%", "20"] in rows


def test_before_the_first_epoch_there_is_no_table(capsys):
    interrupt([])
    assert capsys.readouterr().out == "Interrupted over switch after 0 of 100 epochs.\n"


def test_auto_is_shown_as_what_it_takes(capsys):
    reached = Reached([], 100, None, as_json=False)
    with pytest.raises(typer.Exit), reached.over("auto"):
        reached.takes("host")
        raise KeyboardInterrupt
    assert capsys.readouterr().out == "Interrupted over host after 0 of 100 epochs.\n"


def test_json_is_one_line(capsys):
    interrupt([event(1), event(2, 0.5)], as_json=True)
    assert json.loads(capsys.readouterr().out) == {
        "event": "interrupted",
        "transport": "switch",
        "epochs": 2,
        "losses": [1.0, 0.5],
        "test_accuracy": 0.5,
    }


@pytest.mark.parametrize("saved", [True, False])
def test_it_is_said_whether_a_checkpoint_is_there(saved, tmp_path, capsys):
    if saved:
        (tmp_path / "saved").touch()
    interrupt([event(1)], checkpoint=tmp_path / "saved")
    assert ("the same command goes on from" in capsys.readouterr().out) is saved


def test_what_goes_well_shows_nothing(capsys):
    with Reached([], 3, None, as_json=False).over("local"):
        pass
    assert capsys.readouterr().out == ""
