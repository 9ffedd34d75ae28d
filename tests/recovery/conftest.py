# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""One running switch for each target, shared by the tests of a module, and faults to put on it."""

from contextlib import ExitStack

import pytest

from tests.support.fabrics import Team, bed
from tests.support.markers import TARGETS, full

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
