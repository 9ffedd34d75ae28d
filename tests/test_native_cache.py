# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Compiled code is cached where no other user can replace it."""

import os
import stat

import pytest

from switchgnn.base.native import ForeignCacheError, cache_folder, compiled_once

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files away")


def compiled_in(folder):
    return compiled_once(folder, "program", ["source"], lambda path: path.write_text("ours"))


def test_a_new_cache_is_for_its_owner_alone(tmp_path):
    usual = os.umask(0)
    try:
        file = compiled_in(tmp_path / "cache" / "part")
    finally:
        os.umask(usual)
    made = [tmp_path / "cache", tmp_path / "cache/part", *(tmp_path / "cache/part").iterdir()]
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in made} == {0}
    assert compiled_in(file.parent) == file


@pytest.mark.parametrize("place", [".", "part", "part/program"])
def test_a_cache_that_others_may_write_to_is_not_used(tmp_path, place):
    """A file of the right name may be anybody's."""
    file = compiled_in(tmp_path / "part")
    where = file if place == "part/program" else tmp_path / place
    where.chmod(0o777)
    with pytest.raises(ForeignCacheError, match=r"others may write to .*Set XDG_CACHE_HOME"):
        compiled_in(tmp_path / "part")


@needs_root
def test_a_cache_of_another_user_is_not_used(tmp_path):
    """As after `su` with the HOME of another user."""
    file = compiled_in(tmp_path / "part")
    os.chown(file.parent, 12345, 12345)
    with pytest.raises(ForeignCacheError, match="belongs to user 12345"):
        compiled_in(tmp_path / "part")


def test_a_lock_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("kept")
    file = compiled_in(tmp_path / "part")
    lock = file.with_suffix(".lock")
    lock.unlink()
    lock.symlink_to(tmp_path / "precious")
    with pytest.raises(ForeignCacheError, match="is a link"):
        compiled_in(tmp_path / "part")
    assert (tmp_path / "precious").read_text() == "kept"


def test_a_relative_cache_is_none(monkeypatch, tmp_path):
    """It would be in the current folder, which may be another user's."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for given in ("cache", ".", ""):
        monkeypatch.setenv("XDG_CACHE_HOME", given)
        assert cache_folder("part") == tmp_path / ".cache/switchgnn/part"
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert str(cache_folder("part")) == "/elsewhere/switchgnn/part"
