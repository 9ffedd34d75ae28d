# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Faults on all links and cables of other numbers of leaves and spines."""

from contextlib import ExitStack

import pytest

from tests.support.fabrics import Team
from tests.support.leaf_spine_fabrics import leaf_spine_bed
from tests.support.markers import MININET_TARGETS, some_of

SHAPES = [(3, 2, "multicast"), (2, 1, "cover"), (2, 2, "cover")]


@pytest.mark.parametrize(
    ("target", "shape"),
    some_of(lambda target, shape: target == 0 and shape == 1, MININET_TARGETS, SHAPES),
)
def test_other_shapes(tmp_path, target, shape):
    leaves, spines, send = shape
    faults = "loss=0.1,duplicate=0.1,reorder=0.1,corrupt=0.02"
    shape = {"leaves": leaves, "spines": spines, "send": send}
    with leaf_spine_bed(tmp_path, target, **shape) as bed, ExitStack() as stack:
        bed.disturb(f"{faults},seed=6")
        team = Team(bed, stack, faults=f"{faults},seed=7")
        assert team.run(2) == 0, team.errors
        assert not team.errors
