"""The sets of tests, and deadlines that follow the speed of the machine."""

import itertools
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.support.levels import SHARED, WHOLE, is_whole
from tests.support.markers import covering

AXES = st.lists(st.integers(1, 4), min_size=2, max_size=4)


@given(AXES)
def test_every_pair_of_values_is_covered(sizes):
    params = covering(*map(range, sizes))
    assert len(params) == len({param.values for param in params})
    assert {param.values for param in params} == set(itertools.product(*map(range, sizes)))
    kept = [
        param.values for param in params if not any(mark.name == "full" for mark in param.marks)
    ]
    for one, other in itertools.combinations(range(len(sizes)), 2):
        pairs = {(values[one], values[other]) for values in kept}
        assert pairs == set(itertools.product(range(sizes[one]), range(sizes[other])))


def test_what_runs_whole_programs_is_there():
    assert all((Path("tests") / place).exists() for place in WHOLE)
    assert all(Path(file).is_file() for file in SHARED)
    assert is_whole("tests/recovery/test_faults.py")
    assert not is_whole("tests/host/direct/test_sums.py")
