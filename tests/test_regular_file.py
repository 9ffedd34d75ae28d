# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Only regular files are read, even if one is replaced in the meantime."""

import os
import stat
from pathlib import Path

import pytest

from switchgnn.base.files import open_regular, read_regular, read_regular_text


def _link_to_zeros(path):
    path.symlink_to("/dev/zero")


def open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("made", [os.mkfifo, Path.mkdir, _link_to_zeros])
def test_what_is_no_file_is_refused(tmp_path, made):
    made(tmp_path / "strange")
    before = open_files()
    with pytest.raises(OSError, match="not a regular file"):
        open_regular(tmp_path / "strange")
    assert open_files() == before


def test_a_pipe_that_takes_the_place_of_a_file_is_not_waited_for(tmp_path):
    """Checking the name before opening it would be a race."""
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")

    class Exchanged(type(Path())):
        def stat(self, **options):
            found = super().stat(**options)
            (tmp_path / "pipe").replace(tmp_path / "file")
            return found

    place = Exchanged(tmp_path / "file")
    # What waits for the pipe otherwise would wait without end.
    keep_open = os.open(tmp_path / "pipe", os.O_RDWR)
    try:
        with open_regular(place) as file:
            assert stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    finally:
        os.close(keep_open)


def test_texts_and_bytes(tmp_path):
    (tmp_path / "file").write_bytes(b"\xef\xbb\xbfone\r\ntwo\n")
    assert read_regular(tmp_path / "file")[3:] == b"one\r\ntwo\n"
    assert read_regular_text(tmp_path / "file", "utf-8-sig") == "one\ntwo\n"
    with pytest.raises(UnicodeDecodeError):
        read_regular_text(tmp_path / "file", "ascii")
