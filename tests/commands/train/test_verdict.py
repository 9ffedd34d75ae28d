# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The last lines of a training, from numbers made up here."""

from dataclasses import replace

import pytest

from switchgnn.commands.train.display import verdict_lines
from tests.commands.train.test_report import report


def made(transport, seconds, *links, bandwidth=None, waiting=0.05):
    """Each link has the bytes up and down of an epoch, in frames of 1,000 bytes."""
    traffic = [
        {"bytes_up": up, "bytes_down": down, "frames_up": up / 1e3, "frames_down": down / 1e3}
        for up, down in links
    ]
    return replace(
        report(transport),
        **{"epoch_seconds": seconds, "epoch_traffic": traffic, "bandwidth": bandwidth},
        split={"waiting": waiting},
    )


SWITCH = (100_000, 500_000), (200_000, 400_000)
HOST = (900_000, 100_000), (400_000, 600_000)
PARTIAL = (300_000, 100_000), (400_000, 100_000)


def test_the_fastest_and_the_leanest_path_may_be_two():
    reports = [
        made("switch", 0.1, *SWITCH, bandwidth=50),
        made("host", 0.2, *HOST, bandwidth=50),
        made("host-partial", 0.4, *PARTIAL, bandwidth=50),
        replace(report("local", traffic=False), epoch_traffic=[]),
    ]
    assert verdict_lines(reports) == [
        "Time of an epoch: switch 100 ms; host, the fastest path between hosts, 200 ms. "
        "The switch wins: it takes 0.50 times the time.",
        "Bytes of an epoch: switch 1.20 MB; host-partial, the leanest path between hosts, 0.90 MB. "
        "The switch loses: it takes 1.33 times the bytes.",
        # 500 kB at 50 Mbit/s, and 900 kB.
        "The busiest link of switch (worker 0, down) needs 80 ms of an epoch for 0.50 MB at "
        "50 Mbit/s, 80%: the network is the limit. The busiest link of host (worker 0, up) needs "
        "144 ms of an epoch for 0.90 MB at 50 Mbit/s, 72%: the network is the limit.",
    ]


def test_a_network_with_time_to_spare_is_not_the_limit():
    reports = [made(name, 1.0, *SWITCH, bandwidth=50) for name in ("switch", "host")]
    time, size, why = verdict_lines(reports)
    assert time.endswith("Both take the same time.")
    assert size.endswith("Both take the same bytes.")
    assert why.count("80 ms of an epoch for 0.50 MB at 50 Mbit/s, 8%: the network is not") == 2


def test_without_a_limit_frames_and_waiting_are_told():
    reports = [made("switch", 0.3, *SWITCH, waiting=0.2), made("host", 0.1, *HOST)]
    time, _, why = verdict_lines(reports)
    assert time.endswith("The switch loses: it takes 3.00 times the time.")
    assert "an epoch takes 1,200 frames of 1,000 bytes, and workers wait 200 ms" in why
    assert "an epoch takes 2,000 frames of 1,000 bytes, and workers wait 50 ms" in why


@pytest.mark.parametrize("names", [("switch",), ("switch", "local"), ("host", "host-partial")])
def test_without_both_kinds_there_is_nothing_to_compare(names):
    assert verdict_lines([made(name, 0.1, *SWITCH) for name in names]) == []
