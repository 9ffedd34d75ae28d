"""All-reduces in virtual time, beside exchanges, with faults, restarts, kills and slow workers."""

import re
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from tests.simulation.checks.reduces import expected_floats
from tests.simulation.parts import reducer
from tests.simulation.parts.reducer import ReduceJob
from tests.simulation.scenario import (
    Incident,
    IncidentKind,
    IncidentRates,
    Scenario,
    Tensor,
    TensorKind,
)

TENSORS = tuple(
    Tensor(elements, kind, pause)
    for elements, pause in ((1, 0.0), (257, 0.01), (5000, 0.0))
    for kind in TensorKind
)
CALM = Scenario(seed=1, graph="random:8:12:1", rounds=1, patience=5.0, reduces=TENSORS)
BAD = IncidentRates(loss=0.05, duplicate=0.05, late=0.05, reorder=0.05, corrupt=0.02)
# More fragments than slots, so that later ones wait for the first.
LARGE = replace(CALM, reduces=(Tensor(150_000), Tensor(150_000, TensorKind.FLOAT32)))


def run(soak, scenario):
    outcome = soak.run(scenario, keeps_trace=True)
    assert not outcome.violations
    return outcome


@pytest.mark.parametrize(
    ("leaves", "rates"),
    [
        pytest.param(0, IncidentRates(), id="calm"),
        pytest.param(0, BAD, id="faults"),
        pytest.param(2, BAD, id="leaf-spine"),
    ],
)
def test_all_are_done_beside_exchanges(soak, leaves, rates):
    # On cables each frame passes twice as many lines.
    scenario = replace(CALM, leaves=leaves, spines=leaves, workers=4, up=rates, down=rates)
    outcome = run(soak, scenario)
    assert not outcome.errors
    assert (outcome.exchanges, outcome.reduces) == (1, len(TENSORS))


@pytest.mark.whole
@pytest.mark.parametrize("kind", [IncidentKind.RESTART, IncidentKind.TEAR])
def test_a_restarted_switch_loses_none(soak, kind):
    """Its sums are lost as well, of which some workers have some. No exchange ends meanwhile."""
    rates = IncidentRates(loss=0.05)
    restart = Incident(kind, "s0", 1500, 0.1)
    outcome = run(soak, replace(LARGE, rounds=0, up=rates, down=rates, incidents=(restart,)))
    assert not outcome.errors
    assert outcome.reduces == 2


def test_a_killed_worker_is_named_by_all_others(soak):
    kill = Incident(IncidentKind.KILL, "w1", 700)
    outcome = run(soak, replace(LARGE, incidents=(kill,)))
    errors = [error for error in outcome.errors if "All-reduce" in error]
    assert len(errors) == CALM.workers - 1
    assert all(re.search(r"without a sign of life, for worker 1\.", error) for error in errors)


def test_a_worker_that_computes_for_longer_than_the_patience_is_waited_for(soak):
    slow = replace(CALM, reduces=(Tensor(300), Tensor(300, pause=4 * CALM.patience)))
    outcome = run(soak, slow)
    assert outcome.reduces == 2
    assert outcome.seconds > 2 * CALM.patience


def test_the_bound_of_floats_is_that_of_their_group():
    """Two groups: one of ones, one of a thousandth; the second one has a NaN at one worker."""
    size = 512 * 128
    values = np.concatenate([np.full(size, 1.0), np.full(size, 0.001), [np.nan]])
    tensors = (Tensor(len(values), TensorKind.FLOAT32),)
    job = ReduceJob(1, (1,), tensors, 3, mock.Mock(), 0, mock.Mock())
    with mock.patch.object(ReduceJob, "values", lambda *_: values.astype(np.float32)):
        right = expected_floats(job, 0)
    assert right.errors[0] == pytest.approx(3 * 2.0**-60 + 3 * 2.0**-24, rel=1e-14)
    small = 3 * 2.0**-69 + 3 * float(np.float32(0.001)) * 2.0**-24
    assert right.errors[size] == pytest.approx(small, rel=1e-14)
    assert np.isnan(right.values[-1])
    assert not np.isnan(right.values[:-1]).any()


def test_frames_are_split_as_on_a_link_of_hosts():
    assert not reducer.is_of_reduces(bytes(46) + b"\x0a" + bytes(20))
    assert reducer.is_of_reduces(bytes(46) + b"\x1b" + bytes(20))
    assert not reducer.is_of_reduces(bytes(20))
