# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Temporary folders are where nobody else can put another in their place."""

import stat
import tempfile

import pytest

from switchgnn.base.files import ForeignFolderError, private_folder


def test_it_is_for_its_owner_alone_and_gone_afterwards():
    with private_folder("test-") as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert folder.name.startswith("test-")
    assert not folder.exists()


@pytest.mark.parametrize("above", [".", ".."])
def test_a_folder_that_others_could_exchange_is_refused(tmp_path, monkeypatch, above):
    temporary = tmp_path / "temporary"
    temporary.mkdir(0o700)
    (temporary / above).chmod(0o777)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with pytest.raises(ForeignFolderError, match="Set TMPDIR to"), private_folder("test-"):
        pytest.fail("it was made")
    assert not list(temporary.iterdir())
    (temporary / above).chmod(0o1777)
    with private_folder("test-") as folder:
        assert folder.is_dir()


def test_a_link_in_the_path_is_not_followed_twice(tmp_path, monkeypatch):
    (tmp_path / "own").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "own")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "link"))
    with private_folder("test-") as folder:
        assert folder.parent == (tmp_path / "own").resolve()
