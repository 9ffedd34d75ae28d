"""Rows fed bit by bit give the sums of the whole graph, whatever the bits and the network."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from switchgnn.host import FeatureError, Pace
from switchgnn.host.base.errors import DirectError, SilentWorkerError, TransportError
from switchgnn.host.base.operations import Operation
from switchgnn.host.direct import copy_schedules, partial_schedules, rows_per_pair
from switchgnn.host.direct.exchange import DirectExchange
from switchgnn.host.direct.framing import Framing
from switchgnn.host.direct.kinds import binned_schedules
from switchgnn.host.direct.outbox import visit_order
from switchgnn.host.direct.sampling import Sampling
from switchgnn.host.wire.header import KIND_AT, Kind, parse_header
from switchgnn.planner import Direction, graph_from_edges
from tests.host.direct.crew import (
    BOTH,
    Hub,
    binned_on_hub,
    exchange,
    mac_bytes,
    on_hub,
    parts_of,
    random_case,
    sizes_of_frames,
    stream_all,
    wrong,
)


def calls_of(graph, width, turns):
    rng = np.random.default_rng(width)
    return [
        (rng.standard_normal((graph.vertices, width), dtype=np.float32), BOTH[turn // 2 % 2])
        for turn in range(turns)
    ]


def random_cut(parts, seed, bins):
    """Any order, any sizes, empty ones too; other bins in each round."""

    def cut(worker, turn):
        rng = np.random.default_rng([seed, worker, turn])
        rows = len(parts[worker])
        return np.split(rng.permutation(rows), np.sort(rng.integers(0, rows + 1, bins - 1)))

    return cut


@settings(
    deadline=None, derandomize=True, max_examples=15, suppress_health_check=[HealthCheck.too_slow]
)
@given(
    seed=st.integers(0, 10**6),
    vertices=st.integers(2, 40),
    degree=st.integers(0, 5),
    workers=st.integers(1, 4),
    bins=st.integers(1, 9),
    width=st.sampled_from([1, 32, 40]),
    mtu=st.sampled_from([None, 50, 190, 1500]),
    directed=st.booleans(),
    faults=st.sampled_from(["", "", "loss=0.05", "duplicate=0.2,reorder=0.2", "corrupt=0.05"]),
    background=st.booleans(),
    one_way=st.booleans(),
    window=st.sampled_from([1, 16, 64]),
)
def test_any_bits_give_the_sums_of_the_whole_graph(
    seed, vertices, degree, workers, bins, width, mtu, directed, faults, background, one_way, window
):
    graph, assignment = random_case(vertices, degree * vertices, workers, seed, directed=directed)
    if one_way:
        source, destination = graph.edges()
        keep = assignment[source] <= assignment[destination]
        graph = graph_from_edges(
            source[keep], destination[keep], name="one way", vertices=vertices, directed=True
        )
    parts, calls = parts_of(assignment, workers), calls_of(graph, width, 4)
    transports = binned_on_hub(
        binned_schedules(graph, assignment, workers),
        faults=faults and f"{faults},seed={seed}",
        pace=Pace(window=window, timeout=20.0),
        framing=Framing(mtu),
    )
    cut = random_cut(parts, seed, bins)
    sums = stream_all(transports, parts, calls, cut, background=background)
    for (features, direction), got in zip(calls, sums, strict=True):
        assert wrong(graph, assignment, features, got, direction) == 0


@pytest.mark.parametrize("make", [copy_schedules, partial_schedules], ids=["host", "host-partial"])
def test_bits_or_all_at_once_are_the_same_to_the_bit(make):
    graph, assignment = random_case(80, 500, 3, 4, directed=True)
    parts, calls = parts_of(assignment, 3), calls_of(graph, 40, 4)
    at_once = exchange(
        on_hub(make(graph, assignment, 3)), parts, [(*call, False) for call in calls]
    )
    bit_by_bit = stream_all(
        on_hub(make(graph, assignment, 3)), parts, calls, random_cut(parts, 7, 5)
    )
    for one, other in zip(at_once, bit_by_bit, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(("bins", "framing"), [(4, Framing(None)), (60, Framing())])
def test_data_frames_are_those_of_host(bins, framing):
    """However small the bins: none is padded, and none leaves twice."""
    graph, assignment = random_case(90, 600, 3, 5, directed=True)
    parts, calls = parts_of(assignment, 3), calls_of(graph, 40, 3)
    rows = rows_per_pair(copy_schedules(graph, assignment, 3))
    schedules = binned_schedules(graph, assignment, 3)
    assert np.array_equal(rows, rows_per_pair(tuple(each.forward for each in schedules)))
    assert np.array_equal(rows.T, rows_per_pair(tuple(each.backward for each in schedules)))
    hub = Hub(3)
    transports = binned_on_hub(schedules, hub=hub, framing=framing)
    stream_all(transports, parts, calls, random_cut(parts, 1, bins))
    sizes = {size: count for (kind, size), count in hub.kinds().items() if kind == Kind.FEATURE}
    expected = Counter()
    for pair in rows.ravel().tolist():
        expected.update(len(calls) * sizes_of_frames(pair, 40, framing.mtu))
    assert sizes == expected
    assert sum(each.counters.data_resent for each in transports) == 0


def order_of(graph, assignment, worker):
    source, destination = graph.edges()
    own = np.flatnonzero(assignment == worker)
    mine = (assignment[source] == worker) & (assignment[destination] == worker)
    crosses = assignment[source] != assignment[destination]
    remote = np.isin(own, np.concatenate([source[crosses], destination[crosses]]))
    return visit_order(np.searchsorted(own, np.stack([source[mine], destination[mine]])), remote)


@pytest.mark.parametrize("direction", BOTH)
def test_fed_in_the_order_of_computing_rows_leave_at_once_and_in_full_groups(direction):
    """Forward and backward; an acknowledgement more for each bin and pair, at most."""
    graph, assignment = random_case(120, 500, 2, 6, directed=False)
    parts = parts_of(assignment, 2)
    features, _ = calls_of(graph, 5, 1)[0]
    hub = Hub(2)
    framing = Framing(46 + 4 * 5)
    transports = binned_on_hub(binned_schedules(graph, assignment, 2), hub=hub, framing=framing)
    orders = [order_of(graph, assignment, worker) for worker in range(2)]
    if direction is Direction.BACKWARD:
        orders = [order[::-1] for order in orders]
    bins = 6
    stream_all(
        *(transports, parts, [(features, direction)]),
        lambda worker, _: np.array_split(orders[worker], bins),
    )
    ends = b"".join(mac_bytes(hub.stations[worker]) for worker in (1, 0))
    data = [each for each in hub.sent if each[KIND_AT] & 15 == Kind.FEATURE and each[:12] == ends]
    numbers = [parse_header(frame).header.src_id for frame in data]
    assert numbers == sorted(numbers)
    assert len(numbers) > 4 * bins
    assert transports[1].counters.acks_sent <= len(numbers) // 8 + bins


@pytest.fixture
def alone():
    graph, assignment = random_case(40, 200, 2, 9, directed=False)
    transport = binned_on_hub(binned_schedules(graph, assignment, 2), pace=Pace(timeout=0.25))[0]
    return transport, np.arange(parts_of(assignment, 2)[0].size)


def test_nobody_enters_a_round_before_the_one_before_the_last_is_complete(alone):
    transport, indices = alone
    for _ in range(2):
        transport.begin(3, BOTH[0]).feed(indices, np.ones((len(indices), 3), np.float32))
    with pytest.raises(SilentWorkerError, match="Nothing was heard of worker 1"):
        transport.begin(3, BOTH[0])


def test_what_stops_the_thread_is_raised_to_who_waits(alone):
    transport, indices = alone
    with transport.in_background() as driver:
        stream = transport.begin(3, BOTH[0])
        stream.feed(indices, np.ones((len(indices), 3), np.float32))
        for _ in range(2):
            with pytest.raises(SilentWorkerError, match="worker 1"):
                stream.sums(indices)
    assert not driver._thread.is_alive()
    assert driver.seconds > 0


def test_hosts_only_add(alone):
    transport, indices = alone
    rows = np.ones((len(indices), 3), np.float32)
    with pytest.raises(TransportError, match="between hosts has sums only: exchange a max over"):
        transport.aggregate(rows, BOTH[0], operation=Operation.MAX)


def test_wrong_rows_are_refused(alone):
    stream = alone[0].begin(3, BOTH[0])
    stream.feed(np.array([0, 2]), np.ones((2, 3), np.float32))
    with pytest.raises(FeatureError, match="row 2 twice"):
        stream.feed(np.array([1, 2]), np.ones((2, 3), np.float32))
    for rows in (np.ones((1, 4), np.float32), np.ones((2, 3), np.float32), np.ones((1, 3))):
        with pytest.raises(FeatureError, match="3 float32"):
            stream.feed(np.array([3]), rows)
    graph, assignment = random_case(40, 200, 2, 9, directed=False)
    with pytest.raises(DirectError, match="cannot be sampled"):
        binned_on_hub(binned_schedules(graph, assignment, 2), sampling=Sampling(0.5))


def test_a_round_may_be_over_before_the_one_before_it():
    """A farewell tells the others of all rounds that are over, in whatever order they ended."""
    over = set()
    parts = SimpleNamespace(done=over.__contains__, close_round=lambda _: None)
    exchange = object.__new__(DirectExchange)
    here = SimpleNamespace(done=True, joined_at=0.0)
    whole = {"complete": False, "incoming": here, "began_at": 0.0}
    exchange._rounds = {each: SimpleNamespace(**whole) for each in (4, 5)}
    exchange._finished = exchange._newest = 3
    exchange._outbox = exchange._arrivals = parts
    for number, finished in ((5, 3), (4, 5)):
        over.add(number)
        assert exchange._close_rounds(0.0)
        assert exchange._finished == finished
