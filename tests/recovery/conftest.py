# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""One running switch for each target, shared by the tests of a module."""

from contextlib import ExitStack

import pytest

from tests.support.fabrics import Team, bed
from tests.support.markers import TARGETS

WORKERS = 4


@pytest.fixture(scope="module")
def send(request):
    """What workers send: features as they are, unless a test asks for partial sums."""
    return getattr(request, "param", "multicast")


@pytest.fixture(scope="module", params=TARGETS)
def shared_bed(request, send, tmp_path_factory):
    """On a target; a test may ask for a back end besides."""
    target, *backend = request.param if isinstance(request.param, tuple) else (request.param,)
    folder = tmp_path_factory.mktemp("bed")
    with bed(target, WORKERS, folder, send=send, backend=next(iter(backend), None)) as made:
        yield made


@pytest.fixture
def team(shared_bed):
    """Call it to get a team on a new session; links are closed afterwards."""
    with ExitStack() as stack:

        def make(**options):
            shared_bed.install()
            return Team(shared_bed, stack, **options)

        yield make
