# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A run that has no room for its sums says so at once."""

import pytest

from switchgnn.commands.run import size
from switchgnn.commands.run.size import SizeError, check_size
from switchgnn.host.wire.header import WIDEST
from switchgnn.machine.memory import available_memory
from tests.support.commands import switchgnn


def test_what_has_room():
    check_size(34, 32, 3)


def test_more_frames_than_a_header_counts():
    with pytest.raises(SizeError, match=r"at most 2,097,152\. Give --features less"):
        check_size(1, WIDEST + 1, 1)


def test_what_the_memory_has_no_room_for(monkeypatch):
    needed = 10 * 20 * (4 + 3 * 8)
    monkeypatch.setattr(size, "available_memory", lambda: needed)
    check_size(10, 20, 3)
    monkeypatch.setattr(size, "available_memory", lambda: needed - 1)
    with pytest.raises(SizeError, match=r"of memory, and 0\.0 MB are free"):
        check_size(10, 20, 3)


def test_the_memory_of_this_machine_is_known():
    assert available_memory() > 1 << 20


def test_a_machine_that_does_not_tell(monkeypatch):
    monkeypatch.setattr(size, "available_memory", lambda: None)
    check_size(10, 20, 3)


@pytest.mark.whole
def test_the_command_says_so_before_it_makes_features(tmp_path):
    words = ("run", "--graph", "karate", "--target", "embedded", "--fabric", "loopback")
    done = switchgnn(*words, "--features", 99_999_999, scratch=tmp_path)
    assert done.returncode == 2
    assert "Features of 99,999,999 numbers are too wide" in done.stderr
    assert not list(tmp_path.iterdir())
