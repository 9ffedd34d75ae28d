# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""systemd and others are told when a switch serves."""

import socket

import pytest

from switchgnn.softswitch.daemon.serving import forget_ready, notify, ready
from switchgnn.softswitch.errors import SoftSwitchError
from tests.support.speed import seconds_here

ADDRESS = "127.0.0.1:9559"


@pytest.fixture(params=["file", "name"])
def manager(request, tmp_path, monkeypatch):
    """What systemd listens on: a file, or a name without one."""
    name = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(name if request.param == "file" else f"\0{name}")
        sock.settimeout(seconds_here(5))
        monkeypatch.setenv("NOTIFY_SOCKET", name if request.param == "file" else f"@{name}")
        yield sock


def test_it_is_told_when_it_begins_and_ends(manager):
    with ready(ADDRESS, None):
        lines = manager.recv(1000).decode().splitlines()
        assert lines == ["READY=1", f"STATUS=Serves P4Runtime on {ADDRESS}"]
        manager.setblocking(False)
        with pytest.raises(BlockingIOError):
            manager.recv(1000)
    assert manager.recv(1000) == b"STOPPING=1"


@pytest.mark.parametrize("value", [None, "", "relative", "/nowhere/at/all"])
def test_nobody_has_to_listen(value, monkeypatch):
    if value is None:
        monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    else:
        monkeypatch.setenv("NOTIFY_SOCKET", value)
    notify("READY=1")


def test_the_file_is_there_meanwhile(tmp_path):
    path = tmp_path / "ready"
    path.write_text("an earlier switch was killed")
    forget_ready(path)
    assert not path.exists()
    with ready(ADDRESS, path):
        assert path.read_text() == f"{ADDRESS}\n"
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_a_sentence(tmp_path):
    with pytest.raises(SoftSwitchError, match="--ready-file"), ready(ADDRESS, tmp_path / "a" / "b"):
        pass
    for wrong in (tmp_path, tmp_path / "a" / "b"):
        with pytest.raises(SoftSwitchError, match="--ready-file"):
            forget_ready(wrong)
