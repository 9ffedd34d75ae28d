# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0

"""Counters of workers and switches add up, and their state only grows.

In a void round a worker may also have sent and taken the first fragment of the first block.
"""

import gc
from collections import Counter
from collections.abc import Sequence
from operator import lt
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

from greenlet import greenlet

from switchgnn.host.innetwork.fixed_point import Foresight
from switchgnn.host.wire.header import Kind
from switchgnn.planner.direction import Direction
from switchgnn.softswitch.state import RegisterCells
from tests.simulation.checks.check import Check, SwitchCheck, is_wrapped, kind_in, read_packet
from tests.simulation.network import VirtualLink, words_of
from tests.simulation.parts.switch import VirtualSwitch
from tests.simulation.parts.worker import Done
from tests.simulation.scene import Scene
from tests.simulation.timing import Scheduler, Task


class TalliesAddUp(Check):
    """Compares the counters of a worker after each round with its part of the plan."""

    def begin(self, scene: Scene) -> None:
        super().begin(scene)
        plan, scenario = scene.subject.plan, scene.scenario
        fragments = len(words_of(scenario.width, scenario.lanes))
        self._each: dict[tuple[int, Direction], tuple[int, int]] = {}
        self._first: dict[tuple[int, Direction], tuple[int, int]] = {}
        for direction in scene.subject.directions:
            blocks = plan.manifest.direction(direction).block_numbers
            for part in plan.workers:
                first, last = blocks.start - 1, blocks.stop - 1
                sent = part.send_indptr[last] - part.send_indptr[first]
                awaited = part.receive_indptr[last] - part.receive_indptr[first]
                self._each[part.worker, direction] = fragments * int(sent), fragments * int(awaited)
                sent, awaited = (
                    ends[blocks.start] - ends[first] if blocks else 0
                    for ends in (part.send_indptr, part.receive_indptr)
                )
                self._first[part.worker, direction] = int(sent), int(awaited)

    def session_begins(self) -> None:
        self._found: dict[int, tuple[int, int, int]] = {}

    def done(self, done: Done) -> None:
        job, exchange = self.scene.job, self.scene.workers[done.worker].exchange
        if job is None or exchange is None or not self.scene.honest(done.worker):
            return
        # A process that was started again counts from its first round.
        before = self._found[done.worker] if done.round > 1 else (0, 0, 0)
        key = done.worker, job.rounds[done.round - 1][1]
        counters = exchange.counters
        found = counters.features_sent, counters.sums_received + counters.sums_made
        void = counters.void - before[2]
        self._found[done.worker] = *found, counters.void
        wanted = before[0] + self._each[key][0], before[1] + self._each[key][1]
        most = wanted[0] + void * self._first[key][0], wanted[1] + void * self._first[key][1]
        if not all(
            low <= here <= high for low, here, high in zip(wanted, found, most, strict=True)
        ):
            self.scene.violated(
                "counters add up",
                f"worker {done.worker} has sent {found[0]} features and taken {found[1]} sums "
                f"after round {done.round}: the plan has {wanted[0]} and {wanted[1]}",
            )


_OUTCOME = ".outcome"


class FramesCounted(SwitchCheck):
    """Adds up the outcomes of a switch whenever it ends."""

    def ends(self, switch: VirtualSwitch) -> None:
        engine = switch.engine
        if engine is None:
            return
        received = engine.counts.received.total()
        cells = next(
            counter for name, counter in engine.state.counters.items() if name.endswith(_OUTCOME)
        )
        counted = sum(cells.packets[: cells.size])
        if counted != received:
            self.scene.violated(
                "frames counted",
                f"switch {switch.name} has received {received} frames, and counted {counted}",
            )

    def conclude(self, *, in_time: bool) -> None:
        for switch in self.scene.switches:
            self.ends(switch)


# After the first round not all objects exist yet; the last round is the scenario's, or this.
_FIRST, _LAST = 2, 8
_ROUNDS = 4
# The number of timers and questions under way differs by about ten from round to round.
_ALLOWED = 40
# Foresight keeps up to 256 rounds, more than are checked here.
_SHARED = (
    type,
    ModuleType,
    FunctionType,
    BuiltinFunctionType,
    MethodType,
    greenlet,
    Scheduler,
    Task,
    VirtualLink,
    Foresight,
)


class MemoryBounded(Check):
    """Counts the objects of a worker's exchange after an early round and a later one."""

    def session_begins(self) -> None:
        self._early: dict[int, int] = {}
        self._fetched: Counter[int] = Counter()

    def done(self, done: Done) -> None:
        rounds = self.scene.scenario.rounds
        last = min(rounds, _LAST)
        exchange = self.scene.workers[done.worker].exchange
        if rounds < _ROUNDS or exchange is None or not self.scene.honest(done.worker):
            return
        # Those of a round are kept until the next: an array and its number each.
        fetched = exchange.counters.features_fetched
        of_round, self._fetched[done.worker] = fetched - self._fetched[done.worker], fetched
        if done.round not in (_FIRST, last):
            return
        objects = objects_of(exchange) - 2 * of_round
        if done.round == _FIRST:
            self._early[done.worker] = objects
            return
        before = self._early.get(done.worker, objects)
        if objects > before + _ALLOWED:
            self.scene.violated(
                "memory bounded",
                f"worker {done.worker} holds {before} objects besides fetched features after round "
                f"{_FIRST}, and {objects} after round {last}",
            )


def objects_of(root: object) -> int:
    """Return the number of objects reachable from one, without code and shared ones."""
    seen = {id(root)}
    left = [root]
    while left:
        for each in gc.get_referents(left.pop()):
            if id(each) not in seen and not isinstance(each, _SHARED):
                seen.add(id(each))
                left.append(each)
    return len(seen)


# Registers are read at one of so few arrivals, as reading costs more than forwarding.
_ONE_OF = 64
# The last bits of a bank's state are the count; the bits before are the tag.
_COUNT_BITS = 16
_SOURCES, _STATE = ".last_tag", ".state"


class TagsGrow(SwitchCheck):
    """Compares the tags of sources and slots with those read before."""

    def begin(self, scene: Scene) -> None:
        super().begin(scene)
        self._before: dict[tuple[str, str], list[int]] = {}
        self._images: dict[tuple[str, str], Sequence[int]] = {}
        self._arrivals = 0
        plan = scene.subject.plan
        self._slots = plan.manifest.slots_per_bank
        self._sources = 2 * scene.subject.oracle.vertices

    def ends(self, switch: VirtualSwitch) -> None:
        for key in [each for each in self._before if each[0] == switch.name]:
            del self._before[key], self._images[key]

    def taken(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        self._arrivals += 1
        engine = switch.engine
        if self._arrivals % _ONE_OF or engine is None:
            return
        for name, register in engine.state.registers.items():
            of_sources = name.endswith(_SOURCES)
            if not of_sources and not name.endswith(_STATE):
                continue
            number = self._sources if of_sources else self._slots
            image, key = register.image(number), (switch.name, name)
            if image == self._images.get(key):
                continue
            self._images[key] = image
            tags = list(register.cells[:number])
            if not of_sources:
                tags = [state >> _COUNT_BITS for state in tags]
            before = self._before.get(key, tags)
            self._before[key] = tags
            if any(map(lt, tags, before)):
                self._report(switch, name, before, tags)

    def _report(self, switch: VirtualSwitch, name: str, before: list[int], tags: list[int]) -> None:
        """Report each cell that has an older tag."""
        for place, (old, new) in enumerate(zip(before, tags, strict=True)):
            if new < old:
                self.scene.violated(
                    "tags grow",
                    f"switch {switch.name}: cell {place} of {name} had tag {old:#x}, and has "
                    f"{new:#x}",
                )


_TURN, _EARLY = ".barrier_tag", ".feature_tag"
_REGISTERS = (_TURN, _EARLY, ".newest_round", ".collected_tag")
# Block and fragment.
_PLACE_BITS = 32


class TurnsGrow(SwitchCheck):
    """Compares the registers of the barrier with those at the frames before."""

    def begin(self, scene: Scene) -> None:
        super().begin(scene)
        self._before: dict[int, dict[str, int]] = {}
        self._registers: dict[int, dict[str, RegisterCells]] = {}
        self._images: dict[int, list[Sequence[int]]] = {}

    def ends(self, switch: VirtualSwitch) -> None:
        self._registers.pop(switch.number, None)

    def taken(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        registers = self._registers.get(switch.number)
        if registers is None:
            if switch.engine is None:
                return
            named = switch.engine.state.registers.items()
            registers = {
                known: register
                for name, register in named
                for known in _REGISTERS
                if name.endswith(known)
            }
            self._registers[switch.number] = registers
            self._images[switch.number] = []
            self._before[switch.number] = _contents(registers)
        images = [register.image(1) for register in registers.values()]
        if images == self._images[switch.number]:
            return
        self._images[switch.number] = images
        before = self._before[switch.number]
        now = self._before[switch.number] = _contents(registers)
        back = [name for name in now if now[name] < before[name]]
        if back and not (back == [_EARLY] and _corrects(before, now)):
            self.scene.violated(
                "turns grow", f"{switch.name} goes back: its barrier had {before}, and has {now}"
            )
        if now[_EARLY] < now[_TURN]:
            self.scene.violated(
                "turns grow", f"{switch.name} refuses features of the block whose turn it is: {now}"
            )


def _contents(registers: dict[str, RegisterCells]) -> dict[str, int]:
    return {name: register.cells[0] for name, register in registers.items()}


def _corrects(before: dict[str, int], now: dict[str, int]) -> bool:
    """Return whether a round was opened that begins with an earlier block than foreseen."""
    same_round = before[_EARLY] >> _PLACE_BITS == now[_EARLY] >> _PLACE_BITS
    return same_round and before[_TURN] < now[_TURN] == now[_EARLY]


_RESEND = 0x10
Sum = tuple[tuple[int, int, int], int]


class PartsAskedFor(SwitchCheck):
    """Compares each MISSING with Resend that leaves a spine with the RECALLs beside it."""

    def begin(self, scene: Scene) -> None:
        super().begin(scene)
        scenario = scene.scenario
        # Where ports have limits, some frames of a burst are lost or leave later.
        self._spines = () if scenario.queue_rate else range(scenario.leaves, scenario.switches)
        self._others = scenario.leaves - 1
        self._missing: Counter[Sum] = Counter()
        self._asked: Counter[Sum] = Counter()
        self._noted_at = 0

    def taken(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        if self._missing:
            self._compare()

    def given(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        if switch.number not in self._spines:
            return
        for frame in frames:
            kind = kind_in(frame)
            if kind in (Kind.MISSING, Kind.RECALL):
                packet = read_packet(frame)
                if packet.flags & _RESEND and is_wrapped(packet):
                    noted = self._missing if kind == Kind.MISSING else self._asked
                    noted[packet.place, packet.destination] += 1
                    self._noted_at = self.scene.scheduler.now

    def ends(self, switch: VirtualSwitch) -> None:
        if self._noted_at == self.scene.scheduler.now:
            self._missing.clear()
            self._asked.clear()

    def conclude(self, *, in_time: bool) -> None:
        self._compare()

    def _compare(self) -> None:
        for (place, vertex), missing in self._missing.items():
            asked = self._asked[place, vertex]
            if asked < missing * self._others:
                self.scene.violated(
                    "parts asked for",
                    f"a spine lacks a part of the sum of vertex {vertex} in round {place[0]}, "
                    f"block {place[1]}, and asks {asked} of {self._others} other leaves",
                )
        self._missing.clear()
        self._asked.clear()


_LEVEL = 1


class PartsMarked(SwitchCheck):
    """Looks at the Level of features that leave leaves for spines."""

    def begin(self, scene: Scene) -> None:
        super().begin(scene)
        self._ends = {(lower.switch, lower.port) for _, lower, _ in scene.subject.site.cables}

    def given(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        if (switch.number, port) not in self._ends:
            return
        for frame in frames:
            if kind_in(frame) != Kind.FEATURE:
                continue
            packet = read_packet(frame)
            level = packet.level
            # A leaf forwards frames that are no packets, even if they look like some.
            if level != _LEVEL and not packet.resent and is_wrapped(packet):
                self.scene.violated(
                    "parts marked",
                    f"{switch.name} sends a partial sum up with Level {level} in place of {_LEVEL}",
                )
