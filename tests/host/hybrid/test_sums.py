"""Exchanges with some sums from the switch and others from hosts, on a real switch."""

import numpy as np
import pytest

from switchgnn.host import HostError, Pace
from switchgnn.host.base.operations import Operation
from switchgnn.topologies import Target
from tests.host.direct.crew import BOTH, together
from tests.host.hybrid.crew import crew, expected, run, whole_numbers, wrong
from tests.support.fabrics import bed

WORKERS = 3
LOSSES = "loss=0.03,duplicate=0.02,reorder=0.03,corrupt=0.01,seed=4"
FORWARD, BACKWARD = BOTH


def some(graph):
    return np.diff(graph.indptr) <= 3


def all_of_one_worker(graph):
    # The assignment is not known yet; of karate in chunks it is as METIS has it, near enough.
    return np.arange(graph.vertices) < graph.vertices // WORKERS


def forward_only(graph):
    return {FORWARD: np.ones(graph.vertices, dtype=bool)}


def everything(graph):
    return np.ones(graph.vertices, dtype=bool)


LEFT = [some, all_of_one_worker, forward_only, everything]


@pytest.fixture(scope="module", params=LEFT, ids=lambda left: left.__name__)
def made(request, tmp_path_factory):
    options = {"graph": "karate", "slots": 8, "directions": "both", "left": request.param}
    with bed(Target.EMBEDDED, WORKERS, tmp_path_factory.mktemp("bed"), **options) as each:
        assert each.plan.leaves_any
        yield each


def calls_of(bed, widths, seed=0):
    return [(whole_numbers(bed, width, seed), direction) for width in widths for direction in BOTH]


@pytest.mark.whole
def test_sums_and_traffic(made):
    made.install()
    calls = calls_of(made, (1, 33, 64))
    with crew(made) as transports:
        with pytest.raises(HostError, match="has sums only: exchange a min over"):
            transports[0].aggregate(calls[0][0], operation=Operation.MIN)
        before = [each.traffic for each in transports]
        assert wrong(made, calls, run(made, transports, calls)) == 0
        for transport, start in zip(transports, before, strict=True):
            assert sum(start) == 0
            once = [transport.expected_traffic(x.shape[1], direction) for x, direction in calls]
            counters, hosts = transport.counters, transport._hosts.counters
            assert hosts.data_resent == hosts.malformed == counters.malformed == 0
            up = sum(each.bytes_up for each in once)
            control = hosts.questions + hosts.farewells
            again = counters.barriers_repeated
            unasked = counters.recalls + counters.fetches + counters.notices
            if not counters.features_resent + counters.probes + counters.features_served:
                extra = transport.traffic.bytes_up - up - 88 * again - 60 * (control + unasked)
                # Acknowledgements that nobody asked for, of whole groups.
                assert 0 <= extra <= 60 * hosts.acks_sent
                assert extra % 60 == 0


@pytest.mark.whole
def test_sums_under_losses(karate):
    karate.install()
    calls = calls_of(karate, (5, 40)) * 2
    with crew(karate, faults=LOSSES, mtu="200") as transports:
        assert wrong(karate, calls, run(karate, transports, calls)) == 0
        resent = sum(each._hosts.counters.data_resent for each in transports)
        injected = [counts for each in transports for counts in each.injected().values()]
        assert sum(each.lost for each in injected) > 0
        assert resent > 0


def test_both_parts_are_the_whole(karate):
    karate.install()
    features = whole_numbers(karate, 17)
    with crew(karate) as transports:

        def work(worker):
            rows = karate.plan.workers[worker].vertices
            return transports[worker].aggregate(features[rows], FORWARD)

        whole = np.zeros_like(features)
        for part, own in zip(karate.plan.workers, together(work, WORKERS), strict=True):
            whole[part.vertices] = own
    fan_in, everywhere = karate.plan.manifest.max_fan_in, np.ones(karate.graph.vertices, dtype=bool)
    _, right = expected(karate, features, FORWARD, everywhere, 1.0)
    assert np.abs(whole - right).max() <= fan_in**2 * 1000 / 2**31 + fan_in * 1000 / 2**24


@pytest.fixture(scope="module")
def karate(tmp_path_factory):
    options = {"graph": "karate", "slots": 8, "directions": "both", "left": some}
    with bed(Target.EMBEDDED, WORKERS, tmp_path_factory.mktemp("karate"), **options) as each:
        yield each


def test_a_silent_worker_is_named_once(karate):
    """Every other worker ends with one sentence about it, whichever part notices first."""
    karate.install()
    features = whole_numbers(karate, 8)
    with crew(karate, pace=Pace(timeout=0.5)) as transports:

        def work(worker):
            rows = karate.plan.workers[worker].vertices
            transports[worker].aggregate(features[rows], FORWARD)
            if worker == 2:
                return ""
            with pytest.raises(HostError) as error:
                transports[worker].aggregate(features[rows], FORWARD)
            return str(error.value)

        said = together(work, WORKERS)
    for sentence in said[:2]:
        assert "worker 2" in sentence
        assert sentence.count("worker 2") <= 2
