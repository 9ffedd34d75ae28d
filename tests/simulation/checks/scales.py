"""What workers have to send by docs/protocol.md: the exchange and scale of each round, and rows."""

from dataclasses import dataclass

import numpy as np

from switchgnn.host.innetwork.fixed_point import (
    ExchangeKind,
    Foresight,
    largest_magnitude,
    magnitude_from_bits,
)
from switchgnn.host.wire.header import Kind
from tests.simulation.checks.check import PacketCheck
from tests.simulation.subject import incidence

_LAST_ROUND = 0xFFFFFF
_WHOLE = 32
# A cached scale has room for features twice as large as those that it was made for, and none for
# those that are too small for its steps, by the bits of a number.
_ROOM, _LEAST = 2.0, {32: 2.0**-12, 16: 1 / 16, 8: 1 / 4}
# Sources from here on are partial sums.
_ALL = -1


def told_magnitude(packet):
    """Return the bits of the largest magnitude of an ADVANCE's own round; None if it has none."""
    body = packet.body
    newest = int.from_bytes(body[8:12], "big") & _LAST_ROUND
    return int.from_bytes(body[:4], "big") if newest == packet.unit.round else None


@dataclass(frozen=True)
class Scaled:
    """The exchange of a round."""

    exchange: int  # the index of the exchange among those of the session, from 0
    magnitude: float  # of which the scale of its features is made
    void: bool = False  # whether some features do not fit that scale: the next round repeats them
    full: bool = True  # whether all rows are sent whole, as there are none in a cache


class CachedScales:
    """The magnitudes of cached scales, by direction; `most`: the largest fan-in."""

    def __init__(self, bits, most):
        self._bits, self._most = bits, most
        self._kept = {}

    def of(self, direction):
        return self._kept.get(direction)

    def limit(self, magnitude):
        """Return the largest feature whose sums cannot overflow at a scale."""
        if self._bits == _WHOLE:
            return magnitude
        steps = (2.0**31 - self._most) / self._most
        return magnitude * max(1.0, steps / (2.0 ** (self._bits - 1) - 1))

    def renew(self, direction, largest):
        """Return the magnitude of the scale of a round, and whether it is a new one."""
        self.forget_misfit(direction, largest)
        if direction in self._kept:
            return self._kept[direction], False
        self._kept[direction] = largest * (_ROOM if self._bits == _WHOLE else 1.0)
        return self._kept[direction], True

    def forget_misfit(self, direction, largest):
        """Forget a scale that is too coarse or too fine for features of this size."""
        magnitude = self._kept.get(direction)
        if magnitude is None:
            return
        most = min(_ROOM * magnitude, self.limit(magnitude))
        if not magnitude * _LEAST[self._bits] <= largest <= most:
            del self._kept[direction]


class ExpectedScales:
    """The exchange and the scale of each round of a session, from 1.

    A foreseen exchange has a scale with headroom, as its features do not wait for the largest
    magnitude; all others have the scale of the largest magnitude, of the features or as reported: a
    Byzantine worker may report a larger one than it has.
    """

    def __init__(self, scene):
        self._scene, self._job = scene, scene.job
        self._largest = [largest_magnitude(features) for features, _ in self._job.rounds]
        self._told = {}
        self.rounds = list(self._scaled())

    def heed(self, packet):
        """Take an ADVANCE, whose largest magnitude may differ from that of the features."""
        number, told = packet.unit.round, told_magnitude(packet)
        if told is None or not self._scene.byzantine or self.of(number) is None:
            return
        if told != self.largest(number):
            self._told[number] = told
            self.rounds = list(self._scaled())

    def of(self, number):
        """Return what a round exchanges; None where there is no such round."""
        return self.rounds[number - 1] if 1 <= number <= len(self.rounds) else None

    def of_exchange(self, exchange):
        return next(each for each in self.rounds if each.exchange == exchange and not each.void)

    def largest(self, number):
        return self._told.get(number, self._largest[self.rounds[number - 1].exchange])

    def fixed(self, number):
        """Return int64[V, F], the features of a round as integers of its scale."""
        scaled, oracle = self.of(number), self._scene.subject.oracle
        features = self._job.rounds[scaled.exchange][0]
        return oracle.fixed(features, scaled.magnitude, self._job.compression.bits)

    def _scaled(self):
        number, cached = 1, self._job.compression.cache
        most = max(1, self._job.plan.manifest.max_fan_in)
        bits, width = self._job.compression.bits, self._scene.scenario.width
        scales, foresight = CachedScales(bits, most), Foresight(most, bits)
        for exchange, (_, direction) in enumerate(self._job.rounds):
            largest = self._told.get(number, self._largest[exchange])
            magnitude = self._capacity(foresight.next(), direction)
            if magnitude is not None and cached:
                magnitude = scales.of(direction)
            void = magnitude is not None and magnitude_from_bits(largest) > scales.limit(magnitude)
            if magnitude is not None:
                yield Scaled(exchange, magnitude, void, full=not cached)
                number += 1
            if magnitude is None or void:
                largest = self._told.get(number, self._largest[exchange])
                chosen, full = magnitude_from_bits(largest), True
                if cached:
                    chosen, full = scales.renew(direction, chosen)
                yield Scaled(exchange, chosen, full=full)
                number += 1
            scales.forget_misfit(direction, magnitude_from_bits(largest))
            foresight.note(ExchangeKind(direction, width), largest)

    def _capacity(self, foreseen, direction):
        """Return the bound of features that do not wait; None where all of them wait."""
        blocks = self._job.plan.manifest.direction(direction).block_numbers
        if foreseen is None or foreseen.kind.direction is not direction or not blocks:
            return None
        return foreseen.fixed_point.magnitude


class ScaledCheck(PacketCheck):
    """A check of packets that knows the scales of the session's rounds."""

    def session_begins(self):
        self._scales = ExpectedScales(self.scene)

    def heeded(self, packet):
        """Return whether a packet is an ADVANCE, whose magnitude the scales heed then."""
        advance = packet.kind == Kind.ADVANCE
        if advance:
            self._scales.heed(packet)
        return advance


class PlannedFrames:
    """The frames of all workers and blocks, and the sums that each is part of.

    `rows`: int64[K, V], the vertices that a frame adds up; `sums`: int64[Q, K], as `SwitchSums`.
    """

    def __init__(self, plan):
        # Frames by block, vertex and destination, of which `_ALL` is one.
        self.index = {}
        self._owned = [part.vertices for part in plan.workers]
        blocks, senders, vertices = [], [], []
        for worker, part in enumerate(plan.workers):
            for block, destination, rows in _frames(part):
                here = len(blocks)
                self.index |= {(block, vertex, destination): here for vertex in rows.tolist()}
                blocks.append(block)
                senders.append(worker)
                vertices.append(rows)
        lengths, count = list(map(len, vertices)), len(blocks)
        self._senders = np.array(senders, dtype=np.int64)
        self.first = np.array([rows[0] for rows in vertices], dtype=np.int64)
        columns = np.concatenate(vertices) if vertices else []
        shape = count, len(plan.assignment)
        self.rows = incidence(np.repeat(np.arange(count), lengths), columns, shape)
        sums = [each for part in plan.workers for each in self._sums(part)]
        lengths = [len(frames) for _, frames in sums]
        columns = [frame for _, frames in sums for frame in frames]
        shape = len(sums), count
        self.sums = incidence(np.repeat(np.arange(len(sums)), lengths), columns, shape)
        self._vertex = np.array([vertex for vertex, _ in sums], dtype=np.int64)
        self._block = np.array([blocks[frames[0]] for _, frames in sums], dtype=np.int64)

    def sent(self, fixed, before, epsilon):
        """Return int64[K, F], what receivers hold after a round: rows that changed are new.

        They change by more than epsilon of the row, or of the mean one of its sender.
        """
        rows, sizes = self.rows @ fixed, _largest(fixed)
        if before is None:
            before = np.zeros_like(rows)
        usual = np.array([sizes[owned].mean() if len(owned) else 0.0 for owned in self._owned])
        least = epsilon * np.maximum(_largest(rows), usual[self._senders])
        return np.where((_largest(rows - before) > least)[:, np.newaxis], rows, before)

    def totals(self, sent, blocks, vertices):
        """Return int64[V, F], the sums of all vertices over some blocks; `sent`: int64[K, F]."""
        here = np.isin(self._block, blocks)
        of_vertices = incidence(self._vertex[here], np.flatnonzero(here), (vertices, len(here)))
        return of_vertices @ (self.sums @ sent)

    def of(self, block, vertex, destination):
        """Return the frame that brings a vertex to a destination; None if there is none."""
        alone = self.index.get((block, vertex, _ALL))
        return self.index.get((block, vertex, destination), alone)

    def _sums(self, part):
        """Yield a worker's own vertex and the frames of each of its sums."""
        blocks = np.repeat(np.arange(1, len(part.receive_indptr)), np.diff(part.receive_indptr))
        for row, (block, vertex) in enumerate(
            zip(blocks.tolist(), part.receive_vertex.tolist(), strict=True)
        ):
            of_row = slice(*part.neighbour_indptr[row : row + 2])
            neighbours = part.neighbour_vertex[of_row].tolist()
            parts = {self.of(block, each, vertex) for each in neighbours} - {None}
            yield part.vertices[part.receive_row[row]], sorted(parts)


def _frames(part):
    """Yield the block, the destination and the vertices of each row of a frame of a worker."""
    of_frame = len(part.send_destination) // max(1, len(part.send_source))
    for block in range(1, len(part.send_indptr)):
        for row in range(*(of_frame * part.send_indptr[block - 1 : block + 1]).tolist()):
            rows = part.send_row[slice(*part.send_row_indptr[row : row + 2])]
            to = int(part.send_destination[row]) if len(rows) > 1 else _ALL
            if len(rows):
                yield block, to, part.vertices[rows]


class SentRows:
    """What workers with caches send, round after round, by the rule of docs/protocol.md."""

    def __init__(self, scene, scales):
        plan, epsilon = scene.subject.plan, scene.scenario.epsilon
        self.frames = PlannedFrames(plan)
        # int64[K, F] by round from 1, and sums of it, int64[V, F], by exchange from 0.
        self.changes, self.totals, held = {}, {}, {}
        for number, scaled in enumerate(scales.rounds, 1):
            direction, fixed = scene.job.rounds[scaled.exchange][1], scales.fixed(number)
            before = None if scaled.full else held[direction]
            now = self.frames.sent(fixed, before, 0.0 if scaled.full else epsilon)
            self.changes[number] = now if before is None else now - before
            if not scaled.void:
                held[direction] = now
                blocks = plan.manifest.direction(direction).block_numbers
                self.totals[scaled.exchange] = self.frames.totals(now, blocks, len(fixed))


def sent_in_session(scene, scales):
    """Return what is sent in the session; None if there are no caches."""
    return SentRows(scene, scales) if scene.job.compression.cache else None


def _largest(rows):
    return np.abs(rows).max(axis=1, initial=0)
