# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The models of a training leave no files behind."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch_geometric")

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
    """Without it there is one for each kind of layer; PyTorch may make folders of its own."""
    told = subprocess.run(
        [sys.executable, "-c", BUILD.format(around=around)],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(told.stdout) >= 3
    assert len([file for file in tmp_path.iterdir() if file.suffix == ".py"]) == left
