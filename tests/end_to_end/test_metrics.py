# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics while a run goes on: those of its workers, and of a switch."""

import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from contextlib import ExitStack

import pytest

from tests.commands.service import Service
from tests.end_to_end.conftest import switchgnn
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

pytest.importorskip("prometheus_client")
WORKERS = 2
PORTS = (20_000, 32_000)


def free_ports(number):
    """The first of so many ports in a row that nobody uses.

    Below those that the kernel hands out: who asks such a port in vain, again and again, once gets
    it as its own, and talks to itself.
    """
    while True:
        first = secrets.SystemRandom().randrange(*PORTS)
        with ExitStack() as stack:
            try:
                for port in range(first, first + number):
                    stack.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
        return first


def scrape(port):
    """The numbers after the names, or None if the connection fails."""
    try:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{port}/metrics", timeout=seconds_here(10)
        ) as answer:
            text = answer.read().decode()
    except OSError:
        return None
    return {
        name: float(value) for name, value in re.findall(r"^([^# ].*) (\S+)$", text, re.MULTILINE)
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "--graph", "karate", "--rounds", "400"),
        (
            *("train", "--data", "karate", "--epochs", "150", "--dropout", "0"),
            *("--transport", "switch"),
        ),
    ],
    ids=["run", "train"],
)
def test_workers_serve_theirs(arguments):
    first, seen, over = free_ports(WORKERS), {}, threading.Event()

    def look():
        while not over.is_set():
            for worker in range(WORKERS):
                found = scrape(first + worker)
                if found:
                    seen.setdefault(worker, []).append(found)
            over.wait(0.02)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        done = switchgnn(
            *arguments,
            *("--workers", WORKERS, "--target", "embedded", "--fabric", "loopback"),
            *("--metrics", first),
        )
    finally:
        over.set()
        looking.join(seconds_here(60))
    assert done.returncode == 0, done.stderr
    for worker in range(WORKERS):
        label = f'{{worker="{worker}"}}'
        last = seen[worker][-1]
        assert last[f"switchgnn_worker_blocks_total{label}"] > 0
        assert last[f"switchgnn_worker_rounds_total{label}"] > 0
        assert last[f"switchgnn_worker_window_features{label}"] > 0
        assert last[f'switchgnn_worker_link_bytes_total{{way="up",worker="{worker}"}}'] > 0
        for early, late in zip(seen[worker], seen[worker][1:], strict=False):
            name = f"switchgnn_worker_blocks_total{label}"
            assert early[name] <= late[name]


def test_a_place_that_is_none_is_one_sentence():
    for wrong in ("http", "65535", "0"):
        done = switchgnn("run", "--graph", "karate", "--workers", 4, "--metrics", wrong)
        assert done.returncode == 2
        [line] = done.stderr.splitlines()
        assert line.startswith("Error: Metrics")


def test_a_switch_is_up_down_and_up_again(tmp_path):
    with Service(tmp_path, "--program", "switchgnn") as service:
        service.wait_until_serving()
        with subprocess.Popen(
            [
                *(sys.executable, "-m", "switchgnn.commands", "controller", "metrics"),
                *(service.address, "--port", "0", "--interval", "0"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                port = int(re.search(r":(\d+)/metrics", process.stdout.readline())[1])
                up = f'switchgnn_switch_up{{switch="{service.address}"}}'
                frames = f'switchgnn_frames_total{{outcome="stale",switch="{service.address}"}}'
                assert scrape(port)[up] == 1
                assert scrape(port)[frames] == 0
                service.end(signal.SIGTERM)
                wait_until(lambda: scrape(port)[up] == 0, "a switch that is gone")
                assert frames not in scrape(port)
                service.start()
                wait_until(lambda: scrape(port).get(frames) == 0, "a switch that is back")
                assert scrape(port)[up] == 1
            finally:
                process.send_signal(signal.SIGINT)
            assert process.wait(seconds_here(20)) == 130
            assert process.stderr.read() == ""
