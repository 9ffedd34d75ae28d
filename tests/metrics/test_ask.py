"""Metrics are served as Prometheus reads them; hostile answers cost bounded time and memory."""

import socket
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress

import pytest
from prometheus_client import parser

from switchgnn.base.metrics import MetricsError, ask_metrics, families, parse_address, serve_metrics
from tests.support.speed import seconds_here

DESCRIBED = {"frames_total": ("Frames.", "kind"), "up": ("Whether.",)}
VALUES = {"a": {"frames_total/odd": 3.0, "up": 1.0}, "b": {"frames_total/odd": 4.0}}


class Collector:
    """Counts how often it is asked."""

    asked = 0

    def collect(self):
        self.asked += 1
        return families("own_", "owner", DESCRIBED, VALUES)


def scrape(port):
    with urllib.request.urlopen(
        f"http://127.0.0.1:{port}/metrics", timeout=seconds_here(10)
    ) as got:
        text = got.read().decode()

    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_what_is_served_is_read_when_somebody_asks():
    collector = Collector()
    with serve_metrics(collector, "127.0.0.1", 0) as port:
        assert collector.asked == 0
        found = scrape(port)
        assert scrape(port) == found
    assert collector.asked == 2
    assert found == {
        ("own_frames_total", ("kind", "odd"), ("owner", "a")): 3.0,
        ("own_frames_total", ("kind", "odd"), ("owner", "b")): 4.0,
        ("own_up", ("owner", "a")): 1.0,
    }
    with pytest.raises(urllib.error.URLError):
        scrape(port)


def test_a_port_that_is_taken():
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(MetricsError, match="choose another port"),
        serve_metrics(Collector(), "127.0.0.1", taken.getsockname()[1]),
    ):
        pass


@pytest.mark.parametrize(
    ("text", "address"),
    [("9600", ("127.0.0.1", 9600)), ("10.0.0.1:9600", ("10.0.0.1", 9600)), ("[::1]:0", ("::1", 0))],
)
def test_addresses(text, address):
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "http", ":9600", "1.2.3.4:", "65536", "-1", "host:x"])
def test_what_is_no_address(text):
    with pytest.raises(MetricsError, match="ADDRESS:PORT"):
        parse_address(text)


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


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\0\xff" * 500,
        b"SSH-2.0-Open\r\n",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 500 Bad\r\n\r\nup 1",
        HEAD + b"Content-Length: 40\r\n\r\nup 1",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nup 1",
        HEAD + b"X: y\r\n" * 100_000,
        HEAD + b"X: " + b"y" * 1_000_000,
    ],
)
def test_what_is_no_answer(answer):
    with saying(answer) as (port, _), pytest.raises(MetricsError):
        ask_metrics("127.0.0.1", port, seconds=seconds_here(10))


def test_another_place_is_not_asked():
    with saying(HEAD + b"\r\nup 1") as (other, asked_other):
        there = f"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{other}/metrics\r\n"
        answer = (there + "Content-Length: 0\r\n\r\n").encode()
        with saying(answer) as (port, asked), pytest.raises(MetricsError, match="302"):
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

    with answering(pour) as (port, _), pytest.raises(MetricsError, match="too long"):
        ask_metrics("127.0.0.1", port, seconds=seconds_here(10))
    # What sockets hold, and no more.
    assert sum(sent) < 50_000_000


@pytest.mark.whole
@pytest.mark.parametrize("drop", [b"x", b""], ids=["body", "nothing"])
def test_a_slow_answer_is_left_in_time(drop):
    def drip(connection, over):
        connection.sendall(HEAD + (b"\r\n" if drop == b"x" else b""))
        while not over.wait(0.01):
            connection.sendall(drop)

    with answering(drip) as (port, _):
        begin = time.monotonic()
        with pytest.raises(MetricsError, match=r"time|long"):
            ask_metrics("127.0.0.1", port, seconds=0.3)
        assert 0.25 < time.monotonic() - begin < seconds_here(5)
