# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Each scenario of the matrix fails with a mistake that it is there for."""

from dataclasses import replace
from unittest import mock

import pytest

from tests.simulation.parts.control_line import VirtualStream
from tests.simulation.scenario import IncidentRates
from tests.virtual.matrix.scenes import LEAF_SPINE, STAR
from tests.virtual.matrix.test_faults import (
    CABLES_UP,
    check_calm,
    check_lines,
    check_rates,
    check_spills,
    check_void,
)
from tests.virtual.matrix.test_kills import (
    check_death_in_a_round,
    check_earlier_words,
    check_new_install,
    check_no_controller,
    check_patience,
    check_restart,
    check_second_run,
    check_silence,
)
from tests.virtual.planted.mistakes import MISTAKES, in_text

COVER = replace(STAR, send="cover")
ON_PYTHON = replace(LEAF_SPINE, backend="python", rounds=1)
W2 = ("w2.up", "w2.down")
OF_THE_MATRIX = (
    in_text(
        "sent_again_needlessly",
        0,
        "host/innetwork/block.py",
        "        self._confirmed += size\n",
        "        self._confirmed += size\n        self._repeat(group)\n",
    ),
    in_text(
        "another_process_is_the_same",
        0,
        "host/innetwork/barrier.py",
        "dst_id=self._endpoint.incarnation",
        "dst_id=0",
    ),
    in_text(
        "later_sessions_not_heeded",
        0,
        "host/innetwork/barrier.py",
        "& SESSION_MASK:\n            raise",
        "& SESSION_MASK < 0:\n            raise",
    ),
)
# A mistake, and the check that notices it.
NOTICED = {
    "lost_sums_not_recalled": lambda soak: check_rates(soak, STAR, IncidentRates(loss=0.05)),
    "repeats_counted": lambda soak: check_rates(soak, STAR, IncidentRates(duplicate=0.05)),
    "waiting_is_enough": lambda soak: check_rates(soak, STAR, IncidentRates(reorder=0.05)),
    "body_not_checked": lambda soak: check_lines(soak, STAR, W2, {"corrupt": 0.3}),
    "refuse_a_partial_sum": lambda soak: check_rates(soak, COVER, IncidentRates(loss=0.1)),
    "groups_not_sent_again": lambda soak: check_lines(soak, STAR, W2, {"loss": 0.3}),
    "keep_the_part": lambda soak: check_lines(soak, ON_PYTHON, CABLES_UP, {"loss": 0.3}),
    "next_turn_at_once": lambda soak: check_rates(soak, ON_PYTHON, IncidentRates(duplicate=0.1)),
    "sent_again_needlessly": lambda soak: check_calm(soak, STAR),
    "rows_of_the_last_round": lambda soak: check_spills(soak, STAR),
    "one_neighbour_left_out": lambda soak: check_spills(soak, STAR),
    "fetched_once": lambda soak: check_spills(soak, STAR, IncidentRates(loss=0.1)),
    "void_rounds_not_left": lambda soak: check_void(soak, STAR),
    "installed_once": lambda soak: check_restart(soak, LEAF_SPINE, 0, 0),
    "session_not_remembered": lambda soak: check_restart(soak, STAR, 0, 0),
    "turns_not_forgotten": lambda soak: check_restart(soak, STAR, 0, 0),
    "the_living_are_named": lambda soak: check_silence(soak, STAR, 1, 1),
    "no_heartbeat": lambda soak: check_death_in_a_round(soak, STAR, 1, 0),
    "done_not_said_again": lambda soak: check_patience(soak, STAR, patience=1.0),
    "silent_in_a_block": lambda soak: check_patience(soak, LEAF_SPINE, patience=1.0),
    "another_process_is_the_same": lambda soak: check_second_run(soak, replace(STAR, rounds=1)),
    "later_sessions_not_heeded": lambda soak: check_new_install(soak, STAR),
    "sessions_not_compared": lambda soak: check_earlier_words(soak, STAR),
}


@pytest.mark.parametrize("name", NOTICED)
def test_a_mistake_is_noticed(name):
    mistake = next(each for each in (*MISTAKES, *OF_THE_MATRIX) if each.name == name)
    with mistake.planted() as soak, pytest.raises(AssertionError):
        NOTICED[name](soak)


def test_switches_that_need_their_controller_are_noticed(soak):
    close = VirtualStream.close

    def forget(stream):
        close(stream)
        stream._service._device.engine = None

    with mock.patch.object(VirtualStream, "close", forget), pytest.raises(AssertionError):
        check_no_controller(soak, STAR, 0)
