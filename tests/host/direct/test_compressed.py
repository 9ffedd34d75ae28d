"""Cached rows and fewer bits: the rule on the whole graph, equal tables at both ends, no drift."""

import numpy as np
import pytest

from switchgnn.host import FeatureError, Pace
from switchgnn.host.base.compression import Compression
from switchgnn.host.base.errors import DirectError, SilentWorkerError, TransportError
from switchgnn.host.direct import copy_schedules, partial_schedules
from switchgnn.host.direct.framing import Framing
from switchgnn.host.direct.kinds import BinnedTransport, copies
from switchgnn.host.direct.sampling import Sampling
from switchgnn.host.wire.header import Kind
from switchgnn.planner.sending.between_hosts import fewest_rows
from tests.host.direct.cached_rows import Call, Rule, exchange_all
from tests.host.direct.crew import (
    BOTH,
    Hub,
    exact_sums,
    features_for,
    on_hub,
    parts_of,
    random_case,
    together,
    wrong,
)
from tests.support.seeds import seed_of, seeds

FORWARD, BACKWARD = BOTH
MAKE = {"host": (copy_schedules, copies), "host-partial": (partial_schedules, fewest_rows)}
WORKERS = 3
FAULTS = "loss=0.05,duplicate=0.05,reorder=0.05,corrupt=0.01"


def walk(graph, width, steps, seed):
    """Features of some epochs: in each one, some vertices change, a little or a lot."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((graph.vertices, width), dtype=np.float32)
    for _ in range(steps):
        yield features.copy()
        moved = rng.random(graph.vertices) < 0.3
        size = rng.choice([0.01, 0.2, 1], (graph.vertices, 1)) * moved[:, None]
        features += (size * rng.standard_normal(features.shape)).astype(np.float32)


def interleaved(graph, epochs, seed, epsilons=(0.1,)):
    """Calls of two tensors in both directions, and of one of them with another width."""
    two = [(tensor_id, 7, direction) for direction in BOTH for tensor_id in (0, 1)]
    shapes = [(0, 33, FORWARD), *two, (0, 33, BACKWARD)]
    tensors = [walk(graph, width, epochs, seed + turn) for turn, (_, width, _) in enumerate(shapes)]
    for epoch in range(epochs):
        for (tensor_id, _, direction), tensor in zip(shapes, tensors, strict=True):
            yield Call(next(tensor), direction, tensor_id, epsilons[epoch % len(epsilons)])


@pytest.mark.parametrize("method", MAKE)
@pytest.mark.parametrize(
    ("bits", "mtu", "directed", "skips"),
    [
        *((32, 1500, True, False), (16, 100, False, False), (8, 200, True, False)),
        *((8, None, True, False), (32, 1500, True, True), (8, 1500, True, True)),
    ],
)
def test_sums_rows_and_bytes_are_those_of_the_rule(method, bits, mtu, directed, skips):
    """With `skips`, many rows are taken as unchanged in most calls."""
    make, choose = MAKE[method]
    graph, assignment = random_case(120, 500, 4, bits, directed=directed)
    hub, compression = Hub(4), Compression(bits, cache=True)
    transports = on_hub(
        make(graph, assignment, 4), hub=hub, framing=Framing(mtu), compression=compression
    )
    rng = np.random.default_rng(bits)
    calls = [
        call._replace(skipped=rng.random(graph.vertices) < 0.7 if skips and turn % 5 else None)
        for turn, call in enumerate(interleaved(graph, 5, bits, epsilons=(0.1, 0, 0.02, 0.5)))
    ]
    sums = exchange_all(transports, parts_of(assignment, 4), calls)
    rule = Rule(graph, assignment, choose, bits=bits, mtu=mtu)
    for call, got in zip(calls, sums, strict=True):
        assert np.abs(got - rule.exchange(call)).max() < 1e-4
    assert sum(each.savings.rows for each in transports) == rule.due
    assert sum(each.savings.skipped for each in transports) == rule.skipped
    assert 0.3 * rule.due < rule.skipped
    assert [each.savings.full for each in transports] == [6] * 4
    sizes = {size: count for (kind, size), count in hub.kinds().items() if kind == Kind.FEATURE}
    assert sizes == rule.frames


@pytest.mark.parametrize("method", MAKE)
def test_without_a_threshold_sums_are_those_of_plain_rows(method):
    """Bit for bit, though few rows travel, also from a thread of its own."""
    make, _ = MAKE[method]
    graph, assignment = random_case(60, 300, WORKERS, 2, directed=True)
    schedules, parts = make(graph, assignment, WORKERS), parts_of(assignment, WORKERS)
    calls = [*interleaved(graph, 6, 3, epsilons=(0,))]
    plain = exchange_all(on_hub(schedules), parts, calls)
    transports = on_hub(schedules, compression=Compression(cache=True))
    assert np.array_equal(bits_of(exchange_all(transports, parts, calls)), bits_of(plain))
    assert all(each.savings.skipped for each in transports)


@pytest.mark.parametrize("compression", [Compression(cache=True), Compression(8, feedback=True)])
def test_nothing_is_kept_of_a_forgotten_tensor(compression):
    graph, assignment = random_case(60, 300, WORKERS, 2, directed=True)
    parts, features = parts_of(assignment, WORKERS), features_for(graph, 9)
    transports = on_hub(copy_schedules(graph, assignment, WORKERS), compression=compression)
    skipped = np.ones(graph.vertices, dtype=np.bool_)

    def forget(worker, call):
        if call.epsilon == 0.5:
            transports[worker].skip(0, skipped[parts[worker]])
            transports[worker].forget(0)
            kept = transports[worker]._compressed
            assert {key.number for key in (*kept._tables, *kept._residuals)} == {1}
            assert kept.skipped.of(0, FORWARD) is None

    calls = [Call(features, direction, tensor_id) for direction in BOTH for tensor_id in (0, 1)]
    last = calls[-1]._replace(epsilon=0.5)
    sums = exchange_all(transports, parts, [*calls, last, calls[0]], forget)
    assert np.array_equal(bits_of(sums[-1:]), bits_of(sums[:1]))
    assert all(each.savings.full == 5 * compression.cache for each in transports)


def bits_of(sums):
    return np.concatenate([each.ravel() for each in sums]).view(np.uint32)


@pytest.mark.whole
@pytest.mark.parametrize("number", seeds(1, 3))
@pytest.mark.parametrize(("method", "bits"), [("host", 8), ("host-partial", 16), ("host", 32)])
def test_both_ends_hold_the_same_rows(method, bits, number):
    """After each of 200 rounds, whatever the network loses, repeats and reorders."""
    seed = seed_of(method, bits, number)
    make, choose = MAKE[method]
    graph, assignment = random_case(40, 200, WORKERS, seed, directed=True)
    schedules = make(graph, assignment, WORKERS)
    transports = on_hub(
        schedules,
        faults=f"{FAULTS},seed={seed % 10**6}",
        framing=Framing(200),
        compression=Compression(bits, cache=True),
    )
    kept = [[] for _ in schedules]

    def keep(worker, call):
        tables = transports[worker]._compressed._tables
        (own,) = [each for key, each in tables.items() if key.direction is call.direction]
        kept[worker].append((own.sent.view(np.uint32).copy(), own.held.view(np.uint32).copy()))

    tensors = [walk(graph, 7, 100, seed + turn) for turn in range(2)]
    calls = [Call(next(tensors[turn % 2]), BOTH[turn % 2], 0, 0.05) for turn in range(200)]
    sums = exchange_all(transports, parts_of(assignment, WORKERS), calls, keep)
    rule = Rule(graph, assignment, choose, bits=bits, mtu=200)
    for turn, (call, got) in enumerate(zip(calls, sums, strict=True)):
        assert np.abs(got - rule.exchange(call)).max() < 1e-3
        sides = [each if call.direction is FORWARD else each.transposed() for each in schedules]
        for a in range(WORKERS):
            for b in range(WORKERS):
                sent = kept[a][turn][0][slice(*sides[a].out_indptr[b : b + 2])]
                assert np.array_equal(sent, kept[b][turn][1][slice(*sides[b].in_indptr[a : a + 2])])
    assert sum(each.counters.data_resent for each in transports) > 0
    assert sum(each.savings.skipped for each in transports) == rule.skipped > 0


@pytest.mark.parametrize("feedback", [False, True])
def test_feedback_makes_up_for_rounding(feedback):
    """The sum of all that was received is off by one rounding; without feedback by one a round."""
    rounds, bits = 50, 8
    graph, assignment = random_case(40, 160, WORKERS, 4, directed=True)
    schedules = copy_schedules(graph, assignment, WORKERS)
    transports = on_hub(schedules, compression=Compression(bits, feedback=feedback))
    features = {direction: features_for(graph, 5, turn) for turn, direction in enumerate(BOTH)}
    calls = [
        Call(features[direction], direction, tensor_id)
        for _ in range(rounds)
        for direction in BOTH
        for tensor_id in (1, 2)
    ]
    sums = exchange_all(transports, parts_of(assignment, WORKERS), calls)
    for direction in BOTH:
        exact, _ = exact_sums(graph, assignment, features[direction], direction)
        neighbours, _ = exact_sums(graph, assignment, np.ones_like(exact, np.float32), direction)
        same = [got for call, got in zip(calls, sums, strict=True) if call[1:3] == (direction, 1)]
        error = np.abs(np.sum(same, axis=0, dtype=np.float64) - rounds * exact)
        # A row of one neighbour spans at most 2·|z|, one of several as many times more.
        step = 2 * np.abs(features[direction]).max() / (2**bits - 1)
        assert (float((error / (step * np.maximum(1, neighbours))).max()) < 0.55) is feedback


@pytest.mark.parametrize("compression", [Compression(8), Compression(16, stochastic=True, seed=3)])
def test_each_row_is_rounded_by_itself(compression):
    """Sums are off by a rounding of each neighbour; rows of equal numbers and zeros by none."""
    graph, assignment = random_case(60, 300, WORKERS, 5, directed=False)
    schedules, parts = copy_schedules(graph, assignment, WORKERS), parts_of(assignment, WORKERS)
    transports = on_hub(schedules, hub=Hub(WORKERS), compression=compression)
    constant = np.repeat(features_for(graph, 1), 33, axis=1)
    calls = [Call(features_for(graph, 33)), Call(constant), Call(np.zeros_like(constant))]
    got = exchange_all(transports, parts, calls)
    features = calls[0].features
    neighbours, _ = exact_sums(graph, assignment, np.ones((graph.vertices, 1)))
    step = np.ptp(features, axis=1).max() / (2**compression.bits - 1)
    off = neighbours * step * (1 if compression.stochastic else 0.5)
    assert wrong(graph, assignment, features, got[0], slack=off) == 0
    assert wrong(graph, assignment, features, got[0], slack=off / 50) > 0
    plain = exchange_all(on_hub(schedules), parts, calls)
    assert np.array_equal(bits_of(got[1:]), bits_of(plain[1:]))
    again = exchange_all(on_hub(schedules, compression=compression), parts, calls)
    assert np.array_equal(bits_of(got), bits_of(again))
    assert not any(each.savings.skipped or each.savings.full for each in transports)


def test_zero_rows_and_numbers_that_are_none():
    """A row of zeros is not sent again, and one with NaN is until it is finite again."""
    graph, assignment = random_case(30, 100, 2, 7, directed=False)
    schedules, parts = copy_schedules(graph, assignment, 2), parts_of(assignment, 2)
    transports = on_hub(schedules, compression=Compression(cache=True))
    zeros, rows = np.zeros((graph.vertices, 4), np.float32), features_for(graph, 4)
    broken = rows.copy()
    broken[:, 1] = np.nan
    calls = [Call(each, epsilon=0.5) for each in (zeros, zeros, broken, broken, rows, rows)]
    sums = exchange_all(transports, parts, calls)
    assert np.array_equal(bits_of(sums), bits_of(exchange_all(on_hub(schedules), parts, calls)))
    due = sum(schedule.out_indptr[-1] for schedule in schedules)
    assert sum(each.savings.skipped for each in transports) == 2 * due


def test_without_rows_to_exchange():
    """Workers without any, with rows in one direction only, and without vertices."""
    graph, assignment = random_case(30, 100, 2, 6, directed=True)
    features = features_for(graph, 5)
    only_up = np.where(np.arange(graph.vertices) < 15, 0, 1).astype(np.int32)
    for owner in (np.zeros_like(assignment), assignment, only_up):
        for compression in (Compression(cache=True), Compression(8), Compression(8, cache=True)):
            transports = on_hub(copy_schedules(graph, owner, 3), compression=compression)
            calls = [Call(features, direction) for direction in BOTH for _ in range(3)]
            sums = exchange_all(transports, parts_of(owner, 3), calls)
            for call, got in zip(calls, sums, strict=True):
                assert wrong(graph, owner, features, got, call.direction, slack=0.5) == 0


def test_what_cannot_be_combined_is_refused():
    graph, assignment = random_case(30, 100, 2, 8, directed=False)
    schedules, parts = copy_schedules(graph, assignment, 2), parts_of(assignment, 2)
    for compression in (Compression(cache=True), Compression(16)):
        with pytest.raises(DirectError, match=r"sampling rate of 0\.5 .* cache nor fewer bits"):
            on_hub(schedules, sampling=Sampling(0.5), compression=compression)
    transport = on_hub(schedules, compression=Compression(8))[0]
    rows = np.full((len(parts[0]), 3), np.inf, dtype=np.float32)
    with pytest.raises(FeatureError, match="must be finite"):
        transport.aggregate(rows, FORWARD)
    hub = Hub(2)
    with pytest.raises(TransportError, match=r"transport g3 .* take host"):
        BinnedTransport(schedules[0], hub.link(0), hub.stations, compression=Compression(8))


def test_workers_with_other_tensors_do_not_add_up():
    graph, assignment = random_case(60, 400, 2, 4, directed=False)
    schedules, parts = copy_schedules(graph, assignment, 2), parts_of(assignment, 2)
    transports = on_hub(schedules, pace=Pace(timeout=0.25), compression=Compression(cache=True))

    def work(worker):
        rows = np.ones((len(parts[worker]), 3), dtype=np.float32)
        with pytest.raises(SilentWorkerError, match="another schedule arrived"):
            transports[worker].aggregate(rows, FORWARD, tensor_id=worker)

    together(work, 2)
