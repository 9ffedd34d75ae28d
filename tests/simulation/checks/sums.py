"""Sums and features on their way to workers are right, and so are the results of workers."""

from collections import defaultdict

import numpy as np

from switchgnn.host.wire.header import Kind
from tests.simulation.checks.check import Check, Fragments, PacketCheck
from tests.simulation.checks.scales import ExpectedScales, ScaledCheck, sent_in_session
from tests.simulation.scenario import IncidentKind


class SumsExact(Check):
    """Compares all sums of workers with those of the oracle."""

    name = "sums exact"

    def session_begins(self):
        scene, oracle = self.scene, self.scene.subject.oracle
        self._rounds = scene.job.rounds
        scales = ExpectedScales(scene)
        sent = sent_in_session(scene, scales)
        if sent is not None:
            self._right = [sent.totals[exchange] for exchange in range(len(self._rounds))]
            return
        bits = scene.job.compression.bits
        self._right = [
            oracle.sums(oracle.fixed(features, scales.of_exchange(n).magnitude, bits), direction)
            for n, (features, direction) in enumerate(self._rounds)
        ]

    def done(self, done):
        scene = self.scene
        if not scene.honest(done.worker):
            return
        vertices = scene.subject.plan.workers[done.worker].vertices
        wrong = vertices[(self._of(done)[vertices] != done.values).any(axis=1)]
        wrong = wrong[~np.isin(wrong, list(scene.spoilt))]
        if len(wrong):
            self.tell(
                f"session {done.session}, round {done.round}: worker {done.worker} has "
                f"{len(wrong)} wrong sums, the first of vertex {wrong[0]}"
            )

    def _of(self, done):
        """Return the right sums, at a scale that a Byzantine worker may have changed."""
        if not self.scene.spoilt:
            return self._right[done.round - 1]
        oracle = self.scene.subject.oracle
        features, direction = self._rounds[done.round - 1]
        return oracle.sums(oracle.fixed(features, done.magnitude), direction)


class _RowsLeave(ScaledCheck):
    """Compares rows on their way to workers with those of their round."""

    def begin(self, scene):
        super().begin(scene)
        self._fragments = Fragments(scene)
        self._rows = {}

    def session_begins(self):
        super().session_begins()
        self._rows.clear()
        self._sent = sent_in_session(self.scene, self._scales)

    def of_round(self, number, make):
        """Return rows of a round as they are on the wire; `make` returns them as integers."""
        key = self._scales.of(number) if self._sent is None else number
        if key not in self._rows:
            self._rows[key] = self._fragments.rows_of(make(number))
        return self._rows[key]


class SumsLeaveExact(_RowsLeave):
    """Compares all SUMs for workers: a sum of another round, or a mixture, is another number."""

    name = "sums leave exact"
    gives = frozenset({Kind.SUM, Kind.ADVANCE})

    def gave(self, switch, worker, packet):
        if self.heeded(packet) or self._scales.of(packet.unit.round) is None:
            return
        scene, vertex = self.scene, packet.dst_id
        row = scene.subject.awaited.index.get((packet.block_id, vertex), 0)
        right = self._fragments.holds(packet, self.of_round(packet.unit.round, self._sums), row)
        # A Byzantine worker may have changed a sum, by features or scale.
        if not right and vertex not in scene.spoilt and not scene.lawless:
            self.tell(f"switch {switch.name} sends a wrong sum of vertex {vertex}: {packet.unit}")

    def _sums(self, number):
        if self._sent is not None:
            return self._sent.frames.sums @ self._sent.changes[number]
        return self.scene.subject.awaited.of(self._scales.fixed(number))


class ResentRight(_RowsLeave):
    """Compares the raw features for workers with those of the round, or with their changes."""

    name = "resent right"
    gives = frozenset({Kind.FEATURE, Kind.ADVANCE})

    def begin(self, scene):
        super().begin(scene)
        part = scene.subject.plan.switch
        self._owner = dict(
            zip(part.source_vertex.tolist(), part.source_worker.tolist(), strict=True)
        )

    def gave(self, switch, worker, packet):
        if self.heeded(packet) or not packet.resend:
            return
        scene, source = self.scene, packet.src_id
        awaited = worker in scene.subject.oracle.awaiting(packet.dst_id)
        # A Byzantine worker lies about its features; where it moves a barrier on, the scale of the
        # others is unknown.
        believed = source in self._owner and not scene.honest(self._owner[source])
        right = believed or scene.lawless or self._is_right(packet)
        if not awaited or not right:
            self.tell(
                f"the feature of vertex {source} in {packet.unit} that leaves for worker "
                f"{worker} is {'wrong' if awaited else 'for another worker'}"
            )

    def _is_right(self, packet):
        number, source = packet.unit.round, packet.src_id
        if self._scales.of(number) is None:
            return False
        if self._sent is None:
            return self._fragments.holds(packet, self.of_round(number, self._scales.fixed), source)
        frame = self._sent.frames.of(packet.block_id, source, packet.dst_id)
        if frame is None:
            return False
        # The first vertex of a partial sum has the change of the whole, the others zeros.
        row = frame if self._sent.frames.first[frame] == source else len(self._sent.frames.first)
        return self._fragments.holds(packet, self.of_round(number, self._changes_and_zeros), row)

    def _changes_and_zeros(self, number):
        changes = self._sent.changes[number]
        return np.vstack([changes, np.zeros_like(changes[:1])])


class SumsLeaveOnce(PacketCheck):
    """Compares the SUMs for workers with the plan, with those before, and with fetches before."""

    takes = frozenset({Kind.FETCH})
    gives = frozenset({Kind.FETCH, Kind.SUM})

    def begin(self, scene):
        super().begin(scene)
        self._expected = {}
        for part in scene.subject.plan.workers:
            blocks = np.repeat(np.arange(1, len(part.receive_indptr)), np.diff(part.receive_indptr))
            sums = (blocks, part.receive_vertex, part.receive_count)
            for block, vertex, count in zip(*(each.tolist() for each in sums), strict=True):
                self._expected[block, vertex, part.worker] = count
        # A leaf passes on frames from above as often as the cable brings them.
        self._once = not scene.scenario.leaves
        # Where each packet is finished at once, packets leave in the order of their causes.
        self._orderly = self._once and not (scene.scenario.turns or scene.scenario.queue_rate)
        # The copies of a sum leave together, if the switch keeps its entries and drops nothing.
        self._together = self._once and not scene.scenario.queue_rate
        for each in scene.scenario.incidents:
            self._together &= each.where[0] == "w" and each.kind is not IncidentKind.BYZANTINE
        self.session_begins()

    def session_begins(self):
        self._left, self._asked, self._fetched = set(), set(), set()

    def session_ends(self):
        left = defaultdict(set)
        for worker, which in self._left if self._together else ():
            left[which].add(worker)
        for (unit, vertex), workers in left.items():
            if missing := self.scene.subject.oracle.awaiting(vertex) - workers:
                what = f"the sum of vertex {vertex} in {unit} does not leave for {missing}"
                self.scene.violated("sums leave once", what)

    def ends(self, switch):
        self.session_begins()

    def took(self, switch, worker, packet):
        # Whether the switch believes a Byzantine worker's fetch is unknown.
        if self._orderly and self.scene.honest(worker):
            self._asked.add((packet.unit, packet.dst_id))

    def gave(self, switch, worker, packet):
        which = packet.unit, packet.dst_id
        if packet.kind == Kind.FETCH:
            # What the switch refuses, as one that was restarted may, it does not pass on.
            self._fetched |= self._asked & {which}
            return
        count = self._expected.get((packet.block_id, packet.dst_id, worker))
        if count is None:
            self._tell("sums leave once", packet, f"for worker {worker}")
        elif packet.count != count:
            self._tell("sums leave once", packet, f"with {packet.count} of {count} contributions")
        # A recalled one may have been asked for just before.
        elif not packet.is_fetch:
            if which in self._fetched:
                self._tell("fetched sums stay", packet, "after it was fetched")
            # A Byzantine worker may recall its sums such that the answers do not look like some.
            if self._once and (worker, which) in self._left and self.scene.honest(worker):
                self._tell("sums leave once", packet, "again unasked")
            self._left.add((worker, which))

    def _tell(self, name, packet, how):
        self.scene.violated(
            name, f"the sum of vertex {packet.dst_id} in {packet.unit} leaves {how}"
        )
