"""Cached rows and few bits against a model switch: bounds, no drift, and fewer bytes."""

import numpy as np
import pytest

from switchgnn.host.base.compression import Compression
from switchgnn.host.innetwork.fixed_point import ExchangeKind
from switchgnn.host.innetwork.outgoing import ChangedRows
from switchgnn.host.links.faults import Faults
from switchgnn.host.wire.header import BODY_AT, Kind, unpack_header
from switchgnn.planner import Direction, reference_sums
from tests.host.innetwork.test_exchange import STEADY, Team, one_way_graph, plan_of, random_features

CACHED = Compression(cache=True)
FORWARD, BACKWARD = Direction
TROUBLE = Faults.parse("loss=0.02,duplicate=0.02,reorder=0.02,seed=5")
WIDTH = 33


@pytest.fixture
def graph():
    return one_way_graph()


def team_of(graph, compression, *, epsilon=0.0, send="cover", **options):
    plan = plan_of(graph, 3, slots=options.pop("slots", 8), send=send, directions="both")
    team = Team(plan, pace=STEADY, **options)
    for exchange in team.exchanges:
        exchange.compress(compression)
        exchange.epsilon = epsilon
    return team


def run(team, features, direction=FORWARD, tensor_id=0):
    """Exchange a round; return the sums of all vertices, float64, and one worker's result."""
    directions = [direction] * len(team.exchanges)
    integers, results = team.aggregate(features, directions=directions, tensor_id=tensor_id)
    assert not team.errors, team.errors
    scale = results[0].fixed_point
    return scale.decode(integers), integers, scale


def sums_of_sent(team, width):
    """The sums of what all workers remember of their sent rows, vertex by vertex of the graph."""
    sent = {}
    for part, exchange in zip(team.plan.workers, team.exchanges, strict=True):
        for block, rows in exchange._caches[0, ExchangeKind(FORWARD, width)].sent.items():
            frames = slice(*part.send_indptr[block - 1 : block + 1])
            for source, row in zip(part.send_source[frames].tolist(), rows, strict=True):
                sent[block, source] = row.astype(np.int64)
    total = np.zeros((len(team.plan.assignment), width), dtype=np.int64)
    for key, targets in team.switch.fanout.items():
        for vertex, _, _ in targets:
            total[vertex] += sent.get(key, 0)
    return total


def sizes(features, assignment):
    """Return float64[V, F], by which changes are measured: the same in all columns of a row."""
    largest = np.abs(features.astype(np.float64)).max(axis=1)
    usual = np.array([largest[assignment == each].mean() for each in range(assignment.max() + 1)])
    return np.broadcast_to(np.maximum(largest, usual[assignment])[:, np.newaxis], features.shape)


def walk(generator, features):
    rows = generator.random(len(features)) < 0.3
    features[rows] += 0.05 * generator.standard_normal((rows.sum(), features.shape[1]))
    return features.astype(np.float32)


@pytest.mark.parametrize("bits", [16, 8])
@pytest.mark.parametrize("extra", [{}, {"feedback": True}, {"stochastic": True}])
def test_few_bits_stay_within_the_bound(graph, bits, extra):
    team = team_of(graph, Compression(bits=bits, **extra))
    for index in range(4):
        features = random_features(graph, WIDTH, index)
        total, _, scale = run(team, features)
        exact = reference_sums(graph, team.plan.assignment, features.astype(np.float64), FORWARD)
        assert scale.scale * np.abs(features).max() < 2 ** (bits + 1)
        assert np.abs(total - exact).max() <= scale.error_bound()
    assert team.total()["void"] == 0


def test_what_rounding_takes_away_comes_back(graph):
    """The mean of many rounds is nearer to the sums than any single one."""
    team = team_of(graph, Compression(bits=8, feedback=True))
    features = random_features(graph, 8)
    exact = reference_sums(graph, team.plan.assignment, features.astype(np.float64), FORWARD)
    errors = [run(team, features)[0] - exact for _ in range(40)]
    assert np.abs(np.mean(errors, axis=0)).max() < 0.15 * np.abs(errors[0]).max()


@pytest.mark.parametrize("send", ["multicast", "cover"])
@pytest.mark.parametrize("bits", [32, 8])
def test_without_a_threshold_a_cache_changes_nothing(graph, send, bits):
    team = team_of(graph, Compression(cache=True, bits=bits), send=send)
    generator, features = np.random.default_rng(1), random_features(graph, WIDTH)
    for _ in range(5):
        for direction in Direction:
            assert_exact(graph, team, run(team, features, direction), features, direction)
        features = walk(generator, features)


@pytest.mark.parametrize("rounds", [30, pytest.param(1000, marks=pytest.mark.whole)])
def test_sums_are_those_of_what_was_sent_bit_for_bit(graph, rounds):
    team = team_of(graph, CACHED, epsilon=0.1, faults=TROUBLE)
    generator, features = np.random.default_rng(2), random_features(graph, 8)
    for index in range(rounds):
        total, integers, _ = run(team, features)
        assert np.array_equal(integers, sums_of_sent(team, 8))
        exact = reference_sums(graph, team.plan.assignment, features.astype(np.float64), FORWARD)
        changes = sizes(features, team.plan.assignment)
        most = reference_sums(graph, team.plan.assignment, changes, FORWARD)
        assert (np.abs(total - exact) <= 0.1 * most + 1e-4).all(), index
        features = walk(generator, features)
    savings = [exchange.savings for exchange in team.exchanges]
    assert all(0 < each.skipped < each.rows for each in savings)


@pytest.mark.parametrize("send", ["multicast", "cover"])
def test_skipped_rows_are_those_of_the_round_before(graph, send):
    """A partial sum is skipped only if all its vertices are, and backward nothing is."""
    team = team_of(graph, CACHED, send=send)
    to_skip = np.random.default_rng(6).random(graph.vertices) < 0.7
    for part, exchange in zip(team.plan.workers, team.exchanges, strict=True):
        exchange.skip(0, to_skip[part.vertices])
    first = random_features(graph, 8)
    second = (first + np.float32(0.25)).astype(np.float32)
    found = set()
    for direction in Direction:
        # In the first round all rows are sent whole.
        assert_exact(graph, team, run(team, first, direction), first, direction)
        skipped = sum(each.savings.skipped for each in team.exchanges)
        total = run(team, second, direction)
        if direction is BACKWARD:
            assert_exact(graph, team, total, second, direction)
            continue
        _, integers, scale = total
        assert np.array_equal(integers, sums_of_sent(team, 8))
        old, new = (steps_of(each, scale) for each in (first, second))
        for part, exchange in zip(team.plan.workers, team.exchanges, strict=True):
            for vertices, sent in sent_rows(part, exchange):
                whole = all(to_skip[vertices])
                found.add((min(2, len(vertices)), whole, bool(any(to_skip[vertices]))))
                assert np.array_equal(sent, (old if whole else new)[vertices].sum(axis=0))
                skipped += whole
        assert sum(each.savings.skipped for each in team.exchanges) == skipped
    alone = {(1, True, True), (1, False, False)}
    assert found >= alone | ({(2, True, True), (2, False, True)} if send == "cover" else set())
    for exchange in team.exchanges:
        exchange.skip(0, None)
    assert_exact(graph, team, run(team, second), second, FORWARD)


def steps_of(features, scale):
    return np.rint(features.astype(np.float64) * scale.scale).astype(np.int64)


def assert_exact(graph, team, result, features, direction):
    _, integers, scale = result
    fixed = steps_of(features, scale)
    assert np.array_equal(integers, reference_sums(graph, team.plan.assignment, fixed, direction))


def sent_rows(part, exchange):
    """The vertices of each frame of the forward rounds, and what was sent of them last."""
    for block, rows in exchange._caches[0, ExchangeKind(FORWARD, 8)].sent.items():
        for frame, row in enumerate(rows, part.send_indptr[block - 1]):
            yield part.vertices[part.send_row[slice(*part.send_row_indptr[frame : frame + 2])]], row


@pytest.mark.parametrize("compression", [CACHED, Compression(bits=8, feedback=True)])
def test_nothing_is_kept_of_a_forgotten_tensor(graph, compression):
    team = team_of(graph, compression)
    features = random_features(graph, 8)
    fresh = run(team, features)[1]
    for direction in Direction:
        for tensor_id in (1, 0):
            run(team, features, direction, tensor_id)
    for exchange in team.exchanges:
        exchange.skip(0, np.ones(len(exchange._part.vertices), dtype=np.bool_))
        exchange.forget(0)
        kept = [*exchange._caches, *exchange._parts.rounding._rests]
        assert {tensor_id for tensor_id, _ in kept} == {1}
        assert exchange._skipped.of(0, FORWARD) is None
    assert np.array_equal(run(team, features)[1], fresh)
    assert all(each.savings.full == 5 * compression.cache for each in team.exchanges)


@pytest.mark.parametrize("factor", [5.0, 1000.0, 1e-5])
@pytest.mark.parametrize("bits", [32, 16])
def test_a_scale_that_no_longer_fits_is_renewed(graph, factor, bits):
    team = team_of(graph, Compression(cache=True, bits=bits))
    features = random_features(graph, 8)
    for _ in range(3):
        run(team, features)
    features = (features * factor).astype(np.float32)
    for _ in range(3):
        total, _, scale = run(team, features)
        exact = reference_sums(graph, team.plan.assignment, features.astype(np.float64), FORWARD)
    assert np.abs(total - exact).max() <= scale.error_bound()
    assert all(each.savings.full == 2 for each in team.exchanges)
    assert 1 / scale.scale < np.abs(features).max() / 2 ** (bits - 6)


def test_sums_that_the_switch_has_lost_are_fetched_change_by_change(graph, monkeypatch):
    """Each sum gets the change that its own frame carried, of a row or of a partial sum."""
    team = team_of(graph, CACHED, slots=4)
    generator, features = np.random.default_rng(3), random_features(graph, 8)
    run(team, features)
    switch = team.switch
    lost = {
        (source, vertex)
        for (_, source), targets in switch.fanout.items()
        for vertex, _, _ in targets
        if source >= 2**31 or (source + vertex) % 7 == 0
    }
    switch.lose_inside = lost
    served = watch_contributions(monkeypatch)
    for _ in range(2):
        features = walk(generator, features)
        assert_exact(graph, team, run(team, features), features, FORWARD)
    assert team.total()["sums_made"] > 0
    # Of partial sums the first row alone stands for all.
    assert {(1, True), (2, True), (2, False)} <= served


def watch_contributions(monkeypatch):
    """Return what is served: of how many rows (2 or more), and whether it is more than zeros."""
    served, contribution = set(), ChangedRows.contribution

    def watch(rows, request, row):
        lanes = contribution(rows, request, row)
        schedule = rows.schedules[request.block_id - 1]
        among = [1]
        for frame in np.flatnonzero(schedule.send_destination == request.dst_id):
            sent = schedule.send_row[slice(*schedule.send_row_indptr[frame : frame + 2])]
            among += [len(sent)] if row in sent else []
        served.add((min(2, max(among)), bool(lanes.any())))
        return lanes

    monkeypatch.setattr(ChangedRows, "contribution", watch)
    return served


def test_unchanged_rows_and_sums_have_no_body(graph):
    bodies = []

    def watch(_direction, _worker, frame):
        header = unpack_header(frame)
        if header.kind in (Kind.FEATURE, Kind.SUM):
            bodies.append((header.kind, len(frame) - BODY_AT))
        return [frame]

    team = team_of(graph, CACHED, disturb=watch)
    features = random_features(graph, 32)
    run(team, features)
    assert {size for _, size in bodies} == {128}
    bodies.clear()
    run(team, features)
    assert {kind for kind, _ in bodies} == {Kind.FEATURE, Kind.SUM}
    assert {size for _, size in bodies} == {0}
    bodies.clear()
    changed = features.copy()
    changed[team.plan.workers[0].vertices] += np.float32(0.25)
    run(team, changed)
    assert 0 < np.mean([size == 0 for _, size in bodies]) < 1


def test_few_bits_have_short_bodies(graph):
    sizes = {16: set(), 8: set()}
    for bits, found in sizes.items():
        small = random_features(graph, 32).clip(-1, 1)

        def watch(_direction, _worker, frame, found=found):
            header = unpack_header(frame)
            if header.kind is Kind.FEATURE and header.count == 1:
                found.add(len(frame) - BODY_AT)
            return [frame]

        run(team_of(graph, Compression(bits=bits), disturb=watch), small)
    assert sizes == {16: {64}, 8: {32}}
