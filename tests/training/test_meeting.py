# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Workers of one machine divide its cores among them."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from switchgnn.training import meeting  # noqa: E402


@pytest.fixture
def eight_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(meeting.os, "sched_getaffinity", lambda _: set(range(8)))
    before = torch.get_num_threads()
    torch.set_num_threads(8)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(("processes", "threads"), [(1, 8), (3, 2), (8, 1), (20, 1)])
def test_each_process_takes_its_share_of_the_cores(processes, threads):
    meeting.share_cores(processes)
    assert torch.get_num_threads() == threads


@pytest.mark.usefixtures("eight_cores")
def test_a_smaller_number_of_threads_is_kept():
    torch.set_num_threads(3)
    meeting.share_cores(2)
    assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("eight_cores")
def test_the_user_has_the_last_word(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    meeting.share_cores(4)
    assert torch.get_num_threads() == 8
