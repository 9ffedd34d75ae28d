# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Splits vertices into those that train, those that validate and those that test."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.graphs.graph import SPLIT_TEST, SPLIT_TRAIN, SPLIT_VALIDATION
from switchgnn.training.errors import DatasetError

# All vertices of a smaller class are for training.
SMALLEST_SPLIT_CLASS = 3


@dataclass(frozen=True, eq=False)
class Split:
    """Three masks, bool[V] each; no vertex is in two of them, some may be in none."""

    train: NDArray[np.bool_]
    validation: NDArray[np.bool_]
    test: NDArray[np.bool_]


def split_of_codes(codes: NDArray[np.int8]) -> Split:
    """Return the masks of a Graph's split, int8[V]."""
    return Split(
        train=codes == SPLIT_TRAIN, validation=codes == SPLIT_VALIDATION, test=codes == SPLIT_TEST
    )


def split_vertices(
    labels: NDArray[np.int64] | NDArray[np.float32],
    seed: int,
    *,
    validation: float = 0.2,
    test: float = 0.2,
) -> Split:
    """Split at random; the same labels and seed give the same split.

    Labels of one dimension are split class by class: each class of at least 3 vertices has
    some in all three parts (if their shares are not 0), smaller classes are only for
    training, and vertices with a negative label are in no part. Multi-label vertices are
    split like a single class.

    Args:
        labels: int64[V], or [V, C] if multi-label.
        seed: at least 0.
        validation: the share of the vertices that validate.
        test: the share of the vertices that test; the others train.

    Returns:
        The split.

    Raises:
        DatasetError: a negative seed, or shares that leave nothing to train on.
    """
    if seed < 0:
        raise DatasetError(f"{seed} is not a seed for a split; give a whole number from 0")
    if not (validation >= 0 and test >= 0 and validation + test < 1):
        raise DatasetError(
            f"a split of {validation} for validation and {test} for test leaves nothing to train on"
        )
    groups = labels if labels.ndim == 1 else np.zeros(len(labels), dtype=np.int64)
    random = np.random.default_rng(seed)
    codes = np.zeros(len(groups), dtype=np.int8)
    for group in np.unique(groups[groups >= 0]):
        members = random.permutation(np.flatnonzero(groups == group))
        validates, tests = _shares(len(members), validation, test)
        codes[members] = SPLIT_TRAIN
        codes[members[:validates]] = SPLIT_VALIDATION
        codes[members[validates : validates + tests]] = SPLIT_TEST
    return split_of_codes(codes)


def _shares(members: int, validation: float, test: float) -> tuple[int, int]:
    """Return how many of a class validate and how many test; at least one is left to train."""
    if members < SMALLEST_SPLIT_CLASS:
        return 0, 0
    validates, tests = (
        max(1, int(share * members + 0.5)) if share else 0 for share in (validation, test)
    )
    while validates + tests >= members:
        if validates > tests:
            validates -= 1
        else:
            tests -= 1
    return validates, tests
