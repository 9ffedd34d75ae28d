# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Both versions of the script give the same losses and predictions, and differ in few lines."""

import difflib
import re
import shutil
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

import switchgnn.torch as sg  # noqa: E402
from tests.torch.machines import one_machine  # noqa: E402

HERE = Path(__file__).parents[2] / "examples" / "own_loop"
WORKERS = 3
MOST_CHANGED = 8


def test_few_lines_differ():
    alone, together = (
        [line.strip() for line in text.split('"""')[2].splitlines() if line.strip()]
        for text in ((HERE / name).read_text() for name in ("alone.py", "together.py"))
    )
    changed = [line for line in difflib.ndiff(alone, together) if line.startswith("+ ")]
    assert 0 < len(changed) <= MOST_CHANGED, changed


def test_over_the_switch_as_in_one_process(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(HERE)
    from digits import digits  # noqa: PLC0415

    with one_machine(WORKERS, tmp_path) as machine:
        sg.write_job(digits(), WORKERS, tmp_path / "job", name="digits")
        for name in ("alone.py", "digits.py", "together.py"):
            shutil.copy(HERE / name, tmp_path)
        expected = losses(machine.run([sys.executable, "alone.py"]))
        alone = torch.load(tmp_path / "predictions.pt")
        (tmp_path / "predictions.pt").unlink()
        found = losses(machine.torchrun("together.py"))
        together = torch.load(tmp_path / "predictions.pt")
    assert len(expected) == 10
    for epoch, loss in expected.items():
        assert found[epoch] == pytest.approx([loss] * WORKERS, abs=2e-5)
    assert torch.allclose(together, alone, atol=1e-4)


def losses(text):
    """The losses of each epoch, as each process printed them."""
    found = {}
    for epoch, loss in re.findall(r"epoch (\d+): loss ([\d.]+)", text):
        found.setdefault(int(epoch), []).append(float(loss))
    return {epoch: values[0] if len(values) == 1 else values for epoch, values in found.items()}
