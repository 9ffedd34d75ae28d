# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What the table of transports promises to those who read it."""

import re
from pathlib import Path

import pytest

from switchgnn.host.errors import TransportError
from switchgnn.host.registry import AUTO, DEFAULT, TRANSPORTS, transport_kind
from switchgnn.host.transport import WorkerEnd
from switchgnn.planner.strategies import BLOCK_STRATEGIES, ORDER_STRATEGIES, PARTITION_STRATEGIES
from tests.host.addresses import ADDRESSES, WORKER

ROOT = Path(__file__).parents[2]
SOURCES = [
    path
    for folder in ("host", "switchgnn/training", "switchgnn/commands/train", "bench")
    for path in (ROOT / folder).rglob("*.py")
    if path.name != "registry.py"
]


def test_names_and_labels_tell_transports_apart():
    assert len({each.name for each in TRANSPORTS}) == len(TRANSPORTS)
    assert len({each.label for each in TRANSPORTS}) == len(TRANSPORTS)
    assert DEFAULT is AUTO
    assert AUTO.name not in {each.name for each in TRANSPORTS}
    for each in TRANSPORTS:
        assert transport_kind(each.name) is each


def test_an_unknown_name_is_refused():
    with pytest.raises(TransportError, match="no transport 'pigeon': choose one of switch, host"):
        transport_kind("pigeon")


@pytest.mark.parametrize("kind", TRANSPORTS, ids=lambda kind: kind.name)
def test_what_a_worker_is_given(kind):
    """A plan where the switch adds up, a schedule where hosts do, nothing without a network."""
    assert kind.networked == (kind.needs_plan or kind.write_schedules is not None)
    assert not (kind.needs_plan and kind.write_schedules)
    assert kind.partition is None or kind.partition in PARTITION_STRATEGIES
    fixed = kind.strategies or {}
    assert fixed.get("blocks") in (None, "strawman", *BLOCK_STRATEGIES)
    assert fixed.get("order") in (None, *ORDER_STRATEGIES)


@pytest.mark.parametrize("kind", TRANSPORTS, ids=lambda kind: kind.name)
def test_what_a_worker_lacks_is_named(kind):
    end = WorkerEnd(
        worker=0,
        workers=1,
        vertices=3,
        pace=None,
        link="udp:nowhere",
        faults="",
        addresses=ADDRESSES,
        stations=(WORKER,),
        plan=None,
        session=1,
        schedule=None,
        sampling=1.0,
        seed=0,
    )
    if not kind.networked:
        with kind.open(end) as transport:
            assert sum(transport.traffic) == 0
        return
    needed = "plan" if kind.needs_plan else "schedule"
    with pytest.raises(TransportError, match=f"Worker 0 needs a {needed}"), kind.open(end):
        pass


def test_nothing_else_compares_names():
    names = "|".join(re.escape(each.name) for each in TRANSPORTS)
    compared = re.compile(rf"""[=!]=\s*["']({names})["']|transport(\.name)?\s*([=!]=|in \()""")
    assert len(SOURCES) > 50
    assert [path for path in SOURCES if compared.search(path.read_text())] == []
