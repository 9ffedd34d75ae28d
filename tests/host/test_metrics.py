"""What a worker counts, as Prometheus and its parent read it; nothing else is believed."""

import re
import threading
from unittest.mock import Mock

import pytest

from switchgnn.base.metrics import MetricsError, ask_metrics, serve_metrics
from switchgnn.host.base.status import ExchangeStatus
from switchgnn.host.links.faults import FaultCounts
from switchgnn.host.links.transport import Transport
from switchgnn.host.metrics import (
    METRICS_EVENT,
    WorkerView,
    serving_metrics,
    telling_metrics,
    told_values,
)
from switchgnn.host.wire.link import Traffic
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until


class Hosts(Transport):
    """An exchange between hosts alone."""

    traffic = Traffic(0, 0, 0, 0)


class Exchange(Transport):
    """As much of an exchange over the switch as is looked at."""

    traffic = Traffic(1, 100, 2, 200)
    status = None

    def __init__(self):
        self.status = ExchangeStatus(0, 0, 16.0)

    def now(self, *status):
        self.status = ExchangeStatus(*status, counters=self.status.counters)


def view_of(exchange):
    return WorkerView(3, exchange, lambda: (1.5, 0.5))


def test_what_is_there_is_read_each_time():
    exchange = Exchange()
    view = view_of(exchange)
    assert view.values()["recalls_total"] == 0
    exchange.status.counters.recalls, exchange.status.counters.fetches = 7, 8
    exchange.now(2, 6, 12.5)
    found = view.values()
    totals = [found[f"{name}_total"] for name in ("recalls", "fetches", "rounds", "blocks")]
    assert totals == [7, 8, 2, 6]
    assert found["window_features"] == 12.5
    assert [found[f"link_bytes_total/{way}"] for way in ("up", "down")] == [100, 200]
    assert found["link_frames_total/down"] == 2
    assert [found[f"{name}_seconds_total"] for name in ("exchange", "waiting")] == [1.5, 0.5]


def test_hosts_alone_have_no_exchange_over_the_switch():
    names = {name.partition("/")[0] for name in WorkerView(0, Hosts()).values()}
    assert names == {"link_frames_total", "link_bytes_total"}


def test_who_was_not_asked_serves_nothing(monkeypatch):
    monkeypatch.setattr("switchgnn.host.metrics.serve_metrics", pytest.fail)
    with serving_metrics("", view_of(Exchange())):
        pass


def test_the_parent_is_told_the_same_values():
    exchange, events = Exchange(), Mock()
    view = view_of(exchange)
    with telling_metrics(events, 0.001, view):
        wait_until(lambda: events.write.call_count > 3, "some events")
        exchange.status.counters.recalls = 9
        exchange.now(2, 6, 12.5, True, 1.25)
    assert {each.args for each in events.write.call_args_list} == {(METRICS_EVENT,)}
    first, *_, last = (each.kwargs["values"] for each in events.write.call_args_list)
    assert first["recalls_total"] == 0
    assert last == view.values()
    assert last["recalls_total"] == 9
    assert (last["exchanging"], last["barrier_seconds_total"]) == (1.0, 1.25)
    assert not [each for each in threading.enumerate() if each.name == "metrics"]


BLOCKS = 'switchgnn_worker_blocks_total{worker="3"} 7.0'


def check_names(families, prefix, label):
    """The names follow the conventions, and all samples have a label."""
    assert len({family.name for family in families}) == len(families)
    for family in families:
        assert re.fullmatch(rf"{prefix}_[a-z_]+", family.name)
        assert family.documentation.endswith(".")
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter")
            assert next(iter(sample.labels.items())) == label


def test_names_follow_the_conventions():
    check_names(view_of(Exchange()).collect(), "switchgnn_worker", ("worker", "3"))


@pytest.mark.whole
def test_what_is_told_is_what_is_there():
    exchange = Exchange()
    exchange.status.counters.recalls = 12_345_678
    faulty = Exchange()
    faulty.traffic = Traffic(1, 10**12, 2, 7)
    faulty.injected = lambda: {"up": FaultCounts(lost=3), "down": FaultCounts(corrupted=4)}
    views = [view_of(exchange), WorkerView(3, faulty), WorkerView(3, Hosts(), lambda: (1e-7, 0.0))]
    for view in views:
        with serve_metrics(view, "127.0.0.1", 0) as port:
            text = ask_metrics("127.0.0.1", port, seconds=seconds_here(10))
        assert told_values(text, 3) == view.values()
        with pytest.raises(MetricsError, match="not the metrics of worker 2"):
            told_values(text, 2)


@pytest.mark.parametrize(
    "line",
    [
        *("# HELP switchgnn_worker_blocks_total Blocks.", 'other_blocks_total{worker="3"} 9'),
        *("switchgnn_worker_recalls_total 9", 'switchgnn_worker_recalls_total{worker="3"} NaN'),
        'switchgnn_worker_recalls_total{worker="3"} +Inf',
        'switchgnn_worker_recalls_total{worker="3"} -1',
        'switchgnn_worker_recalls_total{worker="3"} 1e300',
        'switchgnn_worker_recalls_total{worker="3"} 1e999',
        'switchgnn_worker_recalls_total{worker="3",page="x"} 1',
        'switchgnn_worker_recalls_total{worker="3",way="<b>"} 1',
        'switchgnn_worker_recalls_total{worker="3"} 1 # {a="b"} 1',
        'switchgnn_worker_Recalls{worker="3"} 1',
        f'switchgnn_worker_{"x" * 100}{{worker="3"}} 1',
        f'switchgnn_worker_x{{worker="3",way="{"x" * 100}"}} 1',
    ],
)
def test_a_line_that_is_none_of_ours_is_left_out(line):
    assert told_values(f"{line}\n{BLOCKS}\n", 3) == {"blocks_total": 7.0}
    with pytest.raises(MetricsError):
        told_values(line, 3)


def test_lines_are_bounded():
    lines = [
        f'switchgnn_worker_{"x" * (1 + n % 60)}{{way="w{n}",worker="3"}} 1' for n in range(9999)
    ]
    assert len(told_values("\n".join(lines), 3)) <= 256
