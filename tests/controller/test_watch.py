# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A watched switch gets its plan back."""

import threading
from contextlib import suppress

import pytest

from switchgnn.controller import Outcome, P4RuntimeClient, Watched, WatchEventKind, clear, watch
from switchgnn.controller.errors import SwitchUnreachableError, VerificationError
from tests.controller.plans import make_plan
from tests.support.speed import seconds_here

PLAN = make_plan()


class Watching:
    """A watch in a thread, and what it has told."""

    def __init__(self, clients, network, program, **options):
        self._told = []
        self._news = threading.Condition()
        self._stop = threading.Event()
        self.error = None
        self._thread = threading.Thread(
            target=self._run, args=(clients, network, program, options), daemon=True
        )

    def _run(self, clients, network, program, options):
        try:
            watch(
                [Watched(PLAN, network, client) for client in clients],
                program=program,
                on_event=self._on_event,
                stop=self._stop,
                interval=0.05,
                **options,
            )
        except Exception as error:
            self.error = error

    def _on_event(self, event):
        with self._news:
            self._told.append(event)
            self._news.notify_all()

    def wait_for(self, kind, times=1):
        with self._news:
            found = []

            def enough():
                found[:] = [event for event in self._told if event.kind is kind]
                return len(found) >= times

            assert self._news.wait_for(enough, seconds_here()), (kind, self._told, self.error)
            return found[times - 1]

    def join(self):
        self._thread.join(seconds_here())
        assert not self._thread.is_alive()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self.join()


@pytest.fixture
def watching(fake, network, program):
    client = P4RuntimeClient(fake.address, deadline=seconds_here(1))
    with Watching([client], network, program) as watching:
        watching.wait_for(WatchEventKind.INSTALLED)
        yield watching
    assert watching.error is None
    assert not client.alive


def test_a_restarted_switch_is_installed_again(fake, watching):
    fake.restart()
    assert "no longer serves" in watching.wait_for(WatchEventKind.LOST).message
    watching.wait_for(WatchEventKind.INSTALLED, times=2)
    assert len(fake.contents.groups) == 97


def test_a_switch_that_is_away_for_a_while_is_waited_for(fake, watching):
    fake.stop()
    assert "No switch answers" in watching.wait_for(WatchEventKind.WAITING).message
    fake.restart()
    watching.wait_for(WatchEventKind.INSTALLED, times=2)


def test_a_cleared_switch_is_installed_again(fake, watching):
    with (
        P4RuntimeClient(fake.address, election_id=2, deadline=seconds_here(3)) as other,
        # The watch may be so quick that not all is away when it writes again.
        suppress(VerificationError),
    ):
        clear(other)
    watching.wait_for(WatchEventKind.INSTALLED, times=2)
    assert len(fake.contents.groups) == 97


def test_counters_that_move_are_told(fake, watching):
    fake.contents.counters = {("outcome", Outcome.AGGREGATED): 5}
    event = watching.wait_for(WatchEventKind.COUNTED)
    assert event.counters == {"aggregated": 5}
    assert "aggregated +5" in event.message


def test_patience_ends(fake, network, program):
    client, patience = P4RuntimeClient(fake.address, deadline=seconds_here(0.1)), seconds_here(0.3)
    with Watching([client], network, program, patience=patience) as watching:
        watching.wait_for(WatchEventKind.INSTALLED)
        fake.stop()
        watching.join()
    assert isinstance(watching.error, SwitchUnreachableError)
    assert f"Gave up after {patience:g} s" in str(watching.error)
