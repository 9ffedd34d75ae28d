# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn capture` as a user types it."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from switchgnn.base.described import network_text
from switchgnn.host.wire.header import Kind
from tests.capture.drawn import control, feature, flipped
from tests.capture.written import pcap
from tests.network.usual import described_star
from tests.support.commands import switchgnn
from tests.support.markers import needs, whole
from tests.support.speed import seconds_here

pytestmark = whole
TIME = 1_700_000_000 * 10**9


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Two rounds of a block of two workers; one packet is not sound, and one is none of ours."""
    frames = []
    for number in (1, 2):
        frames += [feature(w, src_id=10 + w, block_id=1, round=number) for w in (0, 1)]
        frames.append(control(Kind.DONE, 0, block_id=1, round=number))
        frames.append(control(Kind.ADVANCE, 0, down=True, block_id=1, round=number))
    frames += [flipped(feature(0, src_id=99, block_id=1, round=2), 80), bytes(60)]
    path = tmp_path_factory.mktemp("capture") / "link.pcap"
    path.write_bytes(pcap([(TIME + 1000 * place, each) for place, each in enumerate(frames)]))
    return path


def told(*arguments):
    result = switchgnn("capture", *arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines(), result.stderr


def test_a_line_for_each_packet_and_the_counts(file):
    lines, counts = told(file)
    assert len(lines) == 9
    assert lines[0].startswith("0.000000 w0 > switch feature session 1 round 1 block 1 ")
    assert "UNSOUND: checksum" in lines[-1]
    assert "9 packets: 4 feature, 2 done, 2 advance; 1 not sound; 1 frames of other" in counts


def test_the_names_of_a_network_file(file, tmp_path):
    network = described_star(2)
    first, second = network.workers
    # Worker 0 is where the file's worker 1 would be.
    swapped = (replace(first, mac=second.mac), replace(second, mac=first.mac))
    path = tmp_path / "network.toml"
    path.write_text(network_text(replace(network, workers=swapped)))
    lines, _ = told(file, "--network", path, "--limit", 1)
    assert lines[0].startswith("0.000000 w1 > s0 feature ")


@pytest.mark.parametrize(
    ("words", "number"),
    [
        (("--kind", "feature"), 5),
        (("--kind", "done", "--kind", "advance"), 4),
        (("--round", 1), 4),
        (("--round", 3), 0),
        (("--block", 1, "--kind", "done", "--round", 2), 1),
        (("--block", 0), 0),
        (("--worker", 1), 2),
        (("--worker", 0, "--worker", 1, "--round", 1), 4),
        (("--limit", 3), 3),
    ],
)
def test_filters(file, words, number):
    assert len(told(file, *words)[0]) == number


def test_objects(file):
    lines, _ = told(file, "--json", "--kind", "done")
    objects = [json.loads(line) for line in lines]
    assert [each["round"] for each in objects] == [1, 2]
    assert objects[0]["time_ns"] == TIME + 2000
    assert objects[0]["body"]["workers"] == []


def test_the_story(file):
    lines, counts = told(file, "--story")
    assert len(lines) == 6
    assert lines[0].startswith("session 1, round 1, block 1: 0.000000 to 0.000003 s, 1 fragment")
    assert lines[1] == "  w0 sent 1 feature, 1 done; got 1 advance"
    assert "1 not sound" in counts
    [one] = told(file, "--story", "--json", "--round", 2)[0]
    assert json.loads(one)["parties"]["w1"]["sent"] == {"feature": 1}


def test_details_are_those_of_scapy(file):
    lines, _ = told(file, "--details", "--limit", 1)
    assert any("SwitchGNN" in line for line in lines)
    assert any("Block_id" in line and "= 1" in line for line in lines)


def piped(command, content=b""):
    """Run with a shell and bytes on the standard input."""
    return subprocess.run(
        ["bash", "-c", command.replace("switchgnn", f"{sys.executable} -m switchgnn.commands")],
        input=content,
        capture_output=True,
        check=False,
        timeout=seconds_here(60),
    )


def test_from_a_pipe(file):
    result = piped("switchgnn capture -", file.read_bytes())
    assert result.returncode == 0
    assert len(result.stdout.splitlines()) == 9


def test_ctrl_c_ends_with_the_counts(file):
    """Of a file or pipe that has not ended not all was shown, so it is no success."""
    command = [sys.executable, "-m", "switchgnn.commands", "capture", "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            process.stdin.write(file.read_bytes())
            process.stdin.flush()
            shown = [process.stdout.readline() for _ in range(9)]
            process.send_signal(signal.SIGINT)
            rest, said = process.communicate(timeout=seconds_here(20))
        finally:
            process.kill()
    assert process.returncode == 130
    assert all(shown) and not rest
    assert said.startswith(b"9 packets: 4 feature, 2 done, 2 advance; 1 not sound")
    assert b"Traceback" not in said


def test_nobody_reads_on(file, tmp_path):
    path = tmp_path / "long.pcap"
    path.write_bytes(pcap([(TIME, feature())] * 5000))
    result = piped(f"set -o pipefail; switchgnn capture {path} | head -1")
    assert result.returncode == 141
    assert b"Traceback" not in result.stderr and b"Broken" not in result.stderr


def refused(*arguments):
    result = switchgnn("capture", *arguments)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    [line] = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    return line, result.stdout.splitlines()


def test_a_damaged_file_is_read_up_to_there(file, tmp_path):
    path = tmp_path / "cut.pcap"
    path.write_bytes(file.read_bytes()[:-130])
    line, shown = refused(path)
    assert "is damaged at byte" in line and "ends in the middle of a packet" in line
    assert len(shown) == 8


def test_sentences(tmp_path, file):
    (tmp_path / "text").write_text("text, and nothing else")
    assert "neither a pcap nor a pcapng" in refused(tmp_path / "text")[0]
    assert "Cannot read" in refused(tmp_path / "none")[0]
    assert "Say what to read" in refused()[0]
    assert "Say what to read" in refused(file, "--interface", "lo")[0]
    assert "--details goes" in refused(file, "--details", "--story")[0]
    assert "There is no interface nowhere0" in refused("--interface", "nowhere0")[0]


@needs("setpriv", "util-linux")
def test_listening_needs_root():
    """Root without the capability is as good as anybody."""
    bare = "setpriv --bounding-set -net_raw --inh-caps -net_raw " if os.geteuid() == 0 else ""
    result = piped(f"{bare}switchgnn capture --interface lo")
    assert result.returncode == 2
    [line] = result.stderr.decode().splitlines()
    assert "Listening at lo needs root (CAP_NET_RAW)" in line
