# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A run with `--pcap`: its files tell what the plan says, and are whole however it ends."""

import json
import os
import signal
import subprocess
import sys

import pytest

from switchgnn.host.wire.header import fragment_words
from switchgnn.planner.plan.files import read_manifest, read_worker_part
from tests.support.commands import switchgnn
from tests.support.markers import COMBINATIONS, some_of, words_of
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

WORKERS, FEATURES, ROUNDS = 3, 33, 2
PLANNED = ("--workers", WORKERS, "--slots", 8)
LOOPBACK = ("--target", "embedded", "--fabric", "loopback")


def succeeded(*arguments, **where):
    result = switchgnn(*arguments, **where)
    assert result.returncode == 0, result.stderr
    return result


def chapters(folder):
    lines = succeeded("capture", folder, "--story", "--json").stdout.splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan") / "plan"
    succeeded("plan", "karate", *PLANNED, "--out", folder)
    return folder


def first_features(party):
    sent = party["sent"]
    return sent.get("feature", 0) - sent.get("again", 0) - sent.get("raw", 0)


@pytest.mark.parametrize(
    ("combination", "faults"),
    some_of(lambda where, faults: where == 0 or not faults, COMBINATIONS, ["", "loss=0.05,seed=3"]),
)
def test_the_story_is_the_plan(combination, faults, plan, tmp_path):
    folder = tmp_path / "kept"
    run = ("--graph", "karate", "--features", FEATURES, "--rounds", ROUNDS, "--faults", faults)
    result = succeeded(
        "run", *words_of(combination), *PLANNED, *run, "--pcap", folder, "--json"
    )  # fmt: skip
    report = json.loads(result.stdout)
    assert sorted(path.name for path in folder.iterdir()) == ["w0.pcap", "w1.pcap", "w2.pcap"]
    assert report["pcap"] == [str(folder / f"w{worker}.pcap") for worker in range(WORKERS)]
    told = {(each["round"], each["block"]): each["parties"] for each in chapters(folder)}
    blocks = read_manifest(plan).blocks
    assert blocks > 2
    assert sorted(told) == [
        (number, block) for number in range(1, ROUNDS + 1) for block in range(blocks + 1)
    ]  # fmt: skip
    fragments = len(fragment_words(FEATURES, read_manifest(plan).lanes))
    for worker in range(WORKERS):
        part = read_worker_part(plan, worker)
        for number in range(1, ROUNDS + 1):
            for block in range(1, blocks + 1):
                party = told[number, block].get(f"w{worker}", {"sent": {}, "got": {}})
                sent, awaited = (
                    int(each[block] - each[block - 1]) * fragments
                    for each in (part.send_indptr, part.receive_indptr)
                )
                # Frames lost on the way up do not reach the switch the first time.
                assert first_features(party) == sent
                assert party["got"].get("sum", 0) + party["sent"].get("raw", 0) >= (
                    awaited if not faults else 0
                )
                assert party["sent"]["done"] >= fragments
    if faults:
        kinds = {
            kind for parties in told.values() for each in parties.values() for kind in each["sent"]
        }
        assert kinds & {"recall", "again"}
    else:
        assert sum(each["features_sent"] for each in report["per_worker"]) == sum(
            first_features(each) for parties in told.values() for each in parties.values()
        )


def test_every_frame_is_in_the_files(tmp_path):
    """The sockets' counters of frames and bytes agree."""
    folder = tmp_path / "kept"
    run = ("run", *LOOPBACK, *PLANNED, "--graph", "karate", "--pcap", folder, "--json")
    report = json.loads(succeeded(*run).stdout)
    for worker in report["per_worker"]:
        link = folder / f"w{worker['worker']}.pcap"
        lines = succeeded("capture", link, "--json").stdout.splitlines()
        packets = [json.loads(line) for line in lines]
        up = [each["bytes"] for each in packets if each["sender"] == link.stem]
        down = [each["bytes"] for each in packets if each["receiver"] == link.stem]
        assert (sum(up), sum(down)) == (worker["bytes_up"], worker["bytes_down"])
        assert all(each["problem"] is None for each in packets)
        times = [each["time_ns"] for each in packets]
        assert times == sorted(times)


def test_cables_are_recorded_too(tmp_path):
    folder = tmp_path / "kept"
    leaves = ("--topology", "leaf-spine", "--leaves", 2, "--spines", 2, "--workers", 4)
    run = ("run", *LOOPBACK, *leaves, "--graph", "karate", "--rounds", 1, "--pcap", folder)
    report = json.loads(succeeded(*run, "--json").stdout)
    cables = [f"l{leaf}s{spine}.pcap" for leaf in (0, 1) for spine in (0, 1)]
    assert sorted(path.name for path in folder.iterdir()) == [
        *cables, *(f"w{worker}.pcap" for worker in range(4))
    ]  # fmt: skip
    assert not any(report["faults_injected"].values())
    parties = [each["parties"] for each in chapters(folder) if each["block"]]
    from_leaves = sum(
        first_features(party)
        for each in parties
        for name, party in each.items()
        if name.startswith("leaf-")
    )
    assert from_leaves == report["leaf_spine"]["partial_sums"]
    at_spines = [
        party["got"] for each in parties for name, party in each.items() if "spine" in name
    ]
    assert sum(got.get("feature", 0) for got in at_spines) >= from_leaves > 0


def test_files_are_whole_after_ctrl_c(tmp_path):
    folder = tmp_path / "kept"
    run = ["run", *LOOPBACK, "--graph", "karate", "--rounds", "100000", "--pcap", str(folder)]
    command = [sys.executable, "-m", "switchgnn.commands", *run]
    where = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=where
    ) as process:
        try:
            path = folder / "w3.pcap"
            wait_until(lambda: path.exists() and path.stat().st_size > 50_000, 60)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=seconds_here(60))
        finally:
            process.kill()
    assert process.returncode == 130
    result = succeeded("capture", folder, "--limit", 5)
    assert len(result.stdout.splitlines()) == 5
    assert "Error" not in succeeded("capture", folder, "--kind", "notice").stderr


@pytest.mark.parametrize("command", [("run",), ("train", "--data", "karate")])
def test_a_folder_that_cannot_be_written_is_refused_first(command, tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "w0.pcap").write_text("")
    for folder, words in (("none/kept", "No such file"), ("taken", "another run")):
        result = switchgnn(*command, *LOOPBACK, "--pcap", tmp_path / folder)
        assert result.returncode == 2
        [line] = [line for line in result.stderr.splitlines() if line.strip()]
        assert line.startswith("Error: ") and words in line


def test_a_training_over_hosts(tmp_path):
    pytest.importorskip("torch_geometric")
    folder = tmp_path / "kept"
    train = ("train", "--data", "karate", "--workers", 2, "--epochs", 1, "--dropout", 0)
    both = ("--transport", "host", "--transport", "switch")
    result = succeeded(*train, *LOOPBACK, *both, "--pcap", folder)
    assert f"Packets of 2 links: {folder / 'host'}" in result.stdout
    told = chapters(folder / "host")
    assert all(each["direct"] for each in told)
    parties = [each["parties"] for each in told]
    # Each frame that one of the two has sent has come to the other one.
    for each in parties:
        assert first_features(each["w0"]) == each["w1"]["got"]["feature"] - repeated(each["w0"])
    assert any(not each["direct"] for each in chapters(folder / "switch"))


def repeated(party):
    return party["sent"].get("again", 0)
