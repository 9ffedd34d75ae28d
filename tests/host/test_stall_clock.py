# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
from switchgnn.host.congestion import StallClock
from tests.support.hand_clock import HandClock


def test_it_counts_what_is_waited_and_what_goes_on():
    clock = HandClock(10.0)
    waiting = StallClock(clock)
    clock.seconds += 5
    assert waiting.seconds == 0
    with waiting:
        clock.seconds += 2
        # Somebody who looks meanwhile.
        assert waiting.seconds == 2
        clock.seconds += 1
    clock.seconds += 7
    assert waiting.seconds == 3
    with waiting:
        clock.seconds += 0.5
    assert waiting.seconds == 3.5
