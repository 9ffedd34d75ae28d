"""The order of coflows, and their classes, over all coflows of three epochs and layers."""

from itertools import permutations, product

import pytest

from switchgnn.host.base.coflow import Coflow, CoflowType, TrafficClass

FORWARD, BACKWARD, REDUCE = CoflowType
LAYERS = 3
ALL = [Coflow(*each) for each in product(range(3), CoflowType, range(LAYERS))]


def test_the_order_is_strict_and_total():
    assert all((a < b) + (b < a) + (a == b) == 1 for a, b in product(ALL, ALL))
    assert all(a < c for a, b, c in permutations(ALL, 3) if a < b < c)
    assert len(set(ALL)) == len(ALL)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        pytest.param(Coflow(4, BACKWARD, 0), Coflow(5, FORWARD, 0), id="I: the earlier epoch"),
        pytest.param(Coflow(4, BACKWARD, 1), Coflow.bucket(4, 2), id="II: before an all-reduce"),
        pytest.param(Coflow(4, BACKWARD, 2), Coflow.bucket(4, 0), id="II: however far behind"),
        pytest.param(Coflow(5, FORWARD, 1), Coflow.bucket(4, 2), id="III: of a layer in front"),
        pytest.param(Coflow(5, FORWARD, 1), Coflow.bucket(4, 1), id="III: of the same layer"),
        pytest.param(Coflow.bucket(4, 0), Coflow.bucket(4, 1), id="III: the front bucket"),
    ],
)
def test_who_goes_first(first, then):
    assert first < then


def can_meet(a, b):
    """Say whether two coflows can be under way at once.

    A bucket begins in the backward pass of an epoch, and its layer of the next one waits for it.
    """
    if REDUCE in (a.type, b.type):
        bucket, other = (a, b) if a.type is REDUCE else (b, a)
        if other.type is REDUCE:
            return bucket.micro_batch == other.micro_batch
        if other.type is BACKWARD:
            return other.micro_batch == bucket.micro_batch - 1
        return other.micro_batch == bucket.micro_batch and other.layer <= bucket.layer
    return True


@pytest.mark.parametrize("early", range(LAYERS + 1))
def test_what_goes_first_has_no_lower_class(early):
    pairs = [(a, b) for a, b in permutations(ALL, 2) if a < b and can_meet(a, b)]
    number = {each: each.traffic_class(early).number for each in ALL}
    assert all(number[a] >= number[b] for a, b in pairs)
    assert {number[each] for each in ALL if each.type is REDUCE} == {
        *([1] if early else []),
        *([0] if early < LAYERS else []),
    }


def test_code_points():
    assert [each.dscp for each in TrafficClass] == [1, 8, 0, 48]
