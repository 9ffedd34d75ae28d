# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Temporary folders are for their owner alone."""

import stat
import tempfile

import pytest

from switchgnn.base.files import private_folder
from switchgnn.base.full_disk import WriteError


def test_it_is_for_its_owner_alone_and_gone_afterwards():
    with private_folder("test-") as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert folder.name.startswith("test-")
    assert not folder.exists()


def test_one_that_cannot_be_made(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(WriteError, match="set TMPDIR to"), private_folder("test-"):
        pytest.fail("it was made")


def test_a_link_in_the_path_is_not_followed_twice(tmp_path, monkeypatch):
    (tmp_path / "own").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "own")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "link"))
    with private_folder("test-") as folder:
        assert folder.parent == (tmp_path / "own").resolve()
