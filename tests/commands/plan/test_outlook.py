# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Whether the switch pays, as `switchgnn plan` says it."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from switchgnn.commands.application import app
from switchgnn.planner import load_graph, partition_workers

RUNNER = CliRunner()
GRAPH, WORKERS, WIDTH = "digits", 8, 64
# An Ethernet, an IPv4 and a SwitchGNN header, and what is left of the largest packet.
HEADERS, MTU = 60, 1_500
ROOM = MTU + 14 - HEADERS


def plan_json(*words):
    result = RUNNER.invoke(app, ["plan", *map(str, words), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def planned(*words):
    return plan_json(GRAPH, "--workers", WORKERS, *words)


def packed(rows):
    """Bytes of the frames of each pair of workers."""
    run = rows * 4 * WIDTH
    return run + -(-run // (ROOM - ROOM % 4)) * HEADERS


def copies():
    """Rows from worker to worker, one edge at a time."""
    graph = load_graph(GRAPH)
    owner = partition_workers(graph, WORKERS, 0)
    pairs = {
        (int(u), int(owner[v]))
        for v in range(graph.vertices)
        for u in graph.indices[graph.indptr[v] : graph.indptr[v + 1]]
        if owner[u] != owner[v]
    }
    rows = np.zeros((WORKERS, WORKERS), dtype=np.int64)
    for u, receiver in pairs:
        rows[owner[u], receiver] += 1
    return rows


def test_hosts_are_compared_as_they_are():
    """Rows are packed into frames, and every link is counted."""
    told = planned("--slots", 10_000)
    sizes = packed(copies())
    assert told["loads"]["host"] == {
        "up": sizes.sum(),
        "down": sizes.sum(),
        "busiest": max(sizes.sum(axis=0).max(), sizes.sum(axis=1).max()),
    }
    assert told["loads"]["host-partial"]["up"] < told["loads"]["host"]["up"]
    assert told["loads"]["switch"]["up"] == told["packets_up"] * told["frame_bytes"]


@pytest.mark.parametrize("directions", ["forward", "both"])
def test_the_least_time_is_chosen_and_said(directions):
    told = planned("--slots", 10_000, "--directions", directions)
    assert set(told["seconds"]) == {"switch", "host-partial", "host"}
    assert told["chosen"] == min(told["seconds"], key=told["seconds"].get)
    said = "both directions" if directions == "both" else "an exchange"
    assert said in told["why"]
    assert told["chosen"] in told["why"]
    assert f"{MTU:,} bytes" in told["why"]


def test_time_by_hand_where_links_are_all_that_counts():
    """At a kilobit per second the fullest link takes all the time, or one up and one down."""
    slow = ("--bandwidth", 0.001, "--delay", 0)
    told = planned("--slots", 10_000, *slow)
    for way, load in told["loads"].items():
        fullest = load["busiest"] * 8 / 1e3
        assert fullest <= told["seconds"][way] <= 2 * fullest, way


def test_a_slow_switch_with_few_slots_does_not_pay_and_auto_leaves_all():
    slow = ("--slots", 64, "--recirculation-rate", 2e5)
    told = planned(*slow)
    assert told["why"].startswith("The switch does not pay: ")
    assert told["chosen"] == "host-partial"
    assert told["left"] == {"forward": 0}
    auto = planned(*slow, "--strategy", "auto")
    assert auto["why"].endswith("so all is left to the hosts.")
    assert auto["packets_up"] == 0
    assert auto["left"]["forward"] > 0
    assert auto["seconds"]["host-partial"] == told["seconds"]["host-partial"]


def test_a_mixed_plan_says_for_how_many_it_pays():
    told = plan_json(
        *("digits:80", "--workers", 8, "--memory", "200kB", "--strategy", "auto"),
        *("--recirculation-rate", 1.2e9),
    )
    assert told["chosen"] == "mixed"
    assert "of the destinations" in told["why"]
    assert told["left"]["forward"] > 0
    assert told["packets_up"] > 0
    assert told["loads"]["mixed"]["up"] > told["packets_up"] * told["frame_bytes"]


def test_over_leaves_nothing_is_predicted():
    told = planned("--slots", 10_000, "--leaves", 2)
    assert (told["seconds"], told["chosen"]) == ({}, None)
    assert "not predicted" in told["why"]


def test_hosts_with_longer_packets_send_fewer_bytes():
    short, long = (planned("--mtu", mtu)["loads"]["host"]["up"] for mtu in (MTU, 9_000))
    assert long < short
