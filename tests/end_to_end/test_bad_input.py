# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Bad input gets one sentence and exit code 2, and leaves nothing behind."""

import re
import socket
import tempfile
from pathlib import Path

import numpy as np
import pytest

from switchgnn.planner.build import build_plan
from switchgnn.planner.graphs.load import load_graph
from switchgnn.planner.plan.files import write_plan
from tests.end_to_end.conftest import switchgnn
from tests.support.kept_logs import take_kept_logs

LOOPBACK = ("--target", "embedded", "--fabric", "loopback")


def refused(*arguments):
    """Run, expect exit code 2 and one sentence, and return the sentence."""
    with tempfile.TemporaryDirectory() as scratch:
        result = switchgnn(*arguments, scratch=scratch)
        # Logs of started processes stay: see docs/limitations.md.
        take_kept_logs(scratch)
        assert not list(Path(scratch).iterdir())
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr
    [message] = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    return message


def test_a_bad_line_in_a_graph_file(tmp_path):
    path = tmp_path / "graph.txt"
    path.write_text("0 1\n1 2\nthree four\n")
    message = refused("run", *LOOPBACK, "--graph", path)
    assert "graph.txt" in message
    assert "3" in message
    assert "three four" in message


def test_a_missing_graph_file():
    assert "nowhere.csv" in refused("run", *LOOPBACK, "--graph", "nowhere.csv")


def graph_with_features(path, value):
    np.savez(
        path,
        indptr=np.array([0, 2, 4, 6]),
        indices=np.array([1, 2, 0, 2, 0, 1]),
        features=np.full((3, 2), value, dtype=np.float32),
    )
    return path


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_features_that_are_not_finite(tmp_path, value):
    path = graph_with_features(tmp_path / "graph.npz", value)
    message = refused("run", *LOOPBACK, "--graph", path, "--workers", 2)
    assert re.search("nan|inf|finite", message, re.IGNORECASE)


def test_a_magnitude_that_overflows(tmp_path):
    path = graph_with_features(tmp_path / "graph.npz", 3e38)
    message = refused("run", *LOOPBACK, "--graph", path, "--workers", 3)
    assert "overflows float32" in message


def test_more_workers_than_vertices():
    message = refused("run", *LOOPBACK, "--graph", "karate", "--workers", 40)
    assert "40" in message
    assert "34" in message


def test_a_port_already_taken():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        port = sock.getsockname()[1]
        message = refused("run", *LOOPBACK, "--graph", "karate", "--grpc-port", port)
    assert f"Port {port} on 127.0.0.1 is taken" in message


def test_a_switch_that_is_not_there(tmp_path):
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{sock.getsockname()[1]}"
    assert switchgnn("plan", "karate", "--workers", 2, "--out", tmp_path / "plan").returncode == 0
    for command in (("show",), ("clear",), ("install", tmp_path / "plan")):
        assert address in refused("controller", *command, "--address", address, "--deadline", 1)


def test_a_plan_that_is_not_there():
    assert "nowhere" in refused("controller", "install", "nowhere", "--address", "127.0.0.1:1")


def test_a_plan_for_another_program(tmp_path):
    plan = build_plan(load_graph("karate"), workers=2, slots=16, program="12" * 32)
    write_plan(plan, tmp_path / "plan")
    message = refused("controller", "install", tmp_path / "plan", "--address", "127.0.0.1:1")
    assert "program" in message


def test_a_plan_that_was_changed(tmp_path):
    switchgnn("plan", "karate", "--workers", 2, "--out", tmp_path / "plan")
    part = tmp_path / "plan" / "switch.safetensors"
    data = bytearray(part.read_bytes())
    data[len(data) // 2] ^= 1
    part.write_bytes(data)
    message = refused("controller", "install", tmp_path / "plan", "--address", "127.0.0.1:1")
    assert "switch.safetensors" in message


def test_a_folder_that_is_no_plan_is_not_overwritten(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    refused("plan", "karate", "--workers", 2, "--out", tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_directions_that_cannot_be_planned(tmp_path):
    options = ("--workers", 2, "--out", tmp_path / "plan", "--directions", "backward")
    assert "known: both, forward" in refused("plan", "karate", *options)


@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_partition_that_nobody_knows(command, tmp_path):
    start = {"plan": ("karate", "--workers", 2, "--out", tmp_path / "plan"), "run": LOOPBACK}
    message = refused(command, *start[command], "--partition", "best")
    assert "known: chunk, g3, g3-literal, metis, metis-boundary" in message


@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_send_strategy_that_nobody_knows(command, tmp_path):
    start = {"plan": ("karate", "--workers", 2, "--out", tmp_path / "plan"), "run": LOOPBACK}
    assert "known: cover, multicast" in refused(command, *start[command], "--send", "best")


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "--workers", "0"),
        ("run", "--workers", "129"),
        ("run", "--rounds", "0"),
        ("run", "--target", "tofino"),
        ("run", "--features", "0"),
        ("plan", "karate"),
        ("no-such-command",),
    ],
)
def test_wrong_usage(arguments):
    result = switchgnn(*arguments)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


def test_bmv2_on_loopback_is_refused():
    message = refused("run", "--target", "bmv2", "--fabric", "loopback")
    assert "--target embedded" in message or "mininet" in message
