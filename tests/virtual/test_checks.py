# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Each check looks at every run, and docs/reliability.md tells of it."""

import re
from pathlib import Path

from switchgnn.lab.virtual.checks import all_checks

ROOT = Path(__file__).parents[2]
CHECKS = Path(all_checks.__file__).parent
NO_CHECKS = {"__init__", "all_checks", "check", "packet", "packet_check", "scales"}


def test_all_are_in_the_docs_and_nothing_else_is():
    there = {
        str(file.relative_to(CHECKS)) for file in CHECKS.rglob("*.py") if file.stem not in NO_CHECKS
    }
    text = (ROOT / "docs" / "reliability.md").read_text()
    told = set(re.findall(r"^\| `((?:packets/)?\w+\.py)` \|", text, re.MULTILINE))
    assert told == there


def test_all_of_them_look():
    names = {type(check).__module__ for check in all_checks.all_checks()}
    files = {file.stem for file in CHECKS.rglob("*.py")} - NO_CHECKS
    assert files == {name.rpartition(".")[2] for name in names} - {"packet_check"}
