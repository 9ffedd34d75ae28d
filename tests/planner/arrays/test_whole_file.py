# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A file is there as a whole, or what was there before is."""

import errno
import os
import stat

import pytest

from switchgnn.base.files import unfinished_file, whole_file


def test_it_takes_the_place_of_another_at_the_end(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with whole_file(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_after_an_error_the_old_one_stays(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), whole_file(path) as file:
        file.write(b"half of")
        raise ZeroDivisionError
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_disk_that_tells_late_that_it_is_full(tmp_path, monkeypatch):
    """As one over the network does."""

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"), whole_file(tmp_path / "file") as file:
        file.write(b"all")
    assert not list(tmp_path.iterdir())


def test_one_that_is_not_put_is_gone(tmp_path):
    with unfinished_file(tmp_path / "file") as unfinished:
        unfinished.file.write(b"all")
        unfinished.settle()
    assert not list(tmp_path.iterdir())


def test_two_at_a_time_do_not_mix(tmp_path):
    path = tmp_path / "file"
    with whole_file(path) as one, whole_file(path) as other:
        one.write(b"one" * 1000)
        other.write(b"other")
    assert path.read_bytes() == b"one" * 1000
