# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker has told Prometheus is read again, and nothing else is believed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.base.metrics import MetricsError, ask_metrics, serve_metrics
from switchgnn.host.metrics import WorkerView, metric_values, told_values
from switchgnn.host.wire.faults import FaultCounts
from switchgnn.host.wire.link import Traffic
from tests.host.test_metrics import Exchange, view_of
from tests.support.speed import seconds_here

pytest.importorskip("h11")
pytest.importorskip("prometheus_client")
BLOCKS = 'switchgnn_worker_blocks_total{worker="3"} 7.0'


def test_what_is_told_is_what_is_there():
    exchange = Exchange()
    exchange.tally.recalls = 12_345_678
    counts = {"up": FaultCounts(lost=3), "down": FaultCounts(corrupted=4)}
    views = [
        view_of(exchange),
        WorkerView(3, lambda: Traffic(1, 10**12, 2, 7), exchange, injected=lambda: counts),
        WorkerView(3, lambda: Traffic(0, 0, 0, 0), seconds=lambda: (1e-7, 0.0)),
    ]
    for view in views:
        with serve_metrics(lambda view=view: list(view.metrics()), "127.0.0.1", 0) as port:
            text = ask_metrics("127.0.0.1", port, seconds=seconds_here(10))
        assert told_values(text, 3) == metric_values(view)
        with pytest.raises(MetricsError, match="not the metrics of worker 2"):
            told_values(text, 2)


@pytest.mark.parametrize(
    "line",
    [
        "# HELP switchgnn_worker_blocks_total Blocks.",
        'other_blocks_total{worker="3"} 9',
        "switchgnn_worker_recalls_total 9",
        'switchgnn_worker_recalls_total{worker="3"} NaN',
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


@given(
    st.lists(
        st.one_of(
            st.text(max_size=60),
            st.from_regex(
                r'switchgnn_worker_[a-z_]{0,5}\{((worker|way|kind)="[a-z0-9_]{0,3}",?){0,4}\} '
                r"[-+.0-9e]{1,6}",
                fullmatch=True,
            ),
        ),
        max_size=6,
    )
)
def test_anything_is_values_or_a_sentence(lines):
    try:
        found = told_values("\n".join(lines), 3)
    except MetricsError:
        return
    assert found
    assert all(0 <= value < 2**63 for value in found.values())
