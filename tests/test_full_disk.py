# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Messages about full disks; tests/end_to_end/test_full_disk.py fills real ones."""

import errno
import os
import tempfile
from pathlib import Path

import pytest

from switchgnn.base.full_disk import WriteError, keep_room, why_not_written, writing


def error_of(number):
    return OSError(number, os.strerror(number))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (error_of(errno.ENOSPC), "No space left on device"),
        (error_of(errno.EDQUOT), "Disk quota exceeded"),
        (OSError("9 requested and 3 written"), "the disk took only a part of it (9 requested"),
    ],
)
def test_what_to_do_is_said(error, reason):
    said = why_not_written(error, Path(tempfile.gettempdir()) / "folder" / "file")
    assert said.startswith(reason)
    assert said.endswith("; make room there, or set TMPDIR to a folder on another disk")
    assert why_not_written(error, Path("/home/me/plan")).endswith("or choose another folder")


def test_temporary_files_are_where_tmpdir_says(monkeypatch, tmp_path):
    """Python itself uses another folder if that one is full."""
    monkeypatch.setattr(tempfile, "tempdir", "/another")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert "set TMPDIR" in why_not_written(error_of(errno.ENOSPC), tmp_path / "file")


def test_other_errors_are_told_as_they_are():
    assert why_not_written(error_of(errno.EACCES), Path("/plan")) == "Permission denied"
    sentence = r"^Cannot write /plan: Read-only file system\.$"
    with pytest.raises(WriteError, match=sentence), writing(Path("/plan")):
        raise error_of(errno.EROFS)


def test_room_is_kept_beyond_the_end(tmp_path):
    path = tmp_path / "log"
    with path.open("w") as log:
        keep_room(log.fileno())
        log.write("first words")
    assert path.read_text() == "first words"
