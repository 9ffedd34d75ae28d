# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics are served as Prometheus reads them, during the block only."""

import socket
import sys
import urllib.error
import urllib.request

import pytest

from switchgnn.base.metrics import (
    Histogram,
    Metric,
    MetricKind,
    MetricsError,
    check_installed,
    parse_place,
    serve_metrics,
)
from tests.support.speed import seconds_here

parser = pytest.importorskip("prometheus_client.parser")

LENGTHS = Histogram([("0.0", 1.0), ("1.0", 3.0), ("+Inf", 4.0)], 9.0)
METRICS = [
    Metric("own_frames_total", MetricKind.COUNTER, "Frames.", ("kind",), [(("odd",), 3.0)]),
    Metric("own_up", MetricKind.GAUGE, "Whether.", (), [((), 1.0)]),
    Metric("own_length", MetricKind.HISTOGRAM, "Lengths.", ("port",), [(("1",), LENGTHS)]),
]


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


def test_what_is_served():
    with serve_metrics(lambda: METRICS, "127.0.0.1", 0) as port:
        found = scrape(port)
    assert found == {
        ("own_frames_total", ("kind", "odd")): 3.0,
        ("own_up",): 1.0,
        ("own_length_bucket", ("le", "0.0"), ("port", "1")): 1.0,
        ("own_length_bucket", ("le", "1.0"), ("port", "1")): 3.0,
        ("own_length_bucket", ("le", "+Inf"), ("port", "1")): 4.0,
        ("own_length_count", ("port", "1")): 4.0,
        ("own_length_sum", ("port", "1")): 9.0,
    }


def test_it_is_read_when_somebody_asks():
    asked = []
    with serve_metrics(lambda: asked.append(1) or METRICS, "127.0.0.1", 0) as port:
        assert asked == []
        scrape(port)
        scrape(port)
    assert asked == [1, 1]
    with pytest.raises(urllib.error.URLError):
        scrape(port)


def test_an_error_is_that_of_one_request():
    answers = iter([ValueError("once"), METRICS])

    def collect():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with serve_metrics(collect, "127.0.0.1", 0) as port:
        with pytest.raises(urllib.error.HTTPError):
            scrape(port)
        assert scrape(port)


def test_a_port_that_is_taken():
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(MetricsError, match="choose another port"),
        serve_metrics(list, "127.0.0.1", taken.getsockname()[1]),
    ):
        pass


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("9600", ("127.0.0.1", 9600)),
        ("10.0.0.1:9600", ("10.0.0.1", 9600)),
        ("[::1]:0", ("::1", 0)),
    ],
)
def test_places(text, place):
    assert parse_place(text) == place


@pytest.mark.parametrize("text", ["", "http", ":9600", "1.2.3.4:", "65536", "-1", "host:x"])
def test_what_is_no_place(text):
    with pytest.raises(MetricsError, match="ADDRESS:PORT"):
        parse_place(text)


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MetricsError, match=r"pip install .*\[metrics\]"):
        check_installed()
