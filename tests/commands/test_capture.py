"""`switchgnn capture` as a user types it."""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest

from switchgnn.base.network_file import network_text
from switchgnn.host.wire.header import Kind
from tests.capture.drawn import control, feature, flipped
from tests.capture.written import pcap
from tests.network.usual import described_star
from tests.support.markers import needs, needs_root, whole
from tests.support.networks import in_network, linked_ends, own_network
from tests.support.processes import run_program
from tests.support.speed import seconds_here

CAPTURE = (sys.executable, "-m", "switchgnn.commands", "capture")
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
    path.write_bytes(pcap([(TIME + 1000 * index, each) for index, each in enumerate(frames)]))
    return path


@pytest.fixture
def told(called):
    def run(*words):
        code, shown, counts = called("capture", *words)
        assert code == 0, counts
        return shown.splitlines(), counts

    return run


def test_a_line_for_each_packet_and_the_counts(file, told):
    lines, counts = told(file)
    assert len(lines) == 9
    assert lines[0].startswith("0.000000 w0 > switch feature session 1 round 1 block 1 ")
    assert "UNSOUND: checksum" in lines[-1]
    assert "9 packets: 4 feature, 2 done, 2 advance; 1 not sound; 1 frame of other" in counts


def test_the_names_of_a_network_file(file, tmp_path, told):
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
        *((words, 4) for words in (("--kind", "done", "--kind", "advance"), ("--round", 1))),
        *((words, 0) for words in (("--round", 3), ("--block", 0))),
        (("--block", 1, "--kind", "done", "--round", 2), 1),
        (("--worker", 1), 2),
        (("--worker", 0, "--worker", 1, "--round", 1), 4),
        (("--limit", 3), 3),
    ],
)
def test_filters(file, words, number, told):
    assert len(told(file, *words)[0]) == number


def test_objects(file, told):
    lines, _ = told(file, "--json", "--kind", "done")
    objects = [json.loads(line) for line in lines]
    assert [each["round"] for each in objects] == [1, 2]
    assert objects[0]["time_ns"] == TIME + 2000
    assert objects[0]["body"]["workers"] == []


def test_the_summary(file, told):
    lines, counts = told(file, "--summary")
    assert len(lines) == 6
    assert lines[0].startswith("session 1, round 1, block 1: 0.000000 to 0.000003 s, 1 fragment")
    assert lines[1] == "  w0 sent 1 feature, 1 done; got 1 advance"
    assert "1 not sound" in counts
    [one] = told(file, "--summary", "--json", "--round", 2)[0]
    assert json.loads(one)["parties"]["w1"]["sent"] == {"feature": 1}


def test_details_are_those_of_scapy(file, told):
    lines, _ = told(file, "--details", "--limit", 1)
    assert any("SwitchGNN" in line for line in lines)
    assert any("Block_id" in line and "= 1" in line for line in lines)


@contextmanager
def capturing(*words, **pipes):
    pipes |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*CAPTURE, *words], text=True, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


@whole
def test_ctrl_c_ends_with_the_counts(file):
    """Of a file or pipe that has not ended not all was shown, so it is no success."""
    with capturing("-", stdin=subprocess.PIPE) as process:
        process.stdin.buffer.write(file.read_bytes())
        process.stdin.buffer.flush()
        shown = [process.stdout.readline() for _ in range(9)]
        process.send_signal(signal.SIGINT)
        rest, said = process.communicate(timeout=seconds_here(20))
    assert process.returncode == 130
    assert all(shown) and not rest
    assert said.startswith("9 packets: 4 feature, 2 done, 2 advance; 1 not sound")
    assert "Traceback" not in said


@pytest.fixture
def refused(called):
    def run(*words):
        code, shown, said = called("capture", *words)
        assert code == 2
        [line] = [line for line in said.splitlines() if line.startswith("Error: ")]
        return line, shown.splitlines()

    return run


def test_sentences(tmp_path, file, refused):
    (tmp_path / "text").write_text("text, and nothing else")
    assert "neither a pcap nor a pcapng" in refused(tmp_path / "text")[0]
    assert "Cannot read" in refused(tmp_path / "none")[0]
    assert "Say what to read" in refused()[0]
    assert "Say what to read" in refused(file, "--interface", "lo")[0]
    assert "--details goes" in refused(file, "--details", "--summary")[0]
    assert "No interface 'nowhere0' here" in refused("--interface", "nowhere0")[0]


@whole
@needs("setpriv", "util-linux")
def test_listening_needs_root():
    """Root without the capability is as good as anybody."""
    bare = ("setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-net_raw")
    result = run_program(
        [*(bare if os.geteuid() == 0 else ()), *CAPTURE, "--interface", "lo"], seconds=60
    )
    assert result.returncode == 2
    [line] = result.stderr.splitlines()
    assert "Listening at lo needs root (CAP_NET_RAW)" in line


HERE, THERE = f"c{os.getpid() % 0xFFFF:x}h", f"c{os.getpid() % 0xFFFF:x}t"


@contextmanager
def listening(interface):
    with capturing("--interface", interface) as process:
        assert process.stderr.readline() == f"Listening at {interface}; Ctrl-C ends it.\n"
        yield process


def ends_with(process, counts):
    process.send_signal(signal.SIGINT)
    rest, said = process.communicate(timeout=seconds_here(20))
    assert (process.returncode, rest, said) == (0, "", counts)


@whole
@needs_root
@needs("ip", "iproute2")
def test_both_ways_at_once_and_ctrl_c():
    with linked_ends(HERE, THERE) as (link, other), listening(HERE) as process:
        link.send(feature(0, src_id=5, block_id=1))
        assert " w0 > switch feature session 1 " in process.stdout.readline()
        other.send(control(Kind.ADVANCE, 0, down=True, block_id=1))
        assert " switch > w0 advance session 1 " in process.stdout.readline()
        ends_with(process, "2 packets: 1 feature, 1 advance.\n")


@whole
@needs_root
@needs("ip", "iproute2")
def test_frames_over_loopback_are_seen_once():
    """In UDP, as the loopback fabric sends them, beside UDP of others."""
    with own_network() as network, in_network(network.path), ExitStack() as stack:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        here, there = (stack.enter_context(socket.socket(type=socket.SOCK_DGRAM)) for _ in "12")
        there.bind(("127.0.0.1", 0))
        here.connect(there.getsockname())
        process = stack.enter_context(listening("lo"))
        here.send(bytes(200))
        here.send(feature(0, src_id=5, block_id=1))
        here.send(control(Kind.DONE, 0, block_id=1))
        assert " w0 > switch feature session 1 " in process.stdout.readline()
        assert " w0 > switch done session 1 " in process.stdout.readline()
        ends_with(process, "2 packets: 1 feature, 1 done.\n")
