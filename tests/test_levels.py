"""The sets of tests, and deadlines that follow the speed of the machine."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.host.base.pace import Pace
from tests.support import speed
from tests.support.levels import SHARED, WHOLE, group_of, is_whole
from tests.support.markers import covering
from tests.support.speed import pace_here, seconds_here

AXES = st.lists(st.integers(1, 4), min_size=2, max_size=4)


def is_full(param):
    return any(mark.name == "full" for mark in param.marks)


@given(AXES)
def test_every_pair_of_values_is_covered(sizes):
    params = covering(*map(range, sizes))
    assert len(params) == len({param.values for param in params})
    assert {param.values for param in params} == set(itertools.product(*map(range, sizes)))
    kept = [param.values for param in params if not is_full(param)]
    for one, other in itertools.combinations(range(len(sizes)), 2):
        pairs = {(values[one], values[other]) for values in kept}
        assert pairs == set(itertools.product(range(sizes[one]), range(sizes[other])))


def test_tests_of_one_switch_run_in_one_process():
    ptf = "tests/ptf/test_ptf.py::test_case[{}-{}]"
    bmv2, other, udp = (
        group_of(ptf.format(*each))
        for each in (("bmv2", "seen.A"), ("bmv2", "a.B"), ("embedded-udp", "seen.A"))
    )
    assert bmv2 == other != udp
    alone = "tests/recovery/test_restarts.py::test_something[1]"
    assert group_of(alone) == alone


def test_what_runs_whole_programs_is_there():
    assert all((Path("tests") / place).exists() for place in WHOLE)
    assert all(Path(file).is_file() for file in SHARED)
    assert is_whole("tests/recovery/test_faults.py")
    assert not is_whole("tests/host/direct/test_sums.py")


@pytest.fixture
def machine(monkeypatch):
    """Call it to be on a machine with slow cores, or with others who want them."""

    def be(*, core=1.0, waiting=0.0):
        monkeypatch.setattr(speed, "core_slowness", lambda: core)
        monkeypatch.setattr(speed, "crowd", lambda: waiting)

    return be


@pytest.mark.parametrize(
    ("core", "waiting", "factor"),
    [(1, 0.2, 1), (0.5, 1, 1), (3, 0, 3), (1, 4, 4), (2, 3, 6), (50, 1, 20), (7, 7, 20)],
)
def test_deadlines_are_longer_on_a_slow_or_busy_machine(machine, core, waiting, factor):
    machine(core=core, waiting=waiting)
    assert seconds_here(2.0) == 2.0 * factor
    assert pace_here(Pace(window=5, timeout=3.0)) == Pace(window=5, timeout=3.0 * factor)
