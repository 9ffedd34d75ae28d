# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The exchange against a model switch: exact sums, and clear words when there are none."""

import threading

import numpy as np
import pytest

from switchgnn.host.addresses import Addresses
from switchgnn.host.errors import (
    ExchangeTimeoutError,
    FeatureError,
    PlanMismatchError,
    RoundMismatchError,
)
from switchgnn.host.exchange import Exchange, plan_id
from switchgnn.host.header import Kind, unpack_header
from switchgnn.host.pace import Pace
from switchgnn.planner.build import build_plan
from switchgnn.planner.load import load_graph
from switchgnn.planner.reference import reference_sums
from tests.host.model_switch import ModelSwitch, undisturbed

QUICK = Pace(window=4, retry=0.05, patience=0.5)
STEADY = Pace(window=4, retry=0.05, patience=20.0)


@pytest.fixture(scope="module")
def graph():
    return load_graph("karate")


def plan_of(graph, workers, slots=8):
    return build_plan(graph, workers=workers, slots=slots, program="ab" * 32)


class Team:
    """All workers of a plan, each in a thread."""

    def __init__(self, plan, *, disturb=undisturbed, pace=STEADY, plan_number=None, **options):
        self.plan = plan
        manifest = plan.manifest
        number = plan_id(manifest) if plan_number is None else plan_number
        self.switch = ModelSwitch(plan.switch, manifest.workers, number, disturb)
        self.exchanges = [
            Exchange(
                manifest,
                part,
                self.switch.link(part.worker),
                Addresses("02:00:00:00:00:01", "10.0.0.1", "02:00:00:00:ff:fe", "10.0.255.254"),
                pace=pace,
                **options,
            )
            for part in plan.workers
        ]
        self.errors: dict[int, Exception] = {}

    def aggregate(self, features, *, absent=()):
        results = {}

        def work(worker):
            rows = self.plan.workers[worker].vertices
            try:
                results[worker] = self.exchanges[worker].aggregate_fixed(features[rows])
            except Exception as error:
                self.errors[worker] = error

        threads = [
            threading.Thread(target=work, args=(worker,))
            for worker in range(len(self.exchanges))
            if worker not in absent
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        total = np.zeros(features.shape, dtype=np.int32)
        for worker, result in results.items():
            total[self.plan.workers[worker].vertices] = result.values
        return total, results


def expected(plan, graph, features, result):
    scale = result.fixed_point.scale
    fixed = np.rint(features.astype(np.float64) * scale).astype(np.int64)
    return reference_sums(graph, plan.assignment, fixed)


def random_features(graph, width, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((graph.vertices, width)).astype(np.float32)


def check_rounds(team, graph, width, rounds=2):
    for index in range(rounds):
        features = random_features(graph, width, index)
        total, results = team.aggregate(features)
        assert not team.errors, team.errors
        assert np.array_equal(total, expected(team.plan, graph, features, results[0]))


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 8])
def test_sums_are_exact(graph, workers):
    check_rounds(Team(plan_of(graph, workers)), graph, 5)


@pytest.mark.parametrize("width", [1, 31, 32, 33, 128])
def test_every_width_is_exact(graph, width):
    check_rounds(Team(plan_of(graph, 3)), graph, width)


def test_aggregate_decodes_within_the_bound(graph):
    plan = plan_of(graph, 1)
    team = Team(plan)
    features = random_features(graph, 3)
    assert np.array_equal(team.exchanges[0].aggregate(features), np.zeros_like(features))


def test_repeated_frames_change_nothing(graph):
    team = Team(plan_of(graph, 4), disturb=lambda direction, worker, frame: [frame, frame])
    check_rounds(team, graph, 33)
    assert sum(exchange.tally.repeated + exchange.tally.late for exchange in team.exchanges) > 0


def drop_first(kind, direction, how_many=1):
    dropped = []

    def disturb(way, worker, frame):
        header = unpack_header(frame)
        if header and way == direction and header.kind is kind and len(dropped) < how_many:
            dropped.append(frame)
            return []
        return [frame]

    return disturb


@pytest.mark.parametrize(
    ("kind", "direction"), [(Kind.DONE, "up"), (Kind.ADVANCE, "down"), (Kind.ACK, "down")]
)
@pytest.mark.parametrize("how_many", [1, 5])
def test_lost_control_packets_are_repeated(graph, kind, direction, how_many):
    team = Team(plan_of(graph, 4), disturb=drop_first(kind, direction, how_many))
    check_rounds(team, graph, 33)


def test_sums_that_overtake_the_advance_are_kept(graph):
    """An `advance` that comes late must not cost the sums of the next block."""
    held = []

    def disturb(way, worker, frame):
        header = unpack_header(frame)
        if way == "down" and worker == 0 and header.kind is Kind.ADVANCE and len(held) < 3:
            held.append(frame)
            return []
        return [frame]

    team = Team(plan_of(graph, 4), disturb=disturb)
    check_rounds(team, graph, 64)
    assert len(held) == 3


@pytest.mark.parametrize("kind", [Kind.FEATURE, Kind.SUM])
def test_a_lost_packet_is_reported_with_round_block_and_vertices(graph, kind):
    direction = "up" if kind is Kind.FEATURE else "down"
    plan = plan_of(graph, 2)
    disturb = drop_first(kind, direction)

    def lose_one_without_echo(way, worker, frame):
        header = unpack_header(frame)
        if header and header.echo:
            return [frame]
        return disturb(way, worker, frame)

    team = Team(plan, disturb=lose_one_without_echo, pace=QUICK)
    team.aggregate(random_features(graph, 4))
    messages = [str(error) for error in team.errors.values()]
    assert any(
        "Round 1, block 1, fragment 0" in message and "sums are missing (vertices" in message
        for message in messages
    ), messages


def test_an_absent_worker_is_named(graph):
    team = Team(plan_of(graph, 4), pace=QUICK)
    team.aggregate(random_features(graph, 4), absent={2})
    assert set(team.errors) == {0, 1, 3}
    for error in team.errors.values():
        assert isinstance(error, ExchangeTimeoutError)
        assert "for worker 2" in str(error)


def test_a_silent_switch_is_reported(graph):
    team = Team(plan_of(graph, 1), disturb=lambda *_: [], pace=QUICK)
    team.aggregate(random_features(graph, 4))
    assert "no answer from the switch on model:0" in str(team.errors[0])


def test_another_plan_is_refused(graph):
    team = Team(plan_of(graph, 2), plan_number=0xABCDEF01)
    team.aggregate(random_features(graph, 4))
    for error in team.errors.values():
        assert isinstance(error, PlanMismatchError)
        assert "abcdef01" in str(error)


def test_a_round_that_is_over_is_refused(graph):
    plan = plan_of(graph, 2)
    team = Team(plan, pace=QUICK)
    check_rounds(team, graph, 4)
    for exchange in team.exchanges:
        exchange._round = 1
    team.aggregate(random_features(graph, 4))
    assert isinstance(team.errors[0], RoundMismatchError)
    assert "--new-session" in str(team.errors[0])


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (np.zeros((3, 2), dtype=np.float32), r"must have the shape"),
        (np.zeros(34, dtype=np.float32), r"must have the shape"),
        (np.zeros((34, 0), dtype=np.float32), r"with F from 1"),
        (np.zeros((34, 2), dtype=np.float64), "must be float32, not float64"),
        (np.full((34, 2), np.nan, dtype=np.float32), "must be finite"),
        (np.full((34, 2), 3e38, dtype=np.float32), None),
    ],
)
def test_bad_features_are_refused(graph, features, words):
    team = Team(plan_of(graph, 1), pace=QUICK)
    if words is None:  # one worker has no sums, so nothing overflows
        team.exchanges[0].aggregate(features)
        return
    with pytest.raises(FeatureError, match=words):
        team.exchanges[0].aggregate(features)


@pytest.mark.parametrize("mistake", ["drop", "twice", "swap"])
def test_the_oracle_notices_planted_mistakes(graph, mistake):
    """Drop a contribution, add one twice, swap two destinations: the check must fail."""
    plan = plan_of(graph, 3, slots=64)
    team = Team(plan)
    features = random_features(graph, 4)
    if mistake == "swap":
        _swap_two_destinations(team.switch.fanout)
    else:
        key = next(key for key, targets in team.switch.fanout.items() if len(targets) > 1)
        team.switch._take_feature = _tampering(team.switch, key, mistake)
    total, results = team.aggregate(features)
    assert not team.errors, team.errors
    assert not np.array_equal(total, expected(plan, graph, features, results[0]))


def _tampering(switch, key, mistake):
    """Count every contribution, but add one source's not at all or twice."""
    original = type(switch)._take_feature

    def take_feature(worker, header, place, frame):
        if (header.block_id, header.src_id) == key:
            body = np.frombuffer(frame[-128:], dtype=">i4").astype(np.int64)
            changed = body * (0 if mistake == "drop" else 2)
            frame = frame[:-128] + changed.astype(np.int32).astype(">i4").tobytes()
        original(switch, worker, header, place, frame)

    return take_feature


def _swap_two_destinations(fanout):
    """Exchange two destinations of one worker that await equally many contributions."""
    kinds = {}
    for (block, _), targets in fanout.items():
        for vertex, worker, count in targets:
            kinds.setdefault((block, worker, count), set()).add(vertex)
    one, other = sorted(next(group for group in kinds.values() if len(group) > 1))[:2]
    swapped = {one: other, other: one}
    for key, targets in fanout.items():
        fanout[key] = [(swapped.get(v, v), worker, count) for v, worker, count in targets]
