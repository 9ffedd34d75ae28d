# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0

"""The exchange and the scale of each round, and checks of the features that workers send."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from switchgnn.host.innetwork.fixed_point import largest_magnitude, magnitude_from_bits
from switchgnn.host.wire.header import KIND_MASK, Kind
from switchgnn.planner.direction import Direction
from tests.simulation.checks.check import CheckedPacket, PacketCheck
from tests.simulation.parts.switch import VirtualSwitch
from tests.simulation.parts.worker import ExchangeJob
from tests.simulation.scene import Scene

_LAST_ROUND = 0xFFFFFF
_WHOLE = 32
# A cached scale has room for features twice as large as those that it was made for, and none for
# those that are too small for its steps, by the bits of a number.
_ROOM, _LEAST = 2.0, {32: 2.0**-12, 16: 1 / 16, 8: 1 / 4}
_LARGEST_FLOAT = float(np.finfo(np.float32).max)


def told_magnitude(packet: CheckedPacket) -> int | None:
    """Return the bits of the largest magnitude of an ADVANCE's own round; None if it has none."""
    body = packet.body
    newest = int.from_bytes(body[8:12], "big") & _LAST_ROUND
    return int.from_bytes(body[:4], "big") if newest == packet.place[0] else None


@dataclass(frozen=True)
class Scaled:
    """The exchange of a round.

    Attributes:
        exchange: the place of the exchange among those of the session, from 0.
        magnitude: of which the scale of its features is made.
        void: whether some features do not fit that scale: the next round repeats them.
        full: whether all rows are sent whole, as there are none in a cache.
    """

    exchange: int
    magnitude: float
    void: bool = False
    full: bool = True


class CachedScales:
    """The magnitudes of cached scales, by direction.

    `bits`: of a number. `most`: the largest fan-in.
    """

    def __init__(self, bits: int, most: int) -> None:
        self._bits, self._most = bits, most
        self._kept: dict[Direction, float] = {}

    def of(self, direction: Direction) -> float | None:
        """Return the magnitude of a cached scale; None if there is none."""
        return self._kept.get(direction)

    def limit(self, magnitude: float) -> float:
        """Return the largest feature whose sums cannot overflow at a scale."""
        if self._bits == _WHOLE:
            return magnitude
        steps = (2.0**31 - self._most) / self._most
        return magnitude * max(1.0, steps / (2.0 ** (self._bits - 1) - 1))

    def renew(self, direction: Direction, largest: float) -> tuple[float, bool]:
        """Return the magnitude of the scale of a round, and whether it is a new one."""
        self.forget_misfit(direction, largest)
        if direction in self._kept:
            return self._kept[direction], False
        self._kept[direction] = largest * (_ROOM if self._bits == _WHOLE else 1.0)
        return self._kept[direction], True

    def forget_misfit(self, direction: Direction, largest: float) -> None:
        """Forget a scale that is too coarse or too fine for features of this size."""
        magnitude = self._kept.get(direction)
        if magnitude is None:
            return
        most = min(_ROOM * magnitude, self.limit(magnitude))
        if not magnitude * _LEAST[self._bits] <= largest <= most:
            del self._kept[direction]


class ExpectedScales:
    """The exchange and the scale of each round of a session.

    A foreseen exchange has a scale with headroom, as its features do not wait for the largest
    magnitude; all others have the scale of the largest magnitude, of the features or as reported: a
    Byzantine worker may report a larger one than it has.
    """

    def __init__(self, scene: Scene, job: ExchangeJob) -> None:
        self._scene = scene
        self._job = job
        self._largest = [largest_magnitude(features) for features, _ in job.rounds]
        self._told: dict[int, int] = {}
        self._bits = job.compression.bits
        self._rounds = list(self._scaled())

    def heed(self, packet: CheckedPacket) -> None:
        """Take an ADVANCE, whose largest magnitude may differ from that of the features."""
        place, told = packet.place[0], told_magnitude(packet)
        if told is None or not self._scene.misfits or not 1 <= place <= len(self._rounds):
            return
        if told != self.largest(place):
            self._told[place] = told
            self._rounds = list(self._scaled())

    def of(self, place: int) -> Scaled | None:
        """Return what a round, from 1, exchanges; None where there is no such round."""
        return self._rounds[place - 1] if 1 <= place <= len(self._rounds) else None

    @property
    def rounds(self) -> list[Scaled]:
        """All rounds, in order."""
        return self._rounds

    def of_exchange(self, exchange: int) -> Scaled:
        """Return the round that brings the sums of an exchange, from 0."""
        return next(each for each in self._rounds if each.exchange == exchange and not each.void)

    def largest(self, place: int) -> int:
        """Return the largest magnitude of a round, from 1, as bits."""
        return self._told.get(place, self._largest[self._rounds[place - 1].exchange])

    def _scaled(self) -> Iterator[Scaled]:
        """Yield all rounds, in order."""
        past: list[tuple[Direction, int]] = []
        place, cached = 1, self._job.compression.cache
        scales = CachedScales(self._bits, max(1, self._job.plan.manifest.max_fan_in))
        for exchange, (_, direction) in enumerate(self._job.rounds):
            largest = self._told.get(place, self._largest[exchange])
            magnitude = self._capacity(past, direction)
            if magnitude is not None and cached:
                magnitude = scales.of(direction)
            void = magnitude is not None and magnitude_from_bits(largest) > scales.limit(magnitude)
            if magnitude is not None:
                yield Scaled(exchange, magnitude, void, full=not cached)
                place += 1
            if magnitude is None or void:
                largest = self._told.get(place, self._largest[exchange])
                chosen, full = magnitude_from_bits(largest), True
                if cached:
                    chosen, full = scales.renew(direction, chosen)
                yield Scaled(exchange, chosen, full=full)
                place += 1
            scales.forget_misfit(direction, magnitude_from_bits(largest))
            past.append((direction, largest))

    def _capacity(self, past: list[tuple[Direction, int]], direction: Direction) -> float | None:
        """Return the bound of features that do not wait; None where all of them wait."""
        alike = foreseen(past)
        manifest = self._job.plan.manifest
        if not alike or alike[0][0] is not direction:
            return None
        if not manifest.direction(direction).block_numbers:
            return None
        headroom = 4.0 if self._bits == _WHOLE else 1.0
        capacity = headroom * max(magnitude_from_bits(largest) for _, largest in alike)
        fits = 0.0 < capacity * max(1, manifest.max_fan_in) <= _LARGEST_FLOAT
        return capacity if fits else None


class ScaledCheck(PacketCheck):
    """A check of packets that knows the scales of the session's rounds."""

    def session_begins(self) -> None:
        if self.scene.job is not None:
            self._scales = ExpectedScales(self.scene, self.scene.job)

    def heeded(self, packet: CheckedPacket) -> bool:
        """Return whether a packet is an ADVANCE, whose magnitude the scales heed then."""
        advance = packet.flags & KIND_MASK == Kind.ADVANCE
        if advance:
            self._scales.heed(packet)
        return advance


def foreseen(past: Sequence[tuple[Direction, int]]) -> list[tuple[Direction, int]]:
    """Return the exchanges, of one direction, that the next one is expected to resemble.

    The longest suffix of all exchanges that has occurred before (the latest such) was followed by
    the first of them; the other is as far before that one as the next one is after it.
    """
    directions = [direction for direction, _ in past]
    now = len(past)
    longest, after = 0, 0
    for each in range(1, now):
        common = 0
        while common < each and directions[each - 1 - common] is directions[now - 1 - common]:
            common += 1
        if common and common >= longest:
            longest, after = common, each
    if not longest:
        return []
    candidates = (after, 2 * after - now)
    return [
        past[each] for each in candidates if each >= 0 and directions[each] is directions[after]
    ]


Group = tuple[int, tuple[int, int, int], int]


class AcknowledgedArrived(PacketCheck):
    """Compares the number in each ACK with the distinct features of the group."""

    takes = frozenset({Kind.FEATURE})
    gives = frozenset({Kind.ACK})

    def begin(self, scene: Scene) -> None:
        super().begin(scene)
        self._arrived: dict[int, dict[Group, set[int]]] = {
            switch.number: {} for switch in scene.switches
        }

    def session_begins(self) -> None:
        for arrived in self._arrived.values():
            arrived.clear()

    def ends(self, switch: VirtualSwitch) -> None:
        self._arrived[switch.number].clear()

    def took(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        if not packet.resent:
            group = worker, packet.place, packet.group
            self._arrived[switch.number].setdefault(group, set()).add(packet.source)

    def gave(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        group = worker, packet.place, packet.group
        arrived = len(self._arrived[switch.number].get(group, ()))
        if packet.number > arrived and self.scene.honest(worker):
            self.scene.violated(
                "acknowledged arrived",
                f"{switch.name} acknowledges {packet.number} features of group {packet.group} of "
                f"worker {worker} in round {packet.place[0]}, block {packet.block}: {arrived} have "
                "arrived",
            )


_COUNT_BITS, _COUNT, _SESSION = 16, 0xFFFF, 64
Sum = tuple[tuple[int, int, int], int]


class MissingCounted(PacketCheck):
    """Compares each MISSING with the slot, when the RECALL has come and now: counts only grow.

    Only a star's switch that finishes each packet at once reports a count between the two, and
    only there a MISSING answers the last RECALL. A frame of the same arrival may move the slot on
    to a later place, which hides the count before.
    """

    takes = frozenset({Kind.RECALL})
    gives = frozenset({Kind.MISSING})

    def begin(self, scene: Scene) -> None:
        super().begin(scene)
        scenario = scene.scenario
        self._orderly = not (scenario.leaves or scenario.turns or scenario.queue_rate)
        plan = scene.subject.shares[0].plan.switch
        names = zip(plan.result_block.tolist(), plan.result_vertex.tolist(), strict=True)
        places = zip(plan.result_bank.tolist(), plan.result_slot.tolist(), strict=True)
        self._slots = dict(zip(names, places, strict=True)) if self._orderly else {}
        self._least: dict[Sum, int | None] = {}

    def ends(self, switch: VirtualSwitch) -> None:
        self._least.clear()

    def took(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        if self._orderly:
            self._least[packet.place, packet.destination] = self._count(switch, packet)

    def gave(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        key = packet.place, packet.destination
        if key not in self._least:
            return
        least, now = self._least[key], self._count(switch, packet)
        if least is not None and now is None:
            return
        least, most = least or 0, max(least or 0, now or 0)
        if not least <= packet.number <= most:
            self.scene.violated(
                "missing counted",
                f"{switch.name} reports that the slot of vertex {packet.destination} in round "
                f"{packet.place[0]}, block {packet.block} has {packet.number} contributions: it "
                f"has {least}{f' to {most}' if most > least else ''}",
            )

    def _count(self, switch: VirtualSwitch, packet: CheckedPacket) -> int | None:
        """Return a slot's contributions for this place; None if it serves a later one."""
        slot = self._slots.get((packet.block, packet.destination))
        job = self.scene.job
        if slot is None or job is None or switch.engine is None:
            return 0
        registers = switch.engine.state.registers
        state = registers[f"SwitchIngress.banks.bank{slot[0]}.state"].cells[slot[1]]
        number, block, fragment = packet.place
        here = job.session << _SESSION | number << 32 | block << 16 | fragment
        tag = state >> _COUNT_BITS
        if tag > here:
            return None
        return state & _COUNT if tag == here else 0


_AGGREGATED = 0
_OUTCOME = ".outcome"


class SourcesOnce(PacketCheck):
    """Compares the number of features that a switch has accepted with the distinct arrivals."""

    takes = takes_of_others = frozenset({Kind.FEATURE})

    def begin(self, scene: Scene) -> None:
        super().begin(scene)
        self._sources = {
            source
            for part in (subject.plan.switch for subject in scene.served)
            for source in zip(part.source_vertex.tolist(), part.source_worker.tolist(), strict=True)
        }
        self._before = dict.fromkeys(range(len(scene.switches)), 0)
        self._here: dict[int, set[tuple[int, int, int, int]]] = {
            switch.number: set() for switch in scene.switches
        }

    def session_begins(self) -> None:
        for switch, here in self._here.items():
            self._before[switch] += len(here)
            here.clear()

    def took(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        if not packet.resent and (packet.source, worker) in self._sources:
            self._here[switch.number].add(
                (packet.session_and_round, packet.block, packet.fragment, packet.source)
            )

    def took_of_another_session(
        self, switch: VirtualSwitch, worker: int, packet: CheckedPacket
    ) -> None:
        if self.scene.has_relapsed(switch.number):
            self.took(switch, worker, packet)

    def ends(self, switch: VirtualSwitch) -> None:
        engine, here = switch.engine, self._here[switch.number]
        most = self._before[switch.number] + len(here)
        self._before[switch.number] = 0
        here.clear()
        # A spine adds parts from leaves, which are not checked here.
        if engine is None or switch.number >= (self.scene.scenario.leaves or 1):
            return
        counters = engine.state.counters.items()
        counted = next(c for name, c in counters if name.endswith(_OUTCOME)).packets[_AGGREGATED]
        if counted > most:
            self.scene.violated(
                "sources once",
                f"{switch.name} has let {counted} features through, of {most} that came",
            )

    def conclude(self, *, in_time: bool) -> None:
        for switch in self.scene.switches:
            self.ends(switch)


Where = tuple[int, tuple[int, int, int]]
_GROUPS_APART = 32


class WindowHeld(PacketCheck):
    """Compares the features that have arrived with the acknowledgements that have left.

    A worker has sent at least the former, and heard at most the latter.
    """

    takes = frozenset({Kind.FEATURE})
    gives = frozenset({Kind.ACK})

    def begin(self, scene: Scene) -> None:
        super().begin(scene)
        self.session_begins()

    def session_begins(self) -> None:
        self._arrived: dict[Where, set[int]] = {}
        self._confirmed: dict[Where, dict[int, int]] = {}
        self._furthest: dict[Where, int] = {}

    def took(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        if packet.resent or not self.scene.honest(worker):
            return
        where = worker, packet.place
        arrived = self._arrived.setdefault(where, set())
        arrived.add(packet.source)
        confirmed = self._confirmed.get(where, {})
        window = self.scene.scenario.window
        if len(arrived) > window and len(arrived) - sum(confirmed.values()) > window:
            self.scene.violated(
                "window held", f"worker {worker} has more than {window} features in flight"
            )
        if packet.group > self._furthest.get(where, _GROUPS_APART - 1):
            self._furthest[where] = packet.group
            if self.scene.job is None:
                return
            size = self.scene.job.pace.group_size
            before = range(packet.group - _GROUPS_APART + 1)
            if any(confirmed.get(group, 0) < size for group in before):
                self.scene.violated(
                    "window held",
                    f"worker {worker} sends group {packet.group} before all of group "
                    f"{packet.group - _GROUPS_APART} are acknowledged",
                )

    def gave(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        groups = self._confirmed.setdefault((worker, packet.place), {})
        groups[packet.group] = max(packet.number, groups.get(packet.group, 0))


class MagnitudesAgree(ScaledCheck):
    """Compares each ADVANCE with the features of all workers."""

    gives = frozenset({Kind.ADVANCE})

    def begin(self, scene: Scene) -> None:
        super().begin(scene)
        self._told: set[int] = set()

    def session_begins(self) -> None:
        self._told.clear()
        super().session_begins()

    def gave(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        magnitude, place = told_magnitude(packet), packet.place[0]
        scaled = self._scales.of(place)
        if magnitude is None or scaled is None:
            return
        if place not in self._told and magnitude >= self._least(scaled.exchange):
            # A Byzantine worker may report any magnitude of its own, but all must hear the same.
            self._scales.heed(packet)
        self._told.add(place)
        right = self._scales.largest(place)
        if magnitude != right and not self.scene.lawless:
            self.scene.violated(
                "magnitudes agree",
                f"{switch.name} reports {magnitude:#010x} to worker {worker} as the largest "
                f"magnitude of round {place}, which is {right:#010x}",
            )

    def _least(self, exchange: int) -> int:
        """Return the largest magnitude of an exchange that honest workers have."""
        job, scene = self.scene.job, self.scene
        honest = [worker for worker in range(len(scene.workers)) if scene.honest(worker)]
        if job is None:
            return 0
        features = job.rounds[exchange][0]
        return largest_magnitude(features[np.isin(scene.subject.plan.assignment, honest)])
