"""Fixed point: no sum wraps nor exceeds its error bound; and the prediction of the next scale."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from switchgnn.host import FeatureError, FixedPoint
from switchgnn.host.innetwork import fixed_point as fixed
from switchgnn.planner.base.direction import Direction

finite = st.floats(-(2.0**100), 2.0**100, width=32)


@given(hnp.arrays(np.float32, st.tuples(st.integers(1, 40), st.integers(1, 4)), elements=finite))
def test_sums_of_a_whole_fan_in_stay_within_int32_and_the_bound(features):
    magnitude = fixed.magnitude_from_bits(fixed.largest_magnitude(features))
    fixed_point = FixedPoint.for_exchange(len(features), magnitude)
    exact = fixed_point.encode(features).astype(np.int64).sum(axis=0)
    assert np.abs(exact).max() < 2**31
    wrapped = exact.astype(np.int32)
    error = np.abs(fixed_point.decode(wrapped) - features.astype(np.float64).sum(axis=0))
    assert error.max() <= fixed_point.error_bound() * (1 + 1e-12)


@pytest.mark.parametrize("fan_in", [1, 2, 3, 7, 1000, 65535])
@pytest.mark.parametrize("magnitude", [1e-30, 1.0, 3.0, 1e30])
def test_the_largest_features_do_not_wrap(fan_in, magnitude):
    magnitude = float(np.float32(magnitude))
    fixed_point = FixedPoint.for_exchange(fan_in, magnitude)
    one = int(fixed_point.encode(np.array([magnitude], dtype=np.float32))[0])
    assert one * fan_in < 2**31
    assert one * fan_in > 2**30


@given(st.lists(finite, max_size=20))
def test_magnitude_bits_compare_like_the_magnitudes(values):
    features = np.array(values, dtype=np.float32).reshape(-1, 1)
    expected = float(np.abs(features).max(initial=0.0))
    assert fixed.magnitude_from_bits(fixed.largest_magnitude(features)) == expected
    each = [fixed.largest_magnitude(row.reshape(1, 1)) for row in features]
    assert max(each, default=0) == fixed.largest_magnitude(features)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_features_that_are_not_finite_are_refused_by_name(bad):
    features = np.zeros((3, 4), dtype=np.float32)
    features[2, 1] = bad
    with pytest.raises(FeatureError, match=r"Feature 1 of local vertex 2 is -?(nan|inf)"):
        fixed.largest_magnitude(features)


FAN_IN = 7
UP, DOWN = Direction.FORWARD, Direction.BACKWARD


def bits(value):
    return fixed.largest_magnitude(np.array([value], dtype=np.float32))


def foresight(*exchanges):
    made = fixed.Foresight(FAN_IN)
    for direction, width, magnitude in exchanges:
        made.note(fixed.ExchangeKind(direction, width), bits(magnitude))
    return made


def foreseen(*exchanges):
    found = foresight(*exchanges).next()
    return found and (found.kind.direction, found.kind.width, found.fixed_point.magnitude)


# An epoch of a model of four layers of the same width, and one of another.
EPOCH = [
    *[(UP, 64, layer) for layer in (1.0, 2.0, 3.0)],
    (UP, 10, 4.0),
    (DOWN, 10, 0.5),
    *[(DOWN, 64, layer) for layer in (0.3, 0.2, 0.1)],
]


def test_nothing_is_foreseen_where_nothing_like_it_was_seen():
    assert foreseen() is None
    assert foreseen(EPOCH[0]) is None
    assert foreseen(*EPOCH[2:5]) is None


@pytest.mark.parametrize("at", range(len(EPOCH)))
def test_from_the_third_epoch_on_each_exchange_is_foreseen_with_its_own_scale(at):
    direction, width, magnitude = EPOCH[at]
    expected = (direction, width, fixed.HEADROOM * float(np.float32(magnitude)))
    assert foreseen(*EPOCH, *EPOCH, *EPOCH[:at]) == expected


def test_the_larger_of_the_last_two_rounds_counts():
    first, second = (UP, 8, 1.0), (DOWN, 8, 3.0)
    smaller = (DOWN, 8, 2.0)
    assert foreseen(first, second, first, smaller, first) == (DOWN, 8, fixed.HEADROOM * 3.0)
    assert foreseen(first, second, first, smaller, first, smaller, first) == (
        DOWN,
        8,
        fixed.HEADROOM * 2.0,
    )


def test_an_evaluation_in_between_does_not_confuse():
    evaluation = [(UP, 64, 9.0), (UP, 64, 9.0), (UP, 64, 9.0), (UP, 10, 9.0)]
    twice = [*EPOCH, *evaluation, *EPOCH, *evaluation]
    assert foreseen(*twice) == (UP, 64, fixed.HEADROOM * 1.0)
    assert foreseen(*twice, EPOCH[0]) == (UP, 64, fixed.HEADROOM * 2.0)


@pytest.mark.parametrize("magnitude", [0.0, 3e38, 1e38])
def test_no_scale_is_foreseen_where_there_is_none(magnitude):
    assert foreseen((UP, 8, magnitude), (UP, 8, magnitude)) is None


def test_it_forgets_what_was_long_ago():
    """A training may last for days."""
    seen = foresight(*EPOCH)
    for number in range(2_000):
        seen.note(fixed.ExchangeKind(*EPOCH[number % len(EPOCH)][:2]), number)
    assert len(seen._past) <= 256
