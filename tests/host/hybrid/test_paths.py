"""What travels on each path, and operations that only the switch has."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest

from switchgnn.host.base.operations import Operation
from switchgnn.host.direct import partial_schedules, rows_per_pair
from switchgnn.host.links.transport import NO_TRAFFIC
from switchgnn.host.paths.base import Path, one_path
from switchgnn.host.paths.edges import host_edges
from switchgnn.host.paths.transport import PathsTransport
from switchgnn.planner import Direction, boundary_edges
from switchgnn.topologies import Target
from tests.host.direct.crew import BOTH, remote_edges, together
from tests.host.hybrid.crew import crew, whole_numbers
from tests.support.fabrics import bed
from tests.virtual.test_paths import random_paths

WORKERS = 3


@pytest.fixture(scope="module")
def karate(tmp_path_factory):
    options = {"graph": "karate", "slots": 8, "directions": "both"}
    with bed(Target.EMBEDDED, WORKERS, tmp_path_factory.mktemp("bed"), **options) as each:
        each.install()
        yield each


def made(bed, paths):
    return [each.schedule(paths) for each in host_edges(bed.graph, bed.plan)]


def pairs(schedules, direction):
    """Rows from worker a to worker b, as each of the two has them."""
    own = [getattr(each, direction.value) for each in schedules]
    sent = rows_per_pair(own)
    assert np.array_equal(sent, np.stack([np.diff(each.in_indptr) for each in own]).T)
    return sent


@pytest.mark.parametrize("direction", BOTH)
def test_a_copy_for_several_blocks_travels_once(karate, direction):
    manifest = karate.plan.manifest
    assert len(manifest.direction(direction).block_numbers) > 1
    boundary = boundary_edges(karate.graph, karate.plan.assignment).towards(direction)
    copies = pairs(made(karate, one_path(manifest, Path.HOST)), direction)
    assert copies.sum() == boundary.host_copies()[0].size
    fewest = pairs(made(karate, one_path(manifest, Path.HOST_PARTIAL)), direction)
    right = partial_schedules(karate.graph, karate.plan.assignment, WORKERS)
    assert np.array_equal(fewest, rows_per_pair(right))
    assert pairs(made(karate, one_path(manifest, Path.SWITCH)), direction).sum() == 0


@pytest.mark.parametrize("seed", range(10))
def test_both_ends_of_a_pair_agree_on_rows(karate, seed):
    schedules = made(karate, random_paths(karate.plan.manifest, seed))
    assert all(pairs(schedules, each).sum() <= 34 * WORKERS for each in Direction)
    both = {(each.forward.digest.tobytes(), each.backward.digest.tobytes()) for each in schedules}
    assert len(both) == 1


@pytest.mark.whole
def test_a_maximum_comes_from_the_switch_whatever_the_paths(karate):
    features = whole_numbers(karate, 5)

    def work(worker):
        rows, own = karate.plan.workers[worker].vertices, transports[worker]
        own.set_paths(one_path(karate.plan.manifest, Path.HOST))
        found = own.aggregate(features[rows], operation=Operation.MAX)
        assert np.array_equal(own.aggregate(features[rows]), sums[rows])
        traffic, expected = own.traffic, own.expected_traffic(5, Direction.FORWARD)
        own.close()
        return found, traffic.frames_up - expected.frames_up

    source, target = karate.graph.edges()
    crossing = karate.plan.assignment[source] != karate.plan.assignment[target]
    sums, right = np.zeros_like(features), np.full_like(features, -np.inf)
    np.add.at(sums, target[crossing], features[source[crossing]])
    np.maximum.at(right, target[crossing], features[source[crossing]])
    with crew(karate) as transports:
        for part, (found, more) in zip(karate.plan.workers, together(work, WORKERS), strict=True):
            assert np.array_equal(found, right[part.vertices])
            assert more > 0


@pytest.mark.parametrize("returns", [False, True])
def test_rows_of_hosts_agree_though_a_worker_has_left_out_epochs_and_paths(karate, returns):
    """As after a silence of the switch, where only some complete what the others have completed."""
    features = whole_numbers(karate, 5)
    by_host, partial = (
        one_path(karate.plan.manifest, each) for each in (Path.HOST, Path.HOST_PARTIAL)
    )

    def work(worker):
        rows, own = karate.plan.workers[worker].vertices, transports[worker]
        own.set_paths(partial)
        own.aggregate(features[rows])
        if worker:
            own.next_epoch()
            own.set_paths(by_host)
        own.set_paths(partial if returns else by_host)
        found = own.aggregate(features[rows])
        own.close()
        return found

    with crew(karate) as transports:
        found = together(work, WORKERS)
    sums = remote_edges(karate.graph, karate.plan.assignment, Direction.FORWARD) @ features
    for part, own in zip(karate.plan.workers, found, strict=True):
        assert np.array_equal(own, sums[part.vertices])


class Tried(PathsTransport):
    """Waits for other hosts, whose frames it takes before it looks at its watch."""

    _begun, _stream, frames = None, SimpleNamespace(round=SimpleNamespace(complete=False)), 0
    traffic = property(lambda self: NO_TRAFFIC._replace(frames_down=self.frames))

    def __init__(self):
        self.heard = []
        self._barrier, self._endpoint, self.watch = MagicMock(), MagicMock(), MagicMock()
        self._endpoint.pace.heartbeat_interval = 1.0
        self._clock = SimpleNamespace(now=lambda: 0.0)
        self.watch.look = lambda _, heard, **__: self.heard.append(heard)
        self._hosts = SimpleNamespace(traffic=NO_TRAFFIC, wait_for=self._hear)
        self._hosts.attend = lambda over, _: over()

    def _hear(self, *_, **__):
        self.frames = 1


def test_what_came_since_the_last_try_to_resume_counts_as_heard():
    tried = Tried()
    _ = tried.resume(), tried.resume()
    assert tried.heard == [True, False]
    assert tried._barrier.repeat_last.call_count == 2
