"""Running switches, faults to put on them, and what kills and starts them again."""

import random
import threading
from contextlib import ExitStack, contextmanager

import pytest

from switchgnn.controller import DesiredStates, P4RuntimeClient, Share, WatchEventKind, watch
from tests.support.fabrics import NO_FAULTS, Team, bed, leaf_spine_bed
from tests.support.markers import MININET_TARGETS, TARGETS
from tests.support.reducing import Crew
from tests.support.speed import seconds_here

WORKERS = 4
ALL_FAULTS = "loss=0.05,duplicate=0.05,reorder=0.05,corrupt=0.02"
FEW_FAULTS = "loss=0.02,duplicate=0.02,reorder=0.02,seed=8"
KINDS = {"lost", "duplicated", "reordered", "corrupted"}


def of_topology(topology, targets):
    return [
        pytest.param((topology, *each.values), id=f"{topology}-{each.id}", marks=each.marks)
        for each in targets
    ]


STARS = of_topology("star", TARGETS)
BEDS = [*STARS, *of_topology("leaf-spine", MININET_TARGETS)]
of_stars = pytest.mark.parametrize("shared_bed", STARS, indirect=True)


@contextmanager
def made_bed(which, folder, **options):
    """Start a switch with four workers, or two leaves and two spines."""
    topology, target = which
    if topology == "leaf-spine":
        with leaf_spine_bed(folder, target, spines=2, **options) as made:
            yield made
    else:
        target, *backend = target if isinstance(target, tuple) else (target,)
        with bed(target, WORKERS, folder, backend=next(iter(backend), None), **options) as made:
            yield made


@pytest.fixture(scope="module", params=BEDS)
def shared_bed(request, tmp_path_factory):
    with made_bed(request.param, tmp_path_factory.mktemp("bed")) as made:
        yield made


@pytest.fixture
def stack():
    with ExitStack() as made:
        yield made


@pytest.fixture
def began(shared_bed, stack):
    """Begin a session, with faults on cables; its links are closed afterwards."""

    def begin(kind, *, faults="", **options):
        shared_bed.disturb(NO_FAULTS)
        shared_bed.install()
        shared_bed.disturb(faults or NO_FAULTS)
        stack.callback(shared_bed.disturb, NO_FAULTS)
        return kind(shared_bed, stack, faults=faults, **options)

    return begin


@pytest.fixture
def team(began):
    return lambda **options: began(Team, **options)


@pytest.fixture
def crew(began):
    return lambda **options: began(Crew, **options)


def all_happened(workers):
    fabric = getattr(workers.bed, "fabric", None)
    injected = [workers.injected(), *([fabric.cable_injected()] if fabric else [])]
    return all(each[kind] for each in injected for kind in KINDS)


def control(stack, bed):
    """Install again on every switch that restarts, until the stack closes."""
    stop, installed = threading.Event(), threading.Semaphore(0)

    def note(event):
        if event.kind is WatchEventKind.INSTALLED:
            installed.release()

    shares = bed.shares()
    clients = [stack.enter_context(P4RuntimeClient(share.switch)) for share in shares]
    ends = zip(shares, clients, strict=True)
    watched = [Share(share.plan, share.network, client) for share, client in ends]
    options = {"on_event": note, "stop": stop, "interval": 0.1}
    what = (watched, DesiredStates(bed.program))
    thread = threading.Thread(target=watch, args=what, kwargs=options, daemon=True)
    thread.start()
    stack.callback(thread.join, seconds_here())
    stack.callback(stop.set)
    for _ in watched:
        assert installed.acquire(timeout=seconds_here())


@contextmanager
def restarting(seed, restart, most=12):
    """Call `restart` after some blocks; yields a listener to blocks."""
    moments = random.Random(repr(seed))
    after, blocks, done = moments.randrange(1, most), threading.Semaphore(0), threading.Event()

    def wait_and_restart():
        for _ in range(after):
            blocks.acquire(timeout=seconds_here(60))
        done.wait(moments.random() * 0.02)
        restart()
        # The switch dies with the thread that started it (PR_SET_PDEATHSIG).
        done.wait(seconds_here(100))

    thread = threading.Thread(target=wait_and_restart)
    thread.start()
    try:
        yield lambda *_: blocks.release()
    finally:
        done.set()
        thread.join(seconds_here(60))
