# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Running switches, faults to put on them, and what kills and starts them again."""

import random
import threading
from contextlib import ExitStack, contextmanager

import pytest

from switchgnn.controller import WatchEventKind, watch
from tests.support.fabrics import Team, bed
from tests.support.markers import TARGETS, full
from tests.support.speed import seconds_here

WORKERS = 4
ALL_FAULTS = "loss=0.05,duplicate=0.05,reorder=0.05,corrupt=0.02"
# `make test-all` also injects them one by one.
EACH_FAULT = [
    pytest.param(fault, marks=full)
    for fault in ("loss=0.1", "duplicate=0.05", "reorder=0.05", "corrupt=0.02")
]
COUNTED_AS = {
    "loss": "lost",
    "duplicate": "duplicated",
    "reorder": "reordered",
    "corrupt": "corrupted",
}


def kinds_of(faults):
    """The kinds of faults in a text, as they are counted."""
    return {COUNTED_AS[fault.partition("=")[0]] for fault in faults.split(",")}


def happened(injected):
    return {kind for kind in COUNTED_AS.values() if injected[kind]}


@pytest.fixture(scope="module")
def send(request):
    """Features as they are, unless a test asks for partial sums."""
    return getattr(request, "param", "multicast")


@pytest.fixture(scope="module", params=TARGETS)
def shared_bed(request, send, tmp_path_factory):
    target, *backend = request.param if isinstance(request.param, tuple) else (request.param,)
    folder = tmp_path_factory.mktemp("bed")
    with bed(target, WORKERS, folder, send=send, backend=next(iter(backend), None)) as made:
        yield made


@pytest.fixture
def team(shared_bed):
    """Make a team on a new session; its links are closed afterwards."""
    with ExitStack() as stack:

        def make(**options):
            shared_bed.install()
            return Team(shared_bed, stack, **options)

        yield make


def control(stack, watched, program):
    """Install again on every switch that restarts, until the stack closes."""
    stop, installed = threading.Event(), threading.Semaphore(0)

    def note(event):
        if event.kind is WatchEventKind.INSTALLED:
            installed.release()

    options = {"program": program, "on_event": note, "stop": stop, "interval": 0.1}
    thread = threading.Thread(target=watch, args=(watched,), kwargs=options, daemon=True)
    thread.start()
    stack.callback(thread.join, seconds_here())
    stack.callback(stop.set)
    for _ in watched:
        assert installed.acquire(timeout=seconds_here())


@contextmanager
def restarting(bed, seed, end):
    """Have the switch ended, after some blocks, and started again; yields a listener to blocks."""
    moments = random.Random(seed)
    after, blocks, done = moments.randrange(1, 12), threading.Semaphore(0), threading.Event()

    def restart():
        for _ in range(after):
            blocks.acquire(timeout=seconds_here(60))
        done.wait(moments.random() * 0.02)
        end()
        bed.start()
        # The switch dies with the thread that started it (PR_SET_PDEATHSIG).
        done.wait(seconds_here(100))

    thread = threading.Thread(target=restart)
    thread.start()
    try:
        yield lambda *_: blocks.release()
    finally:
        done.set()
        thread.join(seconds_here(60))
