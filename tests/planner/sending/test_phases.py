"""Phases of an all-to-all: matchings that add up to the matrix, in the least time there is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.planner.sending.phases import greedy_phases, shortest_phases

MAKERS = [shortest_phases, greedy_phases]
# The greedy choice may take the traffic between 1 and 2 first, and 0 gets its two amounts later.
CAUGHT = np.array([[0, 0, 0], [1, 0, 1], [1, 1, 0]])


@st.composite
def matrices(draw):
    workers, most = draw(st.integers(1, 9)), draw(st.sampled_from([1, 9, 10**6]))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    return random.integers(0, most + 1, (workers, workers)) * (
        random.random((workers, workers)) < draw(st.floats(0, 1))
    )


def makespan(phases):
    return int(phases.length.sum())


def busiest(matrix):
    """The most that a worker sends or gets, of what it does not keep."""
    traffic = matrix - np.diag(np.diag(matrix))
    return max(traffic.sum(axis=0).max(), traffic.sum(axis=1).max())


@pytest.mark.parametrize("make", MAKERS)
@given(matrix=matrices())
def test_phases_are_matchings_that_add_up_to_the_matrix(make, matrix):
    phases, found = make(matrix), np.zeros_like(matrix)
    for receiver, amount, length in zip(phases.receiver, phases.amount, phases.length, strict=True):
        assert sorted(receiver) == list(range(len(matrix)))
        assert 0 < amount.max() <= length
        assert amount.min() >= 0
        for worker, (to, much) in enumerate(zip(receiver, amount, strict=True)):
            found[worker, to] += much
    assert np.array_equal(found, matrix - np.diag(np.diag(matrix)))


@given(matrices())
def test_the_shortest_phases_take_no_longer_than_the_busiest_worker(matrix):
    assert makespan(shortest_phases(matrix)) == busiest(matrix)
    assert makespan(greedy_phases(matrix)) >= busiest(matrix)


def test_the_thesis_phases_can_take_longer():
    assert [makespan(make(CAUGHT)) for make in MAKERS] == [2, 3]


def test_phases_of_many_workers_are_few():
    matrix = np.random.default_rng(0).integers(0, 10**6, (128, 128))
    phases = shortest_phases(matrix)
    assert makespan(phases) == busiest(matrix)
    assert len(phases.length) < 127**2 / 4


@given(matrices(), st.integers(1, 3))
def test_each_frame_is_due_in_a_phase_of_its_receiver(matrix, times):
    phases = shortest_phases(matrix)
    for worker in range(len(matrix)):
        own = phases.of_worker(worker)
        for receiver in set(range(len(matrix))) - {worker}:
            frames = times * matrix[worker, receiver] % 1000
            number = np.arange(frames if matrix[worker, receiver] else 0)
            at, stay = own.due(np.full_like(number, receiver), number, np.full_like(number, frames))
            phase = np.searchsorted(phases.begin, at, side="right") - 1
            assert (phases.receiver[phase, worker] == receiver).all()
            assert (phases.amount[phase, worker] > at - phases.begin[phase]).all()
            assert (np.diff(at) >= (times == 1)).all()
            assert (np.diff(stay) >= 0).all()
