# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Exceptions of the user's model show the user's lines, and models leave no files behind."""

import os
import subprocess
import sys

import pytest

from switchgnn.base.errors import SwitchGNNError
from switchgnn.training.errors import ModelError
from switchgnn.training.layers.models import ModelOptions, build_model
from switchgnn.training.layers.pyg_layers import own_code

MODEL = """
import torch

class Net(torch.nn.Module):
    def __init__(self, features, classes):
        super().__init__()

    def forward(self, called):
        return called()

def deep(number, classes):
    return deep(number + 1, classes)

def broken(features, classes):
    {}["absent"]
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(MODEL)
    return path


def forward(file, called):
    model = build_model(ModelOptions(f"{file}:Net"), 1, 1)
    with own_code(f"{file}:Net"):
        model(called)


def fails():
    raise ValueError("of a library.\nand more")


def test_a_library_that_the_model_has_called(file):
    with pytest.raises(ModelError) as raised:
        forward(file, fails)
    assert str(raised.value) == (
        f"The model {file}:Net failed, in line 9 (forward): ValueError: of a library."
    )
    trace = raised.value.details
    assert trace.startswith("Traceback (most recent call last):")
    assert "in forward" in trace.splitlines()[1]
    assert "in fails" in trace


def test_errors_of_ours_and_of_others_stay_what_they_are(file):
    def ours():
        raise SwitchGNNError("the switch is gone")

    with pytest.raises(SwitchGNNError, match=r"^the switch is gone$"):
        forward(file, ours)
    with pytest.raises(ValueError, match="of a library"), own_code(f"{file}:Net"):
        fails()
    with pytest.raises(ValueError, match="of a library"), own_code("gcn"):
        fails()


def build(file, name):
    with pytest.raises(ModelError) as raised:
        build_model(ModelOptions(f"{file}:{name}"), 3, 2)
    return raised.value


def test_a_model_that_cannot_be_made(file):
    error = build(file, "broken")
    assert str(error).endswith("failed, in line 15 (broken): KeyError: 'absent'.")
    assert 'own.py", line 15, in broken' in error.details


def test_a_file_that_is_no_python(file):
    file.write_text("class Net(:\n")
    error = build(file, "Net")
    assert "SyntaxError" in str(error)
    assert "own.py" in error.details
    assert "line 1" in error.details


def test_a_name_that_is_not_there(file):
    error = build(file, "absent")
    assert "AttributeError" in str(error)
    assert error.details == ""


def test_a_recursion_without_an_end_is_bounded(file):
    error = build(file, "deep")
    assert "RecursionError" in str(error)
    assert len(error.details) < 21_000


# A process of its own: PyG makes the file for a kind of layer once.
BUILD = """
import tempfile, sys
from pathlib import Path
from contextlib import nullcontext
from switchgnn.training.layers.models import MODELS, ModelOptions, build_model
from switchgnn.training.layers.pyg_layers import templates_removed

with {around}():
    for name in MODELS:
        build_model(ModelOptions(model=name), 3, 2)
    made = list(Path(tempfile.gettempdir()).iterdir())
print(len(made))
"""


@pytest.mark.whole
@pytest.mark.parametrize(("around", "left"), [("templates_removed", 0), ("nullcontext", 3)])
def test_models_leave_no_files(around, left, tmp_path):
    """PyG makes a file for each kind of layer; PyTorch may make folders."""
    told = subprocess.run(
        [sys.executable, "-c", BUILD.format(around=around)],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(told.stdout) >= 3
    assert len([file for file in tmp_path.iterdir() if file.suffix == ".py"]) == left
