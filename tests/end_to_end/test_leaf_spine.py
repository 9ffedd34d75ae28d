"""`switchgnn run --topology leaf-spine`: every sum exact, and what crosses is what was planned."""

import json

import pytest

from switchgnn.host.wire.header import BARRIER_FRAME_BYTES
from tests.end_to_end.conftest import LEAF_SPINE, PAPER, run_json, succeeded
from tests.support.markers import COMBINATIONS, on_python, some_of

# 33 numbers are a frame of 32 and one of 8, or rows of 16, 16 and 2, which make one of 8.
ROW_BYTES, NARROWEST_FRAME_BYTES = 188 + 92, 92
IN_BUNDLES = ("--strategy", "best", "--rows", 4, "--lanes", 16)
REPLICAS = ("--partition", "vertex-cut", "--lanes", 32)
COVER = (*PAPER, "--send", "cover", "--lanes", 32)


@pytest.mark.parametrize(
    ("combination", "workers", "leaves", "spines", "how"),
    some_of(
        lambda where, shape: (where, shape) in {(0, 1), (0, 2), (0, 3), (2, 0), (2, 2), (2, 3)},
        COMBINATIONS,
        [
            pytest.param(4, 2, 1, (*PAPER, "--lanes", 32), id="4"),
            # With relays on cables, which count what they carry.
            pytest.param(7, 4, 2, (*COVER, "--faults", "cables.loss=0"), id="7"),
            pytest.param(6, 3, 2, IN_BUNDLES, id="bundles"),
            pytest.param(4, 2, 2, REPLICAS, id="vertex cut"),
        ],
    ),
)
def test_every_sum_is_exact(combination, workers, leaves, spines, how):
    report = run_json(
        combination,
        *LEAF_SPINE,
        *("--leaves", leaves, "--spines", spines, "--workers", workers),
        *("--graph", "karate", "--slots", 16, "--features", 33, *how),
    )
    leaf_spine = report["leaf_spine"]
    assert not any(leaf_spine["faults_injected"].values())
    assert bool(leaf_spine["bytes_up"]) is ("--faults" in how or "mininet" in combination)
    assert (leaf_spine["leaves"], leaf_spine["spines"]) == (leaves, spines)
    assert leaf_spine["partial_sums"] == leaf_spine["planned_partial_sums"] > 0
    check_bytes(report, leaf_spine)
    # Copies cost what pairs of workers on two leaves send each other, both ways through a spine.
    assert leaf_spine["host_mtu"] == report["host_mtu"] == 1500
    for name in ("host", "host_partial"):
        crossing = leaf_spine[f"{name}_bytes_up"]
        assert crossing == leaf_spine[f"{name}_bytes_down"]
        assert 0 < crossing < report[f"{name}_bytes_up"]


def check_bytes(report, leaf_spine):
    """Only requests of workers exceed the plan."""
    fragments = 2 if report["lanes"] == 32 else 3
    meetings = report["rounds"] * (1 + report["blocks"] * fragments)
    barriers = meetings * leaf_spine["leaves"] * BARRIER_FRAME_BYTES
    row = ROW_BYTES if fragments == 2 else 2 * 124 + 92
    data = leaf_spine["planned_partial_sums"] // fragments * row
    assert leaf_spine["planned_bytes_up"] == data + barriers
    if leaf_spine["bytes_up"] is None:
        return
    repairs = report["repairs"]
    assert leaf_spine["bytes_up"] >= leaf_spine["planned_bytes_up"]
    assert leaf_spine["bytes_down"] >= leaf_spine["planned_bytes_down"]
    if not repairs["recalls"] and not repairs["barriers_repeated"]:
        assert leaf_spine["bytes_up"] == leaf_spine["planned_bytes_up"]
        assert leaf_spine["bytes_down"] == leaf_spine["planned_bytes_down"]


@pytest.mark.parametrize(
    ("combination", "where"),
    [
        *some_of(
            lambda where, links: (where, links) in {(0, 0), (0, 2), (2, 0)},
            *(COMBINATIONS, ["", "workers.", "cables."]),
        ),
        on_python(""),
    ],
)
def test_faults_on_links_and_cables(combination, where):
    kinds = {"loss": 0.05, "duplicate": 0.02, "reorder": 0.05, "corrupt": 0.01}
    said = ",".join(f"{where}{kind}={rate}" for kind, rate in kinds.items())
    report = run_json(
        combination,
        *LEAF_SPINE,
        *("--graph", "karate", "--slots", 16, "--features", 33, "--faults", f"{said},seed=7"),
        *(() if where else IN_BUNDLES),
    )
    everywhere = sum(report["faults_injected"].values())
    on_cables = sum(report["leaf_spine"]["faults_injected"].values())
    assert (on_cables > 0) is (where != "workers.")
    assert (everywhere > on_cables) is (where != "cables.")
    assert bool(report["leaf_spine"]["bytes_up"]) is (
        where != "workers." or "mininet" in combination
    )


@pytest.mark.parametrize(
    ("combination", "operation"),
    [
        *some_of(lambda where, turn: where == 2 * turn, COMBINATIONS, ["max", "min"]),
        on_python("max"),
    ],
)
def test_maxima_and_minima(combination, operation):
    """Of one switch, and in bundles, whose parts go up and are recalled."""
    said = ("--graph", "karate", "--slots", 16, "--features", 33, "--operation", operation)
    for how in ((), (*LEAF_SPINE, *IN_BUNDLES, "--faults", "loss=0.05,duplicate=0.05,seed=7")):
        assert run_json(combination, *said, *how)["operation"] == operation


def test_training_over_leaves_and_spines():
    printed = succeeded(
        *("train", "--data", "karate", "--epochs", 3, "--dropout", 0, "--json"),
        *("--workers", 4, "--fabric", "loopback", *LEAF_SPINE, "--spines", 2),
        *("--transport", "switch", "--transport", "host", "--transport", "local"),
    ).stdout
    events = [json.loads(line) for line in printed.splitlines()]
    switch, host, local = (event for event in events if event["event"] == "finished")
    for report in (switch, host):
        assert report["losses"] == pytest.approx(local["losses"], abs=1e-4)
    assert host["leaf_spine"] is local["leaf_spine"] is None
    # The spines' counters of both directions and all layers.
    leaf_spine = switch["leaf_spine"]
    assert leaf_spine["partial_sums"] == leaf_spine["planned_partial_sums"] > 0
    assert leaf_spine["planned_bytes_up"] > leaf_spine["partial_sums"] * NARROWEST_FRAME_BYTES


@pytest.mark.parametrize("command", ["run", "train"])
def test_the_partition_knows_the_leaves(command):
    what = ("--graph", "karate") if command == "run" else ("--data", "karate", "--epochs", 1)
    printed = succeeded(
        *(command, *what, "--strategy", "best", "--fabric", "loopback", "--json", "--slots", 16),
        *(*LEAF_SPINE, "--leaves", 2, "--workers", 4),
    ).stdout
    report = json.loads(printed.splitlines()[-1])
    assert report["partition"] == "metis-leaf-spine:2"
    if command == "run":
        assert report["block_strategy"].endswith("-cover:2:1")
        assert any("spread over the workers" in sentence for sentence in report["why"])
