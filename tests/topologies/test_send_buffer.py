# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The default send buffer is small for a moment only; a file stands for the kernel's."""

import threading

import pytest

from switchgnn.topologies import mininet_fabric as send_buffer


@pytest.mark.parametrize("error", [None, RuntimeError, KeyboardInterrupt])
def test_the_default_comes_back(error, tmp_path, monkeypatch):
    default = tmp_path / "wmem_default"
    default.write_text("212992\n")
    monkeypatch.setattr(send_buffer, "_DEFAULT", default)
    try:
        with send_buffer.small_send_buffers():
            assert int(default.read_text()) < 212992
            if error is not None:
                raise error
    except (RuntimeError, KeyboardInterrupt) as raised:
        assert type(raised) is error
    assert default.read_text() == "212992\n"


def test_runs_at_the_same_time_take_turns(tmp_path, monkeypatch):
    default = tmp_path / "wmem_default"
    default.write_text("212992\n")
    monkeypatch.setattr(send_buffer, "_DEFAULT", default)

    def start_switches():
        for _ in range(50):
            with send_buffer.small_send_buffers():
                pass

    runs = [threading.Thread(target=start_switches) for _ in range(4)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert default.read_text() == "212992\n"
