# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A file with the state of a switch is whole and its owner's, or refused with a sentence."""

import hashlib
import os
import random
import struct

import pytest

from switchgnn.softswitch.daemon import state_file
from switchgnn.softswitch.daemon.state_file import HEAD, MAGIC, check_place, open_state, write_state
from switchgnn.softswitch.errors import StateFileError


def read(path):
    with open_state(path) as messages:
        return None if messages is None else list(messages)


def file_of(path, body, *, magic=MAGIC, size=None, digest=None):
    """A file with any content, and the digest that it needs."""
    head = HEAD.pack(
        magic, len(body) if size is None else size, digest or hashlib.sha256(body).digest()
    )
    path.write_bytes(head + body)
    path.chmod(0o600)
    return path


def refused(path):
    with pytest.raises(StateFileError) as caught:
        read(path)
    sentence = str(caught.value)
    assert str(path) in sentence
    assert "\n" not in sentence
    return sentence


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state"


def test_what_is_written_is_read(path):
    assert read(path) is None
    write_state(path, b"config", [b"one", b"", b"three" * 1000])
    assert read(path) == [b"config", b"one", b"", b"three" * 1000]
    write_state(path, b"", ())
    assert read(path) == [b""]
    assert [each.name for each in path.parent.iterdir()] == ["state"]


def test_it_is_for_its_owner_alone(path):
    before = os.umask(0)
    try:
        write_state(path, b"config", ())
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600


def test_every_cut_is_noticed(path):
    write_state(path, b"config", [b"one", b"two"])
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        refused(path)
    path.write_bytes(whole + b"x")
    refused(path)


def test_every_changed_bit_is_noticed(path):
    write_state(path, b"config", [b"one", b"two"])
    whole = path.read_bytes()
    for place in range(8 * len(whole)):
        changed = bytearray(whole)
        changed[place // 8] ^= 1 << place % 8
        path.write_bytes(changed)
        refused(path)


@pytest.mark.parametrize("content", [b"", b"{}", b"x" * 10_000, MAGIC])
def test_another_file(path, content):
    path.write_bytes(content)
    path.chmod(0o600)
    assert "not a state file" in refused(path)


def test_lengths_that_lead_beyond_the_end(path):
    """The digest is right: who made the file wants it to be read."""
    for length in (4, 5, 0xFFFFFFFF, 1 << 31):
        refused(file_of(path, struct.pack(">I", length) + b"abc"))
    refused(file_of(path, b"ab"))
    refused(file_of(path, b"", size=1 << 62))


def test_a_length_is_not_believed_before_it_is_looked_at(path, monkeypatch):
    asked = []
    monkeypatch.setattr(state_file, "MOST_MESSAGE_BYTES", 10)
    real = state_file._messages

    class Counting:
        def __init__(self, file):
            self.file = file

        def read(self, size):
            asked.append(size)
            return self.file.read(size)

    monkeypatch.setattr(state_file, "_messages", lambda f, s, p: real(Counting(f), s, p))
    refused(file_of(path, struct.pack(">I", 11) + bytes(11)))
    assert max(asked) <= 10


def test_a_file_that_others_may_write(path):
    write_state(path, b"config", ())
    path.chmod(0o620)
    assert "others may write" in refused(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a file away")
def test_a_file_of_another_user(path):
    write_state(path, b"config", ())
    os.chown(path, 12345, 12345)
    # Root may read it, and is told whose it is.
    assert "12345" in refused(path)


def test_a_pipe_is_not_waited_for(path):
    os.mkfifo(path)
    refused(path)
    path.unlink()
    path.mkdir()
    refused(path)


def test_a_folder_that_is_not_there(tmp_path):
    nowhere = tmp_path / "nowhere" / "state"
    for call in (lambda: check_place(nowhere), lambda: write_state(nowhere, b"", ())):
        with pytest.raises(StateFileError, match="nowhere"):
            call()


def test_what_was_there_stays_if_writing_fails(path, monkeypatch):
    write_state(path, b"old", ())
    monkeypatch.setattr(state_file, "MOST_BYTES", 100)
    with pytest.raises(StateFileError):
        write_state(path, b"new", [bytes(200)])
    monkeypatch.undo()
    assert read(path) == [b"old"]


def test_a_link_in_its_place_is_not_followed(path):
    other = path.with_name("other")
    other.write_text("mine")
    path.with_name(".state.part").symlink_to(other)
    write_state(path, b"config", ())
    assert other.read_text() == "mine"
    assert read(path) == [b"config"]


def test_random_bytes_behind_a_good_head(path):
    generator = random.Random(7)
    for _ in range(300):
        body = generator.randbytes(generator.randrange(40))
        try:
            read(file_of(path, body))
        except StateFileError as error:
            assert str(path) in str(error)
