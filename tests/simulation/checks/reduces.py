# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0

"""All-reduces: their results, sums on the wire, counters, order, time, and errors."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switchgnn.controller.controls.outcome import Outcome
from switchgnn.host.errors import HostError
from switchgnn.host.wire.header import Kind
from tests.simulation.checks.check import (
    Check,
    CheckedPacket,
    PacketCheck,
    SwitchCheck,
    is_sound,
    is_wrapped,
    kind_in,
    read_packet,
)
from tests.simulation.checks.outcomes import PartyCheck
from tests.simulation.parts.reducer import Reduced, ReduceJob
from tests.simulation.parts.switch import VirtualSwitch
from tests.simulation.parts.worker import VirtualWorker
from tests.simulation.scenario import TensorKind
from tests.simulation.scene import Scene
from tests.simulation.timing import SECOND, Task

# REDUCE_SLOTS of headers.p4, and the integers and floats of a fragment.
_SLOTS, _LANES, _FLOATS = 512, 256, 128
_LEAST_EXPONENT = -126
_BLOCK_BITS = 16


@dataclass(frozen=True)
class Expected:
    """The right result of an all-reduce, and how far each value may be from it, both float64[N].

    Infinite where any value is right; not a number where the result must be none.
    """

    values: NDArray[np.float64]
    errors: NDArray[np.float64]


def expected_floats(job: ReduceJob, index: int) -> Expected:
    """Return the result of an all-reduce of floats by the formulas of docs/protocol.md."""
    n, average = job.workers, job.tensors[index].kind is TensorKind.AVERAGE
    parts = np.stack([job.values(worker, index) for worker in range(n)]).astype(np.float64)
    values, errors = parts.sum(axis=0), np.zeros(parts.shape[1])
    for begin in range(0, parts.shape[1], _SLOTS * _FLOATS):
        group = slice(begin, begin + _SLOTS * _FLOATS)
        largest = float(np.abs(parts[:, group]).max())
        if not np.isfinite(largest):
            values[group] = np.nan
            continue
        mantissa, exponent = np.frexp(largest)
        exponent = max(_LEAST_EXPONENT, int(exponent) - (mantissa == 0.5))
        errors[group] = n * 2.0 ** (exponent - 64 + 2 * n.bit_length())
    if average:
        values, errors = values / n, errors / n
    # And the rounding of the result to float32.
    return Expected(values, errors + np.abs(values) * 2.0**-24 + 2.0**-149)


class ReducedExact(Check):
    """Compares all results with NumPy's: integers to the bit, floats within the error bound."""

    def session_begins(self) -> None:
        self._integers: dict[int, NDArray[np.int32]] = {}
        self._floats: dict[int, Expected] = {}

    def reduced(self, reduced: Reduced) -> None:
        job, index = self.scene.reduces, reduced.index
        if job is None or self.scene.misfits:
            return
        if job.tensors[index].kind is TensorKind.INT32:
            if index not in self._integers:
                parts = [job.values(worker, index) for worker in range(job.workers)]
                self._integers[index] = np.sum(parts, axis=0, dtype=np.int32)
            wrong = self._integers[index] != reduced.values
        else:
            if index not in self._floats:
                self._floats[index] = expected_floats(job, index)
            right = self._floats[index]
            near = np.abs(reduced.values - right.values) <= right.errors
            wrong = ~np.where(np.isnan(right.values), np.isnan(reduced.values), near)
        if wrong.any():
            self.scene.violated(
                "all-reduces exact",
                f"session {reduced.session}, all-reduce {index + 1}: worker {reduced.worker} has "
                f"{wrong.sum()} wrong values, the first at {int(wrong.argmax())}",
            )


class ReducedAlike(Check):
    """Compares the results of all workers with each other, bit by bit."""

    def session_begins(self) -> None:
        self._known: dict[int, tuple[int, bytes]] = {}

    def reduced(self, reduced: Reduced) -> None:
        result = reduced.values.tobytes()
        worker, known = self._known.setdefault(reduced.index, (reduced.worker, result))
        if known != result and not self.scene.misfits:
            self.scene.violated(
                "all-reduces alike",
                f"session {reduced.session}, all-reduce {reduced.index + 1}: workers {worker} and "
                f"{reduced.worker} have different results",
            )


class ReducedInOrder(Check):
    """Looks at the order in which the all-reduces of a worker are done."""

    def session_begins(self) -> None:
        self._next: Counter[int] = Counter()

    def reduced(self, reduced: Reduced) -> None:
        if reduced.index != self._next[reduced.worker]:
            self.scene.violated(
                "all-reduces in order",
                f"worker {reduced.worker} has all-reduce {reduced.index + 1} before "
                f"{self._next[reduced.worker] + 1}",
            )
        self._next[reduced.worker] += 1


class ReduceTalliesAddUp(Check):
    """Compares the counters of a worker that has done all with the fragments of its tensors."""

    def reduced(self, reduced: Reduced) -> None:
        job, reducer = self.scene.reduces, self.scene.workers[reduced.worker].reducer
        if job is None or reducer is None or reducer.stream is None:
            return
        if reduced.index < len(job.tensors) - 1 or not self.scene.honest(reduced.worker):
            return
        fragments = sum(
            1 - -tensor.elements // (_LANES if tensor.kind is TensorKind.INT32 else _FLOATS)
            for tensor in job.tensors
        )
        counters = reducer.stream.counters
        if (counters.sent, counters.sums) != (fragments, fragments):
            self.scene.violated(
                "all-reduces add up",
                f"worker {reduced.worker} has sent {counters.sent} fragments and taken "
                f"{counters.sums} sums: its tensors have {fragments}",
            )


class ReducesAddedOnce(SwitchCheck):
    """Compares the added contributions of a switch with the distinct ones that have come."""

    def begin(self, scene: Scene) -> None:
        super().begin(scene)
        self._came: dict[int, set[tuple[int, ...]]] = {
            each.number: set() for each in scene.switches
        }

    def taken(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        for frame in frames:
            if kind_in(frame) == Kind.REDUCE and is_sound(packet := read_packet(frame)):
                key = packet.source, packet.session_and_round, packet.block, packet.fragment
                self._came[switch.number].add(key)

    def ends(self, switch: VirtualSwitch) -> None:
        engine, came = switch.engine, len(self._came[switch.number])
        self._came[switch.number].clear()
        if engine is None:
            return
        cells = next(
            counter for name, counter in engine.state.counters.items() if name.endswith(".outcome")
        )
        added = cells.packets[Outcome.REDUCE_ADDED] if cells.size > Outcome.REDUCE_ADDED else 0
        if added > came:
            self.scene.violated(
                "contributions once",
                f"{switch.name} has added {added} contributions to all-reduces, of {came} that "
                "have come",
            )

    def conclude(self, *, in_time: bool) -> None:
        for switch in self.scene.switches:
            self.ends(switch)


@dataclass(frozen=True)
class _Part:
    """What a worker has contributed to a fragment."""

    lanes: bytes
    code: int


class ReducesLeaveExact(PacketCheck):
    """Compares each REDUCED for a worker with the sum of all contributions to its fragment."""

    takes = frozenset({Kind.REDUCE})
    gives = frozenset({Kind.REDUCED})

    def session_begins(self) -> None:
        self._parts: dict[tuple[int, int, int], dict[int, _Part]] = {}

    def took(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        part = _Part(packet.body, packet.group)
        known = self._parts.setdefault(packet.place, {}).setdefault(worker, part)
        if known != part and self.scene.honest(worker):
            self.scene.violated(
                "sums of all leave exact",
                f"worker {worker} sends two different fragments {_number_of(packet)}",
            )

    def gave(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        if self.scene.misfits or self.scene.reduces is None:
            return
        parts = list(self._parts.get(packet.place, {}).values())
        sums = [np.frombuffer(part.lanes, dtype=">i4").astype(np.int32) for part in parts]
        right = (
            len(parts) == packet.number == self.scene.reduces.workers
            and packet.group == max(part.code for part in parts)
            and packet.body == np.sum(sums, axis=0, dtype=np.int32).astype(">i4").tobytes()
        )
        if not right and is_sound(packet):
            self.scene.violated(
                "sums of all leave exact",
                f"{switch.name} sends a wrong sum of fragment {_number_of(packet)} to worker "
                f"{worker}",
            )


def _number_of(packet: CheckedPacket) -> int:
    """Return the number of the fragment in a packet of an all-reduce."""
    return packet.place[0] << _BLOCK_BITS | packet.block


class ReduceWindowHeld(PacketCheck):
    """Compares each fragment of a worker with the first whose sum has not been sent to it."""

    takes = frozenset({Kind.REDUCE})
    gives = frozenset({Kind.REDUCED})

    def session_begins(self) -> None:
        self._first: dict[int, int] = {}
        self._given: dict[int, set[int]] = {}

    def took(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        if not self.scene.honest(worker):
            return
        number, given = _number_of(packet), self._given.setdefault(worker, set())
        first = self._first.setdefault(worker, number)
        while first in given:
            given.remove(first)
            first += 1
        self._first[worker] = first
        if number - first >= _SLOTS // 2:
            self.scene.violated(
                "half of the slots",
                f"worker {worker} sends fragment {number} without the sum of {first}",
            )

    def gave(self, switch: VirtualSwitch, worker: int, packet: CheckedPacket) -> None:
        if is_wrapped(packet):
            self._given.setdefault(worker, set()).add(_number_of(packet))


# Seconds in which the last faults are repaired, without the patience.
_REPAIRED = 5.0


class ReducedInTime(Check):
    """Looks at how long the all-reduces of a worker make no progress before they end."""

    def session_begins(self) -> None:
        self._milestones = [self.scene.scheduler.now]

    def reduced(self, reduced: Reduced) -> None:
        self._milestones.append(self.scene.scheduler.now)

    def session_ends(self) -> None:
        job, scenario = self.scene.reduces, self.scene.scenario
        if job is None:
            return
        tasks = [each.reducer.task for each in self.scene.workers if each.reducer]
        over = [int(time + each.seconds * SECOND) for time, each in self.scene.happened]
        others = [*self._milestones, *(task.ended_at for task in tasks), 0]
        pauses = max(tensor.pause for tensor in job.tensors)
        most = 2 * scenario.patience + pauses + _REPAIRED
        for task in [task for task in tasks if task.ended_at]:
            # A worker may end at once when it wakes, but its end is no progress.
            before = [time for time in others if time < task.ended_at]
            last = max(before + [time for time in over if time <= task.ended_at])
            waited = (task.ended_at - last) / SECOND
            if waited > most:
                self.scene.violated(
                    "all-reduces in time",
                    f"{task.name} ends {waited:.1f} s after the last progress and incident",
                )


class ReduceRightParty(PartyCheck):
    """Looks at the errors of all-reduces."""

    name = "all-reduce right party"

    def task_of(self, worker: VirtualWorker) -> Task | None:
        return worker.reducer.task if worker.reducer is not None else None

    def judge(self, worker: VirtualWorker, error: Exception, gone: set[int]) -> None:
        blamed = set(error.workers) if isinstance(error, HostError) else set()
        # A Byzantine worker may take the slots of others, which then wait for nobody.
        if blamed or not self.scene.misfits:
            super().judge(worker, error, gone)
