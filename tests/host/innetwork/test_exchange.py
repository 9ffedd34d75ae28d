"""The exchange against a model switch: exact sums, and clear words when there are none."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from switchgnn.host import FeatureError, InNetworkExchange, Pace
from switchgnn.host.base.compression import NO_COMPRESSION, Compression
from switchgnn.host.base.operations import Operation
from switchgnn.host.base.silence import SwitchSilentError
from switchgnn.host.innetwork import units
from switchgnn.host.innetwork.errors import PlanMismatchError, RoundMismatchError
from switchgnn.host.links.faults import Faults, FaultyLink
from switchgnn.host.wire.header import Kind, unpack_header
from switchgnn.planner import Direction, build_plan, graph_from_edges, reference_sums
from tests.host.addresses import ADDRESSES, SESSION
from tests.host.model_switch import ModelSwitch, undisturbed
from tests.support.fabrics import added_up, in_threads
from tests.support.markers import full
from tests.support.seeds import seeds
from tests.support.speed import pace_here, seconds_here

QUICK = Pace(window=4, timeout=0.25)
STEADY = Pace(window=4, timeout=20.0)
every_number_of_pools = pytest.mark.parametrize("pools", [1, 2, 4])
every_send = pytest.mark.parametrize("send", ["multicast", "cover"])
FORWARD, BACKWARD = Direction
SUM, MAX, MIN = Operation.SUM, Operation.MAX, Operation.MIN
TURNS = [FORWARD, BACKWARD, BACKWARD, FORWARD, FORWARD]


def plan_of(graph, workers, slots=8, **options):
    return build_plan(graph, workers=workers, slots=slots, program="ab" * 32, **options)


def one_way_graph():
    ends = np.random.default_rng(3).integers(0, 40, (2, 150))
    return graph_from_edges(
        ends[0] % 35, ends[1] % 37 + 3, name="one-way", vertices=40, directed=True
    )


class Team:
    """All workers of a plan, each in a thread."""

    exchange = InNetworkExchange

    def __init__(
        self,
        plan,
        *,
        disturb=undisturbed,
        pace=STEADY,
        plan_number=None,
        faults=None,
        session=SESSION,
        **options,
    ):
        self.plan = plan
        manifest = plan.manifest
        number = manifest.number if plan_number is None else plan_number
        self.switch = ModelSwitch(plan.switch, manifest.workers, number, disturb, session)
        links = [self.switch.link(part.worker) for part in plan.workers]
        if faults:
            links = [FaultyLink(link, faults, link.worker) for link in links]
        options |= {"session": session, "pace": pace_here(pace)}
        self.exchanges = [
            self.exchange(manifest, part, link, ADDRESSES, **options)
            for part, link in zip(plan.workers, links, strict=True)
        ]
        self.errors: dict[int, Exception] = {}

    def total(self):
        return added_up(exchange.counters for exchange in self.exchanges)

    def run(self, work, absent=()):
        """Call ``work`` in a thread for each worker; keep the errors and return the results."""
        results = {}

        def guarded(worker):
            try:
                if worker not in absent:
                    results[worker] = work(worker)
            except Exception as error:
                self.errors[worker] = error

        in_threads(guarded, len(self.exchanges))
        return results

    def aggregate(
        self,
        features,
        *,
        absent=(),
        directions=None,
        tensor_id=0,
        first=lambda _: None,
        operations=[SUM] * 8,
    ):
        """Exchange a round; each worker calls ``first`` before it."""

        def work(worker):
            first(worker)
            rows = self.plan.workers[worker].vertices
            direction = directions[worker] if directions else Direction.FORWARD
            own = {"tensor_id": tensor_id, "operation": operations[worker]}
            return self.exchanges[worker].aggregate_fixed(features[rows], direction, **own)

        results = self.run(work, absent)
        total = np.zeros(features.shape, dtype=np.int32)
        for worker, result in results.items():
            total[self.plan.workers[worker].vertices] = result.values
        return total, results


def expected(plan, graph, features, result, direction=Direction.FORWARD):
    fixed = np.rint(features.astype(np.float64) * result.fixed_point.scale).astype(np.int64)
    return reference_sums(graph, plan.assignment, fixed, direction)


def random_features(graph, width, seed=0):
    return np.random.default_rng(seed).standard_normal((graph.vertices, width)).astype(np.float32)


def exact(team, graph, features, direction=FORWARD):
    total, results = team.aggregate(features, directions=[direction] * len(team.exchanges))
    assert not team.errors, team.errors
    assert np.array_equal(total, expected(team.plan, graph, features, results[0], direction))
    return results[0].fixed_point


def check_rounds(team, graph, width, rounds=2):
    for index in range(rounds):
        exact(team, graph, random_features(graph, width, index))


@pytest.mark.parametrize(
    ("workers", "send"),
    [(1, "multicast"), (2, "cover"), (3, "multicast"), (8, "multicast"), (8, "cover")],
)
def test_sums_are_exact(graph, workers, send):
    check_rounds(Team(plan_of(graph, workers, send=send)), graph, 5)


@pytest.mark.parametrize("lanes", [8, pytest.param(16, marks=full), 32, 256])
def test_frames_of_every_width_carry_rows_of_every_width(graph, lanes):
    team = Team(plan_of(graph, 3, lanes=lanes, slots=64))
    for width in (1, 31, 32, 33, 100, 300):
        check_rounds(team, graph, width, rounds=1)


@every_number_of_pools
def test_an_empty_unit_is_no_block(graph, pools):
    """Pools without a fragment have one, which is neither counted nor told."""
    told = []
    plan = plan_of(graph, 2, slots=64 * pools, pools=pools)
    team = Team(plan, on_block=lambda *unit: told.append(unit))
    check_rounds(team, graph, 4, rounds=1)
    assert plan.manifest.blocks == 1
    assert told == [(1, 1, 0)] * 2
    assert [exchange.status.blocks for exchange in team.exchanges] == [1, 1]


def test_a_row_of_more_fragments_than_a_header_counts_is_refused(graph):
    team = Team(plan_of(graph, 2, lanes=8))
    team.aggregate(np.zeros((graph.vertices, 8 * 2**11 + 1), dtype=np.float32))
    assert all("is too wide" in str(error) for error in team.errors.values())
    assert len(team.errors) == 2


@every_send
@every_number_of_pools
@pytest.mark.parametrize("seed", seeds(1, 3))
@pytest.mark.parametrize("faults", [None, "loss=0.05,duplicate=0.1,reorder=0.2,corrupt=0.02"])
def test_rounds_in_both_directions_are_exact(faults, seed, send, pools):
    graph = one_way_graph()
    plan = plan_of(graph, 4, slots=8 * pools, pools=pools, directions="both", send=send)
    assert plan.manifest.direction(Direction.BACKWARD).first_block > 2
    team = Team(plan, faults=Faults.parse(f"{faults},seed={seed}") if faults else None)
    for index, direction in enumerate(TURNS[1:] if faults else TURNS):
        exact(team, graph, random_features(graph, 33, index), direction)


@every_send
@pytest.mark.parametrize(
    ("faults", "compression"),
    [
        pytest.param("loss=0.05,duplicate=0.1,reorder=0.2,seed=1", NO_COMPRESSION, id="plain"),
        pytest.param("", Compression(8, cache=True, stochastic=True), id="compressed"),
    ],
)
def test_maxima_and_minima_are_to_the_bit(faults, compression, send):
    """Of numbers that have no common scale, foreseen or not; one is fetched, and some have none."""
    graph = one_way_graph()
    plan = plan_of(graph, 4, slots=16, pools=2, send=send)
    team = Team(plan, faults=Faults.parse(faults) if faults else None)
    for exchange in team.exchanges:
        exchange.compress(compression)
    (_, source), targets = next(iter(team.switch.fanout.items()))
    team.switch.lose_inside = {(source, targets[0][0])}
    edges = [(u, v) for u, v in zip(*graph.edges(), strict=True)]
    for index, operation in enumerate([MAX, MIN, SUM, MAX, MAX, MAX, MAX, MIN]):
        features = random_features(graph, 33, index) * np.float32(1e18 ** (index % 3 - 1))
        _, results = team.aggregate(features, operations=[operation] * 4)
        assert not team.errors, team.errors
        if operation is SUM:
            continue
        best = max if operation is MAX else min
        for part in plan.workers:
            found = results[part.worker].decode()
            for vertex, row in zip(part.vertices.tolist(), found, strict=True):
                rows = [
                    features[u]
                    for u, v in edges
                    if v == vertex and plan.assignment[u] != part.worker
                ]
                nothing = np.full(33, -np.inf if operation is MAX else np.inf)
                assert row.tolist() == list(map(best, nothing.tolist(), *rows, nothing.tolist()))
    counters = team.total()
    assert counters["features_fetched"] >= 1
    assert counters["early"] > 0 and not counters["void"]


def test_workers_with_different_operations_are_refused(graph):
    team = Team(plan_of(graph, 2), pace=QUICK)
    team.aggregate(random_features(graph, 4), operations=[SUM, MAX])
    assert any("with the same operation" in str(error) for error in team.errors.values())


def test_sums_of_earlier_rounds_are_not_taken(graph, monkeypatch):
    """They come before the right one, for the same vertex, whole and with a right checksum."""
    # Native code would take the right one first where both are read at once.
    monkeypatch.setattr(units, "native_frames", lambda: None)
    kept = {}

    def before_each(direction, worker, frame):
        header = unpack_header(frame)
        if direction != "down" or header.kind is not Kind.SUM:
            return [frame]
        unit = worker, header.block_id, header.fragment, header.dst_id
        older = kept.get(unit)
        kept[unit] = frame
        return [frame] if older is None else [older, frame]

    team = Team(plan_of(graph, 3), disturb=before_each)
    check_rounds(team, graph, 33, rounds=3)
    assert team.total()["late"] > 0


def drop_first(kind, direction, how_many=1, workers=range(9), dropped=None):
    dropped = [] if dropped is None else dropped

    def disturb(where, worker, frame):
        header = unpack_header(frame)
        right = where == direction and worker in workers and header and header.kind is kind
        if right and len(dropped) < how_many:
            dropped.append(frame)
            return []
        return [frame]

    return disturb


@pytest.mark.parametrize(
    ("kind", "direction", "workers"),
    [
        (Kind.DONE, "up", range(9)),
        (Kind.ADVANCE, "down", range(9)),
        (Kind.ADVANCE, "down", {0}),  # the others' sums overtake it
        (Kind.ACK, "down", range(9)),
    ],
)
@every_number_of_pools
def test_lost_control_packets_are_repeated(graph, kind, direction, workers, pools):
    dropped = []
    plan = plan_of(graph, 4, slots=8 * pools, pools=pools)
    check_rounds(Team(plan, disturb=drop_first(kind, direction, 5, workers, dropped)), graph, 64)
    assert len(dropped) == 5


@pytest.mark.parametrize("kind", [Kind.FEATURE, Kind.SUM])
@pytest.mark.parametrize("how_many", [pytest.param(1, marks=full), 7])
@every_send
@every_number_of_pools
def test_lost_features_and_sums_are_repaired(graph, kind, how_many, send, pools):
    direction = "up" if kind is Kind.FEATURE else "down"
    plan = plan_of(graph, 4, slots=8 * pools, pools=pools, send=send)
    team = Team(plan, disturb=drop_first(kind, direction, how_many))
    check_rounds(team, graph, 33)
    assert team.total()["features_resent" if kind is Kind.FEATURE else "sums_recalled"] >= 1


def test_a_fetched_feature_serves_every_sum_that_needs_it(graph):
    """Each worker fetches each remote neighbour once, also those in partial sums only."""
    plan = plan_of(graph, 3, slots=64, send="cover")
    sent = {int(source) for part in plan.workers for source in part.send_source}
    assert {int(source) for part in plan.workers for source in part.neighbour_vertex} - sent
    team = Team(plan)
    team.switch.lose_inside = {
        (source, vertex)
        for (_, source), targets in team.switch.fanout.items()
        for vertex, _, _ in targets
    }
    check_rounds(team, graph, 4)
    copies = sum(len(np.unique(part.neighbour_vertex)) for part in plan.workers)
    assert team.total()["features_fetched"] == 2 * copies


@pytest.mark.parametrize(("when", "send"), [(3, "multicast"), (60, "cover"), (150, "multicast")])
@every_number_of_pools
def test_a_switch_that_forgets_everything(graph, when, send, pools):
    """Kill and restart the switch after so many frames: the sums are exact."""
    seen = []

    def count(direction, worker, frame):
        seen.append(direction)
        return [frame]

    team = Team(plan_of(graph, 3, slots=64, pools=pools, send=send), disturb=count)
    stop = threading.Event()

    def restart():
        while len(seen) < when and not stop.is_set():
            stop.wait(0.001)
        team.switch.restart()

    thread = threading.Thread(target=restart)
    thread.start()
    try:
        check_rounds(team, graph, 33)
    finally:
        stop.set()
        thread.join()


def test_who_was_told_to_go_on_says_done_again(graph):
    """The switch restarts when one worker knows that the round is open, and the other does not."""
    restarted = []

    def disturb(direction, worker, frame):
        told = direction == "down" and unpack_header(frame).kind is Kind.ADVANCE
        if not told or worker == 0 or restarted:
            return [frame]
        restarted.append(threading.Thread(target=team.switch.restart))
        restarted[0].start()
        return []

    team = Team(plan_of(graph, 2), disturb=disturb, pace=replace(QUICK, timeout=seconds_here(5.0)))
    check_rounds(team, graph, 4)
    assert len(restarted) == 1
    assert team.exchanges[0].counters.barriers_repeated >= 1


def test_an_owner_that_does_not_answer_is_named(graph):
    def deaf(direction, worker, frame):
        return [] if direction == "down" and unpack_header(frame).kind is Kind.FETCH else [frame]

    # Long enough for the standstill after which features are fetched.
    team = Team(plan_of(graph, 2, slots=64), disturb=deaf, pace=replace(QUICK, timeout=0.7))
    (_, source), targets = next(iter(team.switch.fanout.items()))
    team.switch.lose_inside = {(source, vertex) for vertex, _, _ in targets}
    owner = team.switch.owner[source]
    team.aggregate(random_features(graph, 4))
    assert f"Worker {owner} did not answer" in str(team.errors[1 - owner])
    assert "Round 1, block 1, fragment 0" in str(team.errors[1 - owner])


def test_a_silent_switch_is_reported(graph):
    team = Team(plan_of(graph, 1), disturb=lambda *_: [], pace=QUICK)
    team.aggregate(random_features(graph, 4))
    assert "no answer from the switch on model:0" in str(team.errors[0])


@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize(("when", "pools"), [(3, 1), (60, 2), (100, 1), (150, 4)])
def test_an_exchange_goes_on_where_a_silent_switch_has_left_it(graph, when, pools, forgets):
    """From the frame `when` on, nothing passes until all workers have noticed."""
    seen, back = [], threading.Event()

    def cut(direction, worker, frame):
        seen.append(direction)
        return [frame] if len(seen) < when or back.is_set() else []

    def answer():
        team.switch.forget() if forgets and not back.is_set() else None
        back.set()

    # It answers before any worker asks again.
    silent = threading.Barrier(3, answer)

    def work(worker):
        exchange = team.exchanges[worker]
        rows = features[team.plan.workers[worker].vertices]
        sums = None
        for own in [lambda: exchange.aggregate(rows), exchange.resume, exchange.resume]:
            try:
                sums = own()
            except SwitchSilentError:
                noticed.add(worker)
            silent.wait(seconds_here(30.0))
        return exchange.aggregate(rows) if sums is None else sums

    features, noticed = random_features(graph, 33), set()
    team = Team(
        plan_of(graph, 3, slots=64, pools=pools), disturb=cut, pace=replace(STEADY, silence=0.2)
    )
    team.run(work)
    assert not team.errors and noticed
    check_rounds(team, graph, 33)


def test_another_plan_is_refused(graph):
    team = Team(plan_of(graph, 2), plan_number=0xABCDEF01)
    team.aggregate(random_features(graph, 4))
    for error in team.errors.values():
        assert isinstance(error, PlanMismatchError)
        assert "abcdef01" in str(error)


def test_a_plan_that_is_just_being_installed_is_waited_for(graph):
    """A switch that was restarted serves no plan until the controller has been there."""
    plan = plan_of(graph, 2)
    asked = []

    def install_later(direction, worker, frame):
        if direction == "up" and unpack_header(frame).kind is Kind.DONE:
            asked.append(worker)
            if len(asked) == 4:
                team.switch.plan = plan.manifest.number
        return [frame]

    team = Team(plan, disturb=install_later, plan_number=0)
    check_rounds(team, graph, 4)


@pytest.mark.parametrize("kind", [Kind.ADVANCE, Kind.DONE])
def test_a_lost_barrier_packet_of_a_plan_without_blocks(kind):
    """Who has been told to go on must not take the others' round away from them."""
    ends = np.array([[0, 1, 2, 0, 4, 5, 6, 4], [1, 2, 3, 3, 5, 6, 7, 7]])
    graph = graph_from_edges(*ends, name="islands", vertices=8, directed=False)
    plan, features = plan_of(graph, 2), random_features(graph, 3)
    assert not plan.manifest.direction(Direction.FORWARD).block_numbers
    direction = "down" if kind is Kind.ADVANCE else "up"
    team = Team(plan, disturb=drop_first(kind, direction, 3))

    def work(worker):
        """Begin each next round without waiting for the others."""
        rows = plan.workers[worker].vertices
        return [team.exchanges[worker].aggregate(features[rows]).any() for _ in range(6)]

    assert team.run(work) == {worker: [False] * 6 for worker in range(2)}
    assert not team.errors, team.errors


def test_a_round_that_is_over_is_refused(graph):
    team = Team(plan_of(graph, 2), pace=QUICK)
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
    ],
)
def test_bad_features_are_refused(graph, features, words):
    team = Team(plan_of(graph, 1), pace=QUICK)
    with pytest.raises(FeatureError, match=words):
        team.exchanges[0].aggregate(features)
