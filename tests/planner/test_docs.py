# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The pages of the planner list its strategies and its arrays."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from switchgnn.planner.plan.banks import SWITCH_ARRAYS, WORKER_ARRAYS
from switchgnn.planner.strategies import (
    BLOCK_STRATEGIES,
    ORDER_STRATEGIES,
    PARTITION_STRATEGIES,
    SEND_STRATEGIES,
)

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "planner.md").read_text(encoding="utf-8")
ARRAYS = (DOCS / "plans.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kinds", [SWITCH_ARRAYS, WORKER_ARRAYS], ids=["switch", "worker"])
def test_every_array_is_listed_with_its_type(kinds):
    for name, kind in kinds.items():
        assert f"| `{name}` | {np.dtype(kind).name} |" in ARRAYS, name


def test_every_strategy_is_listed():
    for known in (PARTITION_STRATEGIES, BLOCK_STRATEGIES, SEND_STRATEGIES, ORDER_STRATEGIES):
        for name in known:
            assert f"| `{name}` |" in TEXT


def test_the_examples_run(tmp_path):
    examples = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert examples
    for example in examples:
        subprocess.run([sys.executable, "-c", example], cwd=tmp_path, check=True)
