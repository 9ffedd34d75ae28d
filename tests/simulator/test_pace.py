# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Hosts of a simulation send when those of `host/` would, told the same at the same times."""

import pytest

from switchgnn.host import round_trip
from switchgnn.host.congestion import CongestionWindow
from switchgnn.host.round_trip import RoundTrip
from switchgnn.host.wire.header import Kind
from switchgnn.lab.simulator import NetworkOptions, run_simulation

from .scenes import Row, Sent, arrivals, scene

PICO = 1e12
FRAME = 188 * 80
FEATURES = 2_000


def replay(options, opened, heard):
    """When the features reach the switch, by the Python of `host/`.

    heard: (picoseconds, what a NOTICE tells, or None for an ACK), as worker 0 gets them.
    """
    delay = options.delay * 1e6
    trip = RoundTrip()
    control = CongestionWindow(options.pace, trip)
    size = options.pace.group_size
    sent, confirmed, free, now = 0, 0, 0.0, opened
    asked, reached, acks = {}, [], 0
    heard = list(heard)
    while True:
        while sent < FEATURES:
            allowed = control.allowance(sent - confirmed, now / PICO)
            count = min(allowed, FEATURES - sent)
            for _ in range(count):
                free = max(free, now) + FRAME
                reached.append(free + delay)
                asked[sent // size] = now
                sent += 1
            control.sent(count)
            if not count:
                break
        if sent == FEATURES:
            return reached
        wait = control.wait() * PICO
        # A token that is a rounding away is there.
        now, due = (now + wait + 1, True) if wait else (float("inf"), True)
        if heard and heard[0][0] <= now:
            (now, told), due = heard.pop(0), False
        if due:
            continue
        if told is None:
            trip.measured((now - asked[acks]) / PICO)
            acks += 1
            confirmed += size
            control.acknowledged(size)
        else:
            # Three workers send as many features, and one gets as many sums as all of them.
            control.marked(told / 3)


@pytest.mark.parametrize("threshold", [None, 440, 4])
def test_features_leave_when_those_of_the_host_would(threshold, monkeypatch):
    """Three workers send to a fourth, whose queue grows, is marked, and slows them down."""
    # The host's guess is for software; its floor of the rate does not matter at this distance.
    monkeypatch.setattr(round_trip, "_INITIAL", 4e-3)
    options = NetworkOptions(delay=1_000.0, ecn_threshold=threshold, window=256)
    packets = [Sent(w, [[w * FEATURES + i]]) for w in range(3) for i in range(FEATURES)]
    setup = scene(4, [Row(3, 1)] * (3 * FEATURES), packets)
    run = run_simulation(setup, options, opening=True, trace=True)
    reached = [at for at, worker, _ in arrivals(run, Kind.FEATURE, at_switch=True) if not worker]
    heard = [
        (each.picoseconds, None if each.kind == Kind.ACK else each.count)
        for each in run.trace
        if not each.at_switch and each.worker == 0 and each.kind in (Kind.ACK, Kind.NOTICE)
    ]
    opened = arrivals(run, Kind.ADVANCE, at_switch=False)[0][0]
    assert (run.window_cuts > 0) == (threshold is not None)
    assert reached == pytest.approx(replay(options, opened, heard), abs=1_000)
