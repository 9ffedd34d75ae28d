"""What drawn scenarios do not look at: counters, directed graphs, wrong predictions, sessions."""

import re
from collections import Counter
from dataclasses import asdict, replace
from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_matrix, save_npz

from switchgnn.host.innetwork.fixed_point import Foresight
from switchgnn.host.wire.header import Kind
from switchgnn.planner.base.direction import Direction
from tests.simulation.checks.check import Check, kind_in
from tests.simulation.scenario import Fault, FaultKind, IncidentRates, Scenario

# As on running switches, in tests/recovery.
STAR = Scenario(seed=1, graph="karate", workers=4, slots=16, width=33, rounds=3, patience=30.0)
on_each_topology = pytest.mark.parametrize(
    "scene",
    [
        pytest.param(STAR, id="star"),
        pytest.param(replace(STAR, pools=3), id="pools"),
        pytest.param(replace(STAR, pools=2, leaves=2, spines=2), id="leaves"),
    ],
)
BAD = IncidentRates(loss=0.05, duplicate=0.05, reorder=0.05)


class Counters(Check):
    """Adds up the counters of all workers, session by session."""

    def begin(self, scene):
        super().begin(scene)
        self.of_sessions = []

    def session_ends(self):
        counters = [asdict(worker.exchange.counters) for worker in self.scene.workers]
        self.of_sessions.append(sum(map(Counter, counters), Counter()))


def counted(soak, scenario, *beside):
    """Run all exchanges without an error; return the counters of each session."""
    counters = Counters()
    outcome = soak.run(scenario, beside=[*beside, counters])
    assert outcome.violations == outcome.errors == ()
    assert outcome.exchanges == scenario.exchanges
    return counters.of_sessions


@on_each_topology
@pytest.mark.parametrize("send", ["multicast", "cover"])
def test_without_faults_nothing_is_repaired(soak, scene, send):
    """From the third round on features come early."""
    (counters,) = counted(soak, replace(scene, send=send, rounds=10))
    assert counters["features_sent"] > 0
    assert counters["early"] == (10 - 2) * scene.workers
    repairs = ("sums_made", "features_resent", "features_fetched", "recalls", "overflows", "void")
    assert {name: counters[name] for name in repairs if counters[name]} == {}


@pytest.fixture
def directed(tmp_path):
    """A graph of which few edges go both ways, to be exchanged in both directions in turns."""
    dense = np.random.default_rng(8).random((60, 60)) < 0.08
    np.fill_diagonal(dense, False)
    path = tmp_path / "directed.npz"
    save_npz(path, csr_matrix(dense.astype(np.int64)))
    return {"graph": str(path), "directions": "both", "slots": 12, "rounds": 6}


@on_each_topology
@pytest.mark.parametrize("rates", [IncidentRates(), BAD], ids=["calm", "bad"])
def test_a_direction_that_was_not_foreseen_is_exchanged_as_ever(
    soak, scene, directed, rates, monkeypatch
):
    """Switches let features of a block in, behind or before the one that then has its turn."""
    right, announced = Foresight.next, set()

    def wrong(foresight):
        foreseen = right(foresight)
        if foreseen is None:
            return None
        forward = foreseen.kind.direction is Direction.FORWARD
        direction = Direction.BACKWARD if forward else Direction.FORWARD
        announced.add(direction)
        return replace(foreseen, kind=replace(foreseen.kind, direction=direction))

    monkeypatch.setattr(Foresight, "next", wrong)
    cables = rates if scene.leaves else IncidentRates()
    counted(soak, replace(scene, up=rates, down=rates, cables=cables, **directed))
    assert announced == {*Direction}


class SentAgain(Check):
    """Delivers all frames of the first session again when workers of the second begin."""

    def begin(self, scene):
        super().begin(scene)
        self.sessions = 0
        self.kept = {name: [] for name in scene.wires}
        self._deliver = {}
        for name, wire in scene.wires.items():
            self._deliver[name], wire._deliver = wire._deliver, partial(self._keep, name)

    def _keep(self, name, frames):
        if self.sessions == 1:
            self.kept[name] += frames
        self._deliver[name](frames)

    def session_begins(self):
        self.sessions += 1
        if self.sessions == 2:
            for name, frames in self.kept.items():
                self.scene.scheduler.after(0, self._deliver[name], frames)


@on_each_topology
def test_packets_of_an_earlier_session_are_ignored(soak, scene):
    """Rounds begin again at 1, so only the session tells them from those of now."""
    again = SentAgain()
    counters = counted(soak, replace(scene, sessions=2, rounds=2), again)
    of_workers = [
        frame
        for name, frames in again.kept.items()
        if name.startswith("w") and name.endswith(".down")
        for frame in frames
        # Hosts read the answers of other sessions at barriers.
        if kind_in(frame) != Kind.WAITING
    ]
    assert counters[1]["foreign"] == len(of_workers) > 0


class LastDone(Check):
    """Notes when the last worker has done its exchange."""

    def done(self, done):
        self.at = self.scene.scheduler.seconds


def timed(soak, scenario, **changes):
    """Return the seconds until all workers have done the exchanges, and the outcome."""
    last = LastDone()
    outcome = soak.run(replace(scenario, **changes), beside=[last], keeps_trace=True)
    assert outcome.violations == outcome.errors == ()
    return last.at, outcome


def last_frames(trace):
    """Return line, number and kind of the last frame of each kind of a block on each line."""
    numbers, last = Counter(), {}
    for words in map(str.split, trace):
        if len(words) == 5 and re.fullmatch(r"w\d+[.](up|down)", words[1]):
            numbers[words[1]] += 1
            block, kind = int(words[4][16:20], 16), Kind(int(words[4][25], 16))
            if block and kind is not Kind.WAITING:
                last[words[1], kind] = numbers[words[1]]
    return [(line, number, kind) for (line, kind), number in last.items()]


# Of the simulated lines without jitter, and of a worker that takes long to wake.
ROUND_TRIP, FEW = (2 * 50 + 60) * 1e-6, 6


@on_each_topology
def test_a_frame_lost_at_the_tail_costs_a_few_round_trips(soak, scene):
    scenario = replace(scene, rounds=1, jitter=0)
    without, outcome = timed(soak, scenario)
    late, kinds = {}, set()
    for line, number, kind in last_frames(outcome.trace):
        took, _ = timed(soak, scenario, faults=(Fault(FaultKind.LOSS, line, number),))
        kinds.add(kind)
        late[line, kind.name] = (took - without) / ROUND_TRIP
    assert kinds == {Kind.FEATURE, Kind.SUM, Kind.ACK, Kind.DONE, Kind.ADVANCE}
    assert {where: trips for where, trips in late.items() if trips > FEW} == {}
