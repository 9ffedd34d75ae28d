# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Faults between leaves and spines, and the restart of any one switch: every sum is right."""

import threading
from contextlib import ExitStack

import pytest

from switchgnn.controller import P4RuntimeClient, Watched, WatchEventKind, watch
from tests.beds import Team
from tests.tier_beds import tier_bed

FAULTS = [
    "loss=0.05",
    "loss=0.3",
    "duplicate=0.2",
    "reorder=0.2",
    "corrupt=0.05",
    "loss=0.1,duplicate=0.1,reorder=0.1,corrupt=0.02",
]


@pytest.mark.parametrize(
    ("leaves", "spines", "faults"),
    [*((2, 1, faults) for faults in FAULTS), (3, 2, FAULTS[-1])],
)
def test_faults_between_switches(tmp_path, leaves, spines, faults):
    with (
        tier_bed(tmp_path, leaves=leaves, spines=spines, faults=f"{faults},seed=5") as bed,
        ExitStack() as stack,
    ):
        team = Team(bed, stack)
        assert team.run(2) == 0, team.errors
        assert not team.errors
        assert bed.fabric.injected() > 0


@pytest.mark.parametrize("faults", FAULTS[-1:])
@pytest.mark.parametrize("send", ["multicast", "cover"])
def test_faults_on_all_links(tmp_path, faults, send):
    with (
        tier_bed(tmp_path, send=send, spines=2, faults=f"{faults},seed=6") as bed,
        ExitStack() as stack,
    ):
        team = Team(bed, stack, faults=f"{faults},seed=7")
        assert team.run(2) == 0, team.errors
        assert not team.errors


class Controller:
    """Installs again whatever has restarted."""

    def __init__(self, bed, stack):
        self.stop, self.installed = threading.Event(), threading.Semaphore(0)
        shares = [
            Watched(share.plan, share.network, stack.enter_context(P4RuntimeClient(share.switch)))
            for share in bed.shares()
        ]
        self.thread = threading.Thread(target=self._watch, args=(bed, shares), daemon=True)
        self.thread.start()
        stack.callback(self.thread.join, 20)
        stack.callback(self.stop.set)
        for _ in shares:
            assert self.installed.acquire(timeout=20)

    def _watch(self, bed, shares):
        watch(shares, program=bed.program, on_event=self._note, stop=self.stop, interval=0.1)

    def _note(self, event):
        if event.kind is WatchEventKind.INSTALLED:
            self.installed.release()


@pytest.mark.parametrize("switch", range(4))
@pytest.mark.parametrize("seen", [3, 8])
def test_any_one_switch_restarts(tmp_path, switch, seen):
    """Two leaves, two spines; the switch is killed when a worker has got so far."""
    with tier_bed(tmp_path, spines=2) as bed, ExitStack() as stack:
        Controller(bed, stack)
        reached = threading.Semaphore(0)
        team = Team(bed, stack, on_block=lambda *_: reached.release())
        wrong = []
        running = threading.Thread(target=lambda: wrong.append(team.run(4)), daemon=True)
        running.start()
        for _ in range(seen):
            assert reached.acquire(timeout=20)
        bed.fabric.restart(switch)
        running.join(100)
        assert not running.is_alive()
        assert wrong == [0], team.errors
