"""A run with `--pcap`: its files tell what the plan says, and are whole however it ends."""

import json
import os
import signal

import pytest

from switchgnn.host.wire.header import fragment_words
from switchgnn.planner.plan.files import read_manifest, read_worker_part
from tests.end_to_end.conftest import LOOPBACK, succeeded
from tests.support.commands import started
from tests.support.markers import COMBINATIONS, some_of, words_of
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

WORKERS, FEATURES, ROUNDS = 3, 33, 2
PLANNED = ("--strategy", "paper", "--workers", WORKERS, "--slots", 8, "--lanes", 32)


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
    some_of(
        lambda where, faults: where == 0 or (where == 2 and not faults),
        *(COMBINATIONS, ["", "loss=0.05,seed=3"]),
    ),
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
    lines = succeeded("capture", folder, "--summary", "--json").stdout.splitlines()
    told = {(each["round"], each["block"]): each["parties"] for each in map(json.loads, lines)}
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
    lines = succeeded("capture", folder, "--json").stdout.splitlines()
    everything = [json.loads(line) for line in lines]
    for worker in report["per_worker"]:
        link = f"w{worker['worker']}"
        packets = [each for each in everything if each["link"] == link]
        up = [each["bytes"] for each in packets if each["sender"] == link]
        down = [each["bytes"] for each in packets if each["receiver"] == link]
        assert (sum(up), sum(down)) == (worker["bytes_up"], worker["bytes_down"])
        assert all(each["problem"] is None for each in packets)
        times = [each["time_ns"] for each in packets]
        assert times == sorted(times)


def test_files_are_whole_after_ctrl_c(tmp_path):
    folder = tmp_path / "kept"
    run = ("run", *LOOPBACK, "--graph", "karate", "--rounds", "100000", "--pcap", folder)
    with started(*run, log=tmp_path / "log", scratch=tmp_path) as child:
        path = folder / "w3.pcap"
        wait_until(lambda: path.exists() and path.stat().st_size > 50_000, 60)
        os.kill(child.pid, signal.SIGINT)
        assert child.wait(seconds_here(60)) == 130
    assert len(succeeded("capture", folder, "--limit", 5).stdout.splitlines()) == 5
    assert "Error" not in succeeded("capture", folder, "--kind", "notice").stderr
