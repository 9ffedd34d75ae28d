# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What the scenarios of the matrix have in common, and faults on some lines only."""

from dataclasses import replace
from random import Random

import pytest

from switchgnn.lab.virtual.scenario import Fault, FaultKind, Scenario

# As on running switches, in tests/recovery.
STAR = Scenario(seed=1, graph="karate", workers=4, slots=16, width=33, rounds=3, patience=30.0)
LEAF_SPINE = replace(STAR, leaves=2, spines=2)
SCENES = [pytest.param(STAR, id="star"), pytest.param(LEAF_SPINE, id="leaf-spine")]
on_each_topology = pytest.mark.parametrize("scene", SCENES)
# More than any line takes.
_FRAMES = 2_000
_SECOND = 1_000_000_000
_LONGEST_HEADER = 100


def faults_on(lines, rates, seed):
    """Draw what happens to single frames of some lines, and of no others.

    Args:
        lines: like `w2.up`.
        rates: the probability of each kind of fault.
        seed: where it is drawn from.
    """
    random = Random(repr((sorted(lines), rates, seed)))
    return tuple(
        _fault(random, kind, line, frame)
        for line in lines
        for frame in range(1, _FRAMES + 1)
        for kind in _drawn(random, rates)
    )


def _drawn(random, rates):
    draw = random.random()
    for kind, rate in rates.items():
        if draw < rate:
            return [FaultKind(kind)]
        draw -= rate
    return []


def _fault(random, kind, line, frame):
    delay = random.randrange(_SECOND // 10) if kind is FaultKind.REORDER else 0
    bits = (random.randrange(8 * _LONGEST_HEADER),) if kind is FaultKind.CORRUPT else ()
    return Fault(kind, line, frame, delay, bits)
