# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Answers of hostile servers cost bounded time and memory."""

import socket
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from switchgnn.base.metrics import Metric, MetricKind, NoAnswerError, ask_metrics, serve_metrics
from tests.support.speed import seconds_here

pytest.importorskip("h11")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"


@contextmanager
def answering(answer):
    """A server that answers with a function; yields its port and the requests."""
    asked = []
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.02)

        def run():
            while not over.is_set():
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                with connection, suppress(OSError):
                    connection.settimeout(seconds_here(10))
                    asked.append(connection.recv(65536))
                    answer(connection, over)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield server.getsockname()[1], asked
        finally:
            over.set()
            thread.join()


def saying(data):
    return answering(lambda connection, over: connection.sendall(data))


def test_what_is_served_comes():
    pytest.importorskip("prometheus_client")
    metric = Metric("own_up", MetricKind.GAUGE, "Whether.", (), [((), 1.0)])
    with serve_metrics(lambda: [metric], "127.0.0.1", 0) as port:
        assert "own_up 1.0\n" in ask_metrics("127.0.0.1", port, seconds=seconds_here(10))
    with pytest.raises(NoAnswerError, match=f"127.0.0.1:{port}"):
        ask_metrics("127.0.0.1", port)


@pytest.mark.parametrize(
    "answer",
    [
        HEAD + b"Content-Length: 4\r\n\r\nup 1and more",
        HEAD + b"\r\nup 1",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nup\r\n2\r\n 1\r\n0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\nup 1",
    ],
    ids=["length", "until the end", "chunked", "1.0"],
)
def test_all_that_http_allows(answer):
    with saying(answer) as (port, asked):
        assert ask_metrics("localhost", port, seconds=seconds_here(10)).startswith("up 1")
    assert asked[0].startswith(b"GET /metrics HTTP/1.1\r\n")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\0\xff" * 500,
        b"SSH-2.0-Open\r\n",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 500 Bad\r\n\r\nup 1",
        HEAD + b"Content-Length: 40\r\n\r\nup 1",
        HEAD + b"Content-Length: -1\r\n\r\nup 1",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nup 1",
        HEAD + b"X: y\r\n" * 100_000,
        HEAD + b"X: " + b"y" * 1_000_000,
    ],
)
def test_what_is_no_answer(answer):
    with saying(answer) as (port, _), pytest.raises(NoAnswerError):
        ask_metrics("127.0.0.1", port, seconds=seconds_here(10))


def test_another_place_is_not_asked():
    with saying(HEAD + b"\r\nup 1") as (other, asked_other):
        there = f"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{other}/metrics\r\n"
        answer = (there + "Content-Length: 0\r\n\r\n").encode()
        with saying(answer) as (port, asked), pytest.raises(NoAnswerError, match="302"):
            ask_metrics("127.0.0.1", port, seconds=seconds_here(10))
    assert len(asked) == 1
    assert asked_other == []


def test_an_answer_without_end_is_left():
    sent = []

    def pour(connection, over):
        connection.sendall(HEAD + b"\r\n")
        while not over.is_set():
            connection.sendall(b"x" * 65536)
            sent.append(65536)

    with answering(pour) as (port, _), pytest.raises(NoAnswerError, match="more than 100000 bytes"):
        ask_metrics("127.0.0.1", port, seconds=seconds_here(10), most_bytes=100_000)
    # What sockets hold, and no more.
    assert sum(sent) < 50_000_000


@pytest.mark.parametrize("drop", [b"x", b"X: y\r\n", b""], ids=["body", "head", "nothing"])
def test_a_slow_answer_is_left_in_time(drop):
    def drip(connection, over):
        connection.sendall(HEAD + (b"\r\n" if drop == b"x" else b""))
        while not over.wait(0.01):
            connection.sendall(drop)

    with answering(drip) as (port, _):
        begin = time.monotonic()
        with pytest.raises(NoAnswerError, match=r"time|long"):
            ask_metrics("127.0.0.1", port, seconds=0.3)
        assert 0.25 < time.monotonic() - begin < seconds_here(5)
