# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""G3 in the simulator: its bins against a pipeline event by event, its partition against METIS."""

import heapq
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchgnn.lab.simulator import bins_of, overlapped_seconds, request
from switchgnn.planner.graphs.load import load_graph

from .test_command import as_json

DURATIONS = st.fractions(0, 10, max_denominator=20)
EXAMPLES = settings(deadline=None, derandomize=True, max_examples=200)


def pipeline(compute, communication, bins):
    """When the last bin has been sent: a processor and a link, event by event."""
    events, waiting, link_busy = [(compute / bins, 0, "computed")], [], False
    computed, now = 1, Fraction(0)
    while events:
        now, _, what = heapq.heappop(events)
        if what == "computed":
            waiting.append(None)
            if computed < bins:
                heapq.heappush(events, (now + compute / bins, computed, "computed"))
                computed += 1
        else:
            link_busy = False
        if waiting and not link_busy:
            waiting.pop()
            link_busy = True
            heapq.heappush(events, (now + communication / bins, -1, "sent"))
    return now


def layer(compute, communication, bins):
    return compute + communication - overlapped_seconds(compute, communication, bins)


@EXAMPLES
@given(DURATIONS, DURATIONS, st.integers(1, 40))
def test_bins_take_what_a_pipeline_takes(compute, communication, bins):
    taken = layer(compute, communication, bins)
    assert taken == pipeline(compute, communication, bins)
    assert max(compute, communication) <= taken <= compute + communication
    # As the page says it.
    most = max(compute, communication)
    assert taken == (compute + communication + (bins - 1) * most) / bins


@EXAMPLES
@given(DURATIONS, DURATIONS, st.integers(1, 40), st.integers(1, 8))
def test_an_epoch_saves_what_its_layers_save(compute, communication, bins, layers):
    saved = overlapped_seconds(layers * compute, layers * communication, bins)
    assert saved == layers * overlapped_seconds(compute, communication, bins)


def test_one_bin_hides_nothing_and_neither_do_none():
    assert overlapped_seconds(3.0, 2.0, 1) == overlapped_seconds(3.0, 2.0, 0) == 0


@pytest.mark.parametrize(
    ("vertices", "size", "bins"), [(1, 5, 1), (5, 5, 1), (6, 5, 2), (10, 5, 2), (11, 5, 3)]
)
def test_the_last_bin_may_be_smaller(vertices, size, bins):
    assert bins_of(vertices, size) == bins


MISTAKES = {
    "all that is shorter is hidden": lambda c, s, bins: min(c, s),
    "the first bin is hidden": lambda c, s, bins: min(c, s) * bins / (bins + 1),
    "the longer one is hidden": lambda c, s, bins: max(c, s) * (bins - 1) / bins,
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_in_the_model_is_found(mistake, monkeypatch):
    monkeypatch.setitem(globals(), "overlapped_seconds", MISTAKES[mistake])
    with pytest.raises(AssertionError):
        test_bins_take_what_a_pipeline_takes()


GRAPH = ["--graph", "products-like:0.001:0", "--workers", 8]


def test_an_epoch_with_bins():
    """From the command's own numbers, layer by layer."""
    told = as_json(*GRAPH, "--system", "g3", "--bin-size", 60, "--layers", 3)
    layers, exchange = 3, Fraction(told["exchange_seconds"])
    assert told["communication_seconds"] == pytest.approx(float(layers * exchange))
    compute = Fraction(told["compute_seconds"]) / layers
    epoch = layers * pipeline(compute, exchange, told["bins"])
    assert told["epoch_seconds"] == pytest.approx(float(epoch))
    assert 3 * load_graph(GRAPH[1]).vertices / 8 / 60 > told["bins"] >= 2
    both = told["communication_seconds"] + told["compute_seconds"]
    assert told["overlapped_seconds"] == pytest.approx(both - told["epoch_seconds"])
    assert told["overlapped_seconds"] > 0


def test_bins_change_nothing_of_the_exchange():
    few, many = (as_json(*GRAPH, "--system", "g3", "--bin-size", size) for size in (5_000, 10))
    assert (few["bins"], few["overlapped_seconds"]) == (1, 0)
    assert many["bins"] > 30
    assert many["epoch_seconds"] < few["epoch_seconds"]
    for name in ("exchange_seconds", "communication_seconds", "compute_seconds", "bytes", "events"):
        assert many[name] == few[name]


def busiest(told):
    """Bytes of the worker that exchanges most."""
    return max(map(sum, zip(told["bytes_up"], told["bytes_down"], strict=True)))


def test_the_busiest_worker_of_g3_has_less_to_do():
    """On a graph with hubs METIS's shares of vertices are even, but not what they exchange."""
    skewed = ["--graph", "products-like:0.002:0", "--workers", 32]
    metis, own = (as_json(*skewed, "--system", system) for system in ("bns-gcn", "g3"))
    assert busiest(own) < 0.75 * busiest(metis)
    assert own["exchange_seconds"] < metis["exchange_seconds"]
    # What travels is what bns-gcn sends on that partition.
    same = as_json(*skewed, "--system", "bns-gcn", "--partition", "g3")
    assert same["bytes_up"] == own["bytes_up"]
    assert same["exchange_seconds"] == own["exchange_seconds"]


def test_a_planted_partition_is_found(monkeypatch):
    """A mistake: the partition of bns-gcn."""
    monkeypatch.setitem(request.HOSTS_ALONE, "g3", "metis")
    with pytest.raises(AssertionError):
        test_the_busiest_worker_of_g3_has_less_to_do()
