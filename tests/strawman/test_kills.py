"""The strawman's switch dies at some moment of a round, with all slots and their counts."""

from contextlib import ExitStack

import pytest

from tests.recovery import test_kills as kills
from tests.support.fabrics import bed
from tests.support.markers import TARGETS, some_of
from tests.support.seeds import seeds


@pytest.fixture(params=some_of(lambda target: target == 0, TARGETS))
def own_bed(request, tmp_path):
    with bed(request.param, kills.WORKERS, tmp_path, strawman=True, slots=8) as made:
        made.install()
        yield made


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_what_was_passed_on_before_is_not_added_again(own_bed, seed):
    with ExitStack() as stack:
        kills.test_the_switch_is_killed_and_started_again(own_bed, stack, seed)
