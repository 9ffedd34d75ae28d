# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a child process prints is waited for within a deadline."""

import pytest

from switchgnn.topologies.errors import FabricError
from switchgnn.topologies.processes import child
from switchgnn.topologies.processes.child import Child


def test_lines_come_one_by_one_and_their_end_is_reported(tmp_path):
    with Child("Cat", ["cat"], tmp_path / "log", pipe=True) as cat:
        for word in ("one\n", "two\n"):
            cat.stdin.write(word)
            cat.stdin.flush()
            assert cat.read_line() == word
        cat.stdin.close()
        with pytest.raises(FabricError, match="Cat ended: it left no message"):
            cat.read_line()


def test_a_child_that_prints_nothing_is_not_waited_for_forever(tmp_path, monkeypatch):
    monkeypatch.setattr(child, "_ANSWER_SECONDS", 0.05)
    with (
        Child("Cat", ["cat"], tmp_path / "log", pipe=True) as cat,
        pytest.raises(FabricError, match=r"Cat has not answered for 0\.05 s"),
    ):
        cat.read_line()
