"""Sums equal those on the whole graph, and frames and bytes the prediction; samples on average."""

from collections import Counter
from contextlib import ExitStack

import numpy as np
import pytest

from switchgnn.host.base.errors import DirectError, FeatureError, LinkError, TransportError
from switchgnn.host.base.pace import Pace
from switchgnn.host.direct import copy_schedules, partial_schedules, rows_per_pair
from switchgnn.host.direct.frames import PROTOCOL
from switchgnn.host.direct.framing import LARGEST_MTU, Framing
from switchgnn.host.direct.sampling import Sampling
from switchgnn.host.direct.transport import DirectTransport
from switchgnn.host.host_baseline import Exchanges, HostTraffic, host_traffic
from switchgnn.host.links.transport import check_packets_fit
from switchgnn.host.registry import LocalTransport
from switchgnn.host.wire.header import Kind
from switchgnn.planner.graphs.boundary import boundary_edges
from switchgnn.topologies import Target
from tests.host.direct import crew
from tests.support.fabrics import PATIENT, bed
from tests.support.markers import TARGETS
from tests.support.speed import pace_here

FORWARD, BACKWARD = crew.BOTH
HOSTS = 4
MAKE = {"host": copy_schedules, "host-partial": partial_schedules}


@pytest.mark.parametrize(("directed", "phases"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize(
    ("method", "workers", "width", "mtu"),
    [
        ("host", 1, 1, 1500),
        ("host", 2, 33, 200),
        ("host", 4, 32, None),
        ("host-partial", 3, 100, 1500),
        ("host-partial", 4, 33, None),
        ("host-partial", 8, 10, 50),
    ],
)
def test_sums_and_frames(method, workers, width, mtu, directed, phases):
    graph, assignment = crew.random_case(120, 600, workers, seed=workers + width, directed=directed)
    schedules = MAKE[method](graph, assignment, workers)
    hub = crew.Hub(workers)
    transports = crew.on_hub(schedules, hub=hub, framing=Framing(mtu), phases=phases)
    calls = [
        (crew.features_for(graph, width, seed), direction, False)
        for seed in (1, 2)
        for direction in crew.BOTH
    ]
    sums = crew.exchange(transports, crew.parts_of(assignment, workers), calls)
    for (features, direction, _), got in zip(calls, sums, strict=True):
        assert crew.wrong(graph, assignment, features, got, direction) == 0
        assert got.dtype == np.float32
    sizes = Counter()
    for rows in rows_per_pair(schedules).ravel().tolist():
        sizes.update(len(calls) * crew.sizes_of_frames(rows, width, mtu))
    kinds = hub.kinds()
    assert {size: count for (kind, size), count in kinds.items() if kind == Kind.FEATURE} == sizes
    assert all(size == 60 for kind, size in kinds if kind != Kind.FEATURE)
    assert sum(each.counters.data_resent for each in transports) == 0
    assert sum(each.counters.data_sent for each in transports) == sizes.total()
    assert sum(each.traffic.frames_up for each in transports) == len(hub.sent)
    for each in transports:
        expected = [each.expected_traffic(width, direction) for _, direction, _ in calls]
        spare = each.traffic.frames_up - sum(one.frames_up for one in expected)
        assert each.traffic.bytes_up - sum(one.bytes_up for one in expected) == 60 * spare
        # Farewells, questions of a worker that had to wait, and answers to those of others.
        asked = sum(other.counters.questions for other in transports)
        assert 0 <= spare - each.counters.farewells <= each.counters.questions + asked


def test_an_empty_worker_and_no_boundary_at_all():
    graph, assignment = crew.random_case(30, 100, 2, seed=6, directed=False)
    features = crew.features_for(graph, 5)
    for owner in (np.zeros_like(assignment), assignment):
        crew.check_round(crew.on_hub(copy_schedules(graph, owner, 3)), graph, owner, features)


def test_local_is_for_one_worker():
    with pytest.raises(TransportError, match="for one worker, but there are 2"):
        LocalTransport(5, workers=2)


@pytest.mark.parametrize(
    "rows", [np.ones((4, 3), np.float32), np.ones((5, 0), np.float32), np.ones((5, 3), np.float64)]
)
def test_other_shapes_and_types_are_refused(rows):
    with pytest.raises(FeatureError, match=r"float32|shape"):
        LocalTransport(5).aggregate(rows, FORWARD)


# Wide enough for groups of eight frames of any MTU.
WIDE = Pace(window=128)
EXCHANGES = [Exchanges(FORWARD, 33, 3), Exchanges(BACKWARD, 7, 2)]


@pytest.mark.parametrize(
    ("mtu", "directed"), [("fragment", False), ("200", True), ("9000", False), ("1500", True)]
)
def test_the_bytes_of_each_worker_are_those_that_its_transport_expects(mtu, directed):
    graph, assignment = crew.random_case(200, 1500, HOSTS, seed=4, directed=directed)
    framing = Framing.parse(mtu)
    found = host_traffic(boundary_edges(graph, assignment), HOSTS, EXCHANGES, framing)
    assert found.keys() == MAKE.keys()
    for name, make in MAKE.items():
        expected = [
            [(one.times, each.expected_traffic(one.width, one.direction)) for one in EXCHANGES]
            for each in crew.on_hub(make(graph, assignment, HOSTS), pace=WIDE, framing=framing)
        ]
        up = [sum(times * one.bytes_up for times, one in each) for each in expected]
        down = [sum(times * one.bytes_down for times, one in each) for each in expected]
        assert (found[name].up, found[name].down) == (up, down)
        assert str(found[name].mtu) == mtu
    assert sum(found["host-partial"].up) < sum(found["host"].up)


def test_between_leaves_counts_pairs_of_workers_on_two_leaves():
    traffic = HostTraffic(1500, np.arange(16).reshape(4, 4))
    pairs = [(0, 2), (0, 3), (1, 2), (1, 3), (2, 0), (2, 1), (3, 0), (3, 1)]
    assert traffic.between((0, 0, 1, 1)) == sum(4 * a + b for a, b in pairs)
    assert traffic.between((0, 0, 0, 0)) == 0


SAMPLERS, EPOCHS = 3, 100


@pytest.fixture(scope="module")
def case():
    graph, assignment = crew.random_case(45, 200, SAMPLERS, 11, directed=True)
    return graph, assignment, np.random.default_rng(1).standard_normal((45, 4), dtype=np.float32)


def sampled(case, calls, hub=None, **options):
    graph, assignment, _ = case
    transports = crew.on_hub(
        copy_schedules(graph, assignment, SAMPLERS), hub=hub, sampling=Sampling(0.4, 0), **options
    )
    return crew.exchange(transports, crew.parts_of(assignment, SAMPLERS), calls), transports


def deviations(samples, exact):
    """How many standard errors the mean is off, largest element; 0/0 counts as 0."""
    mean, error = samples.mean(axis=0), samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    off = np.abs(mean - exact)
    assert not np.any((error < 1e-9) & (off > 1e-5))
    return float(np.max(off / np.maximum(error, 1e-9), where=error >= 1e-9, initial=0))


@pytest.mark.parametrize("direction", [FORWARD, BACKWARD])
def test_the_mean_over_epochs_is_the_exact_sum(case, direction):
    """180 elements: 6 standard errors are exceeded once in millions of runs."""
    graph, assignment, features = case
    sums = np.array(sampled(case, [(features, direction, True)] * EPOCHS)[0])
    exact, _ = crew.exact_sums(graph, assignment, features, direction)
    assert deviations(sums, exact) < 6


def test_within_an_epoch_backward_is_the_transpose_of_forward(case):
    _, _, x = case
    y = np.random.default_rng(2).standard_normal(x.shape, dtype=np.float32)
    (ax, aty, ax_again), _ = sampled(
        case, [(x, FORWARD, True), (y, BACKWARD, False), (x, FORWARD, False)]
    )
    assert np.vdot(y, ax) == pytest.approx(np.vdot(aty, x), rel=1e-4)
    assert np.array_equal(ax, ax_again)


def test_fewer_frames_travel(case):
    graph, assignment, features = case
    hub = crew.Hub(SAMPLERS)
    _, transports = sampled(case, [(features, FORWARD, False)], hub=hub, framing=Framing(None))
    pairs = [
        max(1, round(0.4 * rows))
        for schedule in copy_schedules(graph, assignment, SAMPLERS)
        for rows in np.diff(schedule.out_indptr).tolist()
        if rows
    ]
    assert sum(each.counters.data_sent for each in transports) == sum(pairs)
    assert sum(size == 188 for _, size in hub.kinds().elements()) == sum(pairs)


@pytest.mark.parametrize(("rate", "seed"), [(0.0, 0), (1.1, 0), (float("nan"), 0), (0.5, -1)])
def test_impossible_samplings_are_refused(rate, seed):
    with pytest.raises(DirectError, match=r"rate|seed"):
        Sampling(rate, seed)


@pytest.fixture(scope="module", params=TARGETS)
def made(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bed")
    with bed(request.param, HOSTS, folder, directions="both", mtu=LARGEST_MTU) as each:
        each.install()
        yield each


@pytest.mark.whole
@pytest.mark.parametrize(("method", "mtu"), [("host", None), ("host-partial", LARGEST_MTU)])
def test_sums_and_frames_through_a_switch(made, method, mtu):
    assignment, features = made.plan.assignment, crew.features_for(made.graph, 400)
    schedules = MAKE[method](made.graph, assignment, HOSTS)
    patient = {"pace": pace_here(PATIENT), "framing": Framing(mtu)}
    with ExitStack() as stack:
        links = [stack.enter_context(made.link(worker, PROTOCOL)) for worker in range(HOSTS)]
        ends = zip(schedules, links, strict=True)
        transports = [DirectTransport(*end, crew.stations(HOSTS), **patient) for end in ends]
        calls = [(features, direction, False) for direction in crew.BOTH]
        sums = crew.exchange(transports, crew.parts_of(assignment, HOSTS), calls)
        for got, (_, direction, _) in zip(sums, calls, strict=True):
            assert crew.wrong(made.graph, assignment, features, got, direction) == 0
        rows = rows_per_pair(schedules).ravel().tolist()
        sizes = [size for each in rows for size in 2 * crew.sizes_of_frames(each, 400, mtu)]
        counters = [each.counters for each in transports]
        # The window of 16 fits the rings of BMv2: nothing is lost.
        assert sum(each.data_resent for each in counters) == 0
        assert sum(each.data_sent for each in counters) == len(sizes)
        control = [each.acks_sent + each.questions + each.farewells for each in counters]
        assert sum(each.traffic.bytes_up for each in transports) == sum(sizes) + 60 * sum(control)


@pytest.mark.whole
def test_an_interface_with_a_smaller_mtu_is_refused(made):
    """Before anything is sent; over UDP all packets fit."""
    if made.target is not Target.BMV2:
        check_packets_fit("udp:127.0.0.1:1:127.0.0.1:2", LARGEST_MTU)
        return
    with made.link(0, PROTOCOL) as link:
        check_packets_fit(f"eth:{link.name}", LARGEST_MTU)
        with pytest.raises(LinkError, match=f"{link.name} has an MTU of {LARGEST_MTU} .* --mtu"):
            check_packets_fit(f"eth:{link.name}", LARGEST_MTU + 1)
    with pytest.raises(LinkError, match="There is no interface nobody"):
        check_packets_fit("eth:nobody", 1500)
