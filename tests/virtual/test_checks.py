# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Each check looks at every run, and docs/reliability.md tells of it."""

import re
from pathlib import Path

from switchgnn.lab.virtual.checks import all_checks
from switchgnn.lab.virtual.checks.check import Check, PacketReader

PACKAGE = "switchgnn.lab.virtual.checks."
DOCUMENT = Path(__file__).parents[2] / "docs" / "reliability.md"


def test_all_are_in_the_docs_and_nothing_else_is():
    told = re.findall(r"^\| `([A-Z]\w+)` \|", DOCUMENT.read_text(), re.MULTILINE)
    assert sorted(told) == sorted(type(each).__name__ for each in all_checks() if is_check(each))


def test_all_of_them_look():
    written = {
        each.__name__
        for each in kinds(Check)
        if each.__module__.startswith(PACKAGE) and not each.__subclasses__() and is_check(each)
    }
    assert written == {type(each).__name__ for each in all_checks() if is_check(each)}


def is_check(each):
    """The reader hands packets to checks and is none."""
    return PacketReader not in (each, type(each))


def kinds(base):
    return {each for kind in base.__subclasses__() for each in (kind, *kinds(kind))}
