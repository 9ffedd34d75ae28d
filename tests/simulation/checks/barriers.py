"""No worker goes on before all workers are done (invariant 5)."""

from collections import Counter, defaultdict
from itertools import chain

import numpy as np

from switchgnn.host.innetwork.fixed_point import largest_magnitude
from switchgnn.host.wire.header import OPENING_BLOCK, Kind, in_pool
from tests.simulation.checks.check import CheckedUnit, PacketCheck, acknowledged, planned_units
from tests.simulation.checks.scales import ScaledCheck, told_magnitude

_BEFORE_ALL = CheckedUnit(0, 0, OPENING_BLOCK, 0)


class BarrierWaits(PacketCheck):
    """Compares each ADVANCE for a worker with the `done`s in its pool that switches have taken."""

    name = "barrier waits"
    takes = frozenset({Kind.DONE})
    gives = frozenset({Kind.ADVANCE})

    def begin(self, scene):
        super().begin(scene)
        openings = [(OPENING_BLOCK, in_pool(0, pool)) for pool in range(scene.scenario.pools)]
        planned = (planned_units(scene, each) for each in scene.subject.directions)
        self._units = {*openings, *chain(*planned)}

    def session_begins(self):
        # By pool and worker.
        workers = range(len(self.scene.workers))
        self._latest = defaultdict(lambda: dict.fromkeys(workers, _BEFORE_ALL))

    def took(self, switch, worker, packet):
        if packet.src_id == worker:
            latest = self._latest[packet.unit.pool]
            latest[worker] = max(packet.unit, latest[worker])

    def gave(self, switch, worker, packet):
        unit = packet.unit
        late = [
            other
            for other, latest in self._latest[unit.pool].items()
            if latest < unit and not self.opened_unheard(other, unit)
        ]
        if late and not self._means_nothing(worker, unit):
            self.tell(
                f"switch {switch.name} reports that all are done with {unit}, but workers {late} "
                "are not"
            )

    def _means_nothing(self, worker, unit):
        """Return whether a Byzantine worker may have caused an ADVANCE for a unit."""
        # An earlier unit that never had a turn is confirmed to it, and by its leaf to others.
        if not self.scene.byzantine:
            return False
        never = (unit.block, unit.word) not in self._units
        return never or self.scene.lawless or not self.scene.honest(worker)


class WorkersWait(PacketCheck):
    """Compares features and `done`s of each worker with the `done`s of the others."""

    name = "workers wait"
    takes = frozenset({Kind.FEATURE, Kind.DONE})

    def begin(self, scene):
        super().begin(scene)
        self._pools = range(scene.scenario.pools)
        # The unit before in its pool.
        self._previous = {}
        for direction in scene.subject.directions:
            units = planned_units(scene, direction)
            self._previous |= dict(zip(units[len(self._pools) :], units, strict=False))

    def session_begins(self):
        workers = range(len(self.scene.workers))
        # The last `done` by pool and worker, and by worker those of the rounds before.
        self._latest = [dict.fromkeys(workers, _BEFORE_ALL) for _ in self._pools]
        self._round = dict.fromkeys(workers, 0)
        self._ended = {}
        # Units whose features may be early, by worker.
        self._early = defaultdict(set)

    def took(self, switch, worker, packet):
        unit = packet.unit
        if unit.pool not in self._pools or packet.resend:
            return
        if unit <= self._latest[unit.pool][worker]:
            return
        if unit.round > self._round[worker]:
            self._round[worker] = unit.round
            self._ended[worker] = [latest[worker] for latest in self._latest]
        late = {
            other
            for before in self._before(worker, packet)
            for other, latest in self._latest[before.pool].items()
            if latest < before and not self.opened_unheard(other, before)
        }
        if late and self.scene.honest(worker) and not self.scene.lawless:
            self.tell(
                f"worker {worker} is in {unit}, but workers {sorted(late)} are not done with what "
                "comes before"
            )
        if packet.kind == Kind.DONE:
            self._latest[unit.pool][worker] = unit
            if packet.echo:
                early = CheckedUnit.of(unit.round + 1, packet.count, packet.feature_group)
                self._early[worker].add(early)

    def _before(self, worker, packet):
        """Yield the units that all must be done with before a worker sends a packet."""
        unit = packet.unit
        yield from self._ended.get(worker, ())
        if unit.block == OPENING_BLOCK:
            return
        if packet.kind == Kind.FEATURE and unit in self._early[worker]:
            return
        for pool in self._pools:
            yield CheckedUnit.of(unit.round, OPENING_BLOCK, in_pool(0, pool))
        if previous := self._previous.get((unit.block, unit.word)):
            yield CheckedUnit.of(unit.round, *previous)


class DoneIsDone(ScaledCheck):
    """Compares each `done` with the acknowledgements of all groups before it."""

    name = "done is done"
    takes = frozenset({Kind.DONE})
    gives = frozenset({Kind.ACK, Kind.SUM, Kind.ADVANCE})

    def begin(self, scene):
        super().begin(scene)
        self._features = [
            [0, *(part.send_indptr[1:] - part.send_indptr[:-1]).tolist()]
            for part in scene.subject.plan.workers
        ]
        self._units = {each: planned_units(scene, each) for each in scene.subject.directions}

    def session_begins(self):
        super().session_begins()
        self._acknowledged = defaultdict(Counter)
        # How many units of a round are known to be done, by worker and round.
        self._known = Counter()

    def gave(self, switch, worker, packet):
        if not self.heeded(packet) and (count := acknowledged(packet)) is not None:
            groups = self._acknowledged[worker, packet.unit]
            groups[packet.feature_group] = max(count, groups[packet.feature_group])

    def took(self, switch, worker, packet):
        scaled = self._scales.of(packet.unit.round)
        if packet.src_id != worker or not self.scene.honest(worker):
            return
        if scaled is None or scaled.void:
            return
        direction = self.scene.job.rounds[scaled.exchange][1]
        blocks = self.scene.subject.plan.manifest.direction(direction).block_numbers
        units = self._units[direction]
        here = packet.block_id, packet.fragment
        now = units.index(here) + 1 if here in units else 0
        known = self._known[worker, packet.unit.round]
        for block, word in units[known:now]:
            unit = CheckedUnit.of(packet.unit.round, block, word)
            features = self._features[worker][block] if block in blocks else 0
            acknowledged = self._acknowledged[worker, unit].total()
            if acknowledged < features:
                self.tell(
                    f"worker {worker} is done with {packet.unit}: {acknowledged} of its "
                    f"{features} features of {unit} are acknowledged"
                )
        self._known[worker, packet.unit.round] = max(known, now)


class MagnitudesAgree(ScaledCheck):
    """Compares each ADVANCE with the features of all workers."""

    name = "magnitudes agree"
    gives = frozenset({Kind.ADVANCE})

    def session_begins(self):
        super().session_begins()
        self._told = set()

    def gave(self, switch, worker, packet):
        magnitude, number = told_magnitude(packet), packet.unit.round
        scaled = self._scales.of(number)
        if magnitude is None or scaled is None:
            return
        if number not in self._told and magnitude >= self._least(scaled.exchange):
            # A Byzantine worker may report any magnitude of its own, but all must hear the same.
            self._scales.heed(packet)
        self._told.add(number)
        right = self._scales.largest(number)
        if magnitude != right and not self.scene.lawless:
            self.tell(
                f"{switch.name} reports {magnitude:#010x} to worker {worker} as the largest "
                f"magnitude of round {number}, which is {right:#010x}"
            )

    def _least(self, exchange):
        """Return the largest magnitude of an exchange that honest workers have."""
        scene = self.scene
        honest = [worker for worker in range(len(scene.workers)) if scene.honest(worker)]
        features = scene.job.rounds[exchange][0]
        return largest_magnitude(features[np.isin(scene.subject.plan.assignment, honest)])
