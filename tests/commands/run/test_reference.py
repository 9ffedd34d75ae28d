# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Rounds are compared as they come, and their files are removed."""

import numpy as np
import pytest
from safetensors.numpy import save_file

from switchgnn.base.errors import SwitchGNNError
from switchgnn.commands.run import reference
from switchgnn.commands.run.reference import Comparison
from switchgnn.host.worker import features_of_round, result_file
from switchgnn.planner.graphs.graph import graph_from_edges

# Each vertex of worker 0 has one in-neighbour on worker 1, and the other way around.
EDGES = [(0, 2), (1, 3), (2, 1), (3, 0)]
ASSIGNMENT = np.array([0, 0, 1, 1], dtype=np.int32)
FEATURES = np.arange(1, 13, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def comparison(tmp_path, monkeypatch):
    """One of five rounds, two of which have room at once."""
    monkeypatch.setattr(reference, "_FILE_BYTES", 2 * FEATURES.size * 8 + 1)
    source, destination = np.array(EDGES).T
    graph = graph_from_edges(source, destination, name="ring", vertices=4, directed=True)
    return Comparison(graph, ASSIGNMENT, FEATURES, rounds=5, folder=tmp_path)


def largest(index):
    return float(np.abs(features_of_round(FEATURES, index)).max())


def write(comparison, number, *, add=0, stretch=1.0, headroom=None):
    """Write the file of this number of both workers.

    With headroom the scale of rounds is so many times that of the two before, where there are two.
    One sum of each round of worker 1 is off: in fixed point by `add`, as a float by a quarter.
    """
    rounds = range(2 * number, min(2 * number + 2, 5))
    for worker in range(2):
        fixed, sums, scales = [], [], []
        for index in rounds:
            features = features_of_round(FEATURES, index)
            capacity = largest(index)
            if headroom is not None and index > 1:
                capacity = headroom * max(largest(index - 1), largest(index - 2))
            scale = (2**31 - 1) / capacity
            received = np.zeros_like(features, dtype=np.int64)
            for source, destination in EDGES:
                received[destination] = np.rint(features[source].astype(np.float64) * scale)
            mine = received[worker == ASSIGNMENT]
            mine[0, 0] += add * worker
            fixed.append(mine.astype(np.int32))
            sums.append((mine / scale).astype(np.float32))
            sums[-1][0, 0] += add * worker * 0.25
            scales.append(scale * (stretch if worker else 1))
        path = result_file(comparison.output(worker), number)
        arrays = {"fixed": np.stack(fixed), "sums": np.stack(sums), "scale": np.array(scales)}
        save_file(arrays, path)


def test_files_are_compared_and_removed_once_all_workers_have_written_them(comparison, tmp_path):
    assert comparison.rounds_per_file == 2
    for number in range(2):
        write(comparison, number)
        comparison.written(0)
        assert len(list(tmp_path.iterdir())) == 2
        comparison.written(1)
        assert not list(tmp_path.iterdir())
    write(comparison, 2)
    verdict = comparison.finish()
    assert not list(tmp_path.iterdir())
    assert verdict.wrong_sums == 0
    assert verdict.max_error <= verdict.error_bound


def test_a_worker_may_be_files_ahead(comparison, tmp_path):
    write(comparison, 0)
    write(comparison, 1, add=1)
    comparison.written(1)
    comparison.written(1)
    assert len(list(tmp_path.iterdir())) == 4
    comparison.written(0)
    comparison.written(0)
    assert not list(tmp_path.iterdir())
    write(comparison, 2)
    assert comparison.finish().wrong_sums == 2


@pytest.mark.parametrize("wrong", range(3))
def test_wrong_sums_of_any_round_count(comparison, wrong):
    for number in range(3):
        write(comparison, number, add=number == wrong)
    verdict = comparison.finish()
    # The last file has one round.
    assert verdict.wrong_sums == (1 if wrong == 2 else 2)
    assert verdict.max_error == pytest.approx(0.25)


def test_other_scales_name_the_round(comparison):
    write(comparison, 0)
    write(comparison, 1, stretch=1.5)
    with pytest.raises(SwitchGNNError, match="Round 3: the workers used different scales"):
        comparison.finish()


@pytest.mark.parametrize(("headroom", "right"), [(4, True), (2, False), (8, False)])
def test_a_scale_that_was_foreseen_is_right(comparison, headroom, right):
    """It is for four times the larger one of the two rounds before, and no other."""
    for number in range(3):
        write(comparison, number, headroom=headroom)
    verdict = comparison.finish()
    # Three of five rounds have two before them.
    assert verdict.wrong_sums == (0 if right else 3 * FEATURES.size)
