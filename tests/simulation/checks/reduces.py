"""All-reduces: their results, sums on the wire, counters, order, time, and errors."""

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np

from switchgnn.host.base.errors import HostError
from switchgnn.host.wire.header import Kind
from tests.host.reduce.switch_model import largest_error, scaled_alike
from tests.simulation.checks.check import Check, PacketCheck
from tests.simulation.checks.outcomes import RightParty
from tests.simulation.scenario import TensorKind

# REDUCE_SLOTS of headers.p4, and the integers and floats of a fragment.
_SLOTS = 128
_LEAST_EXPONENT = -126
_BLOCK_BITS = 16


@dataclass(frozen=True)
class Expected:
    """The right result of an all-reduce, and how far each value may be from it, both float64[N]."""

    values: np.ndarray  # not a number where the result must be none
    errors: np.ndarray  # infinite where any value is right


def expected_floats(job, index):
    """Return the result of an all-reduce of floats by the formulas of docs/allreduce.md."""
    n, average = job.workers, job.tensors[index].kind is TensorKind.AVERAGE
    parts = np.stack([job.values(worker, index) for worker in range(n)]).astype(np.float64)
    values, errors = parts.sum(axis=0), np.zeros(parts.shape[1])
    for group in scaled_alike(parts.shape[1], n, _SLOTS, lanes=job.lanes):
        largest = float(np.abs(parts[:, group]).max())
        if not np.isfinite(largest):
            values[group] = np.nan
            continue
        mantissa, exponent = np.frexp(largest)
        exponent = max(_LEAST_EXPONENT, int(exponent) - (mantissa == 0.5))
        errors[group] = float(largest_error(n, exponent))
    if average:
        values, errors = values / n, errors / n
    # And the rounding of the result to float32.
    return Expected(values, errors + np.abs(values) * 2.0**-24 + 2.0**-149)


class ReducedExact(Check):
    """Compares all results with NumPy's, the order of a worker's, and its counters at the end."""

    def session_begins(self):
        self._right, self._known, self._next = {}, {}, Counter()

    def reduced(self, reduced):
        scene, worker, index = self.scene, reduced.worker, reduced.index
        name = f"session {reduced.session}, all-reduce {index + 1}: worker {worker}"
        if index != self._next[worker]:
            scene.violated("all-reduces in order", f"{name} has it before an earlier one")
        self._next[worker] += 1
        if not scene.byzantine:
            wrong = self._wrong(reduced)
            if wrong.any():
                scene.violated(
                    "all-reduces exact",
                    f"{name} has {wrong.sum()} wrong values, the first at {int(wrong.argmax())}",
                )
            result = reduced.values.tobytes()
            if self._known.setdefault(index, result) != result:
                scene.violated("all-reduces alike", f"{name} has another result than others")
        if index == len(scene.reduces.tensors) - 1 and scene.honest(worker):
            self._add_up(name, scene.workers[worker].reducer.stream.counters)

    def _wrong(self, reduced):
        job, index = self.scene.reduces, reduced.index
        integers = job.tensors[index].kind is TensorKind.INT32
        if index not in self._right and integers:
            parts = [job.values(worker, index) for worker in range(job.workers)]
            self._right[index] = np.sum(parts, axis=0, dtype=np.int32)
        elif index not in self._right:
            self._right[index] = expected_floats(job, index)
        right = self._right[index]
        if integers:
            return right != reduced.values
        near = np.abs(reduced.values - right.values) <= right.errors
        return ~np.where(np.isnan(right.values), np.isnan(reduced.values), near)

    def _add_up(self, name, counters):
        """Compare counters with the fragments of all tensors, after a mark and codes."""
        fragments = 0
        for tensor in self.scene.reduces.tensors:
            whole = tensor.kind is TensorKind.INT32
            held = self.scene.reduces.lanes * 32 // (32 if whole else 48)
            data = -(-tensor.elements // held)
            fragments += 1 + (data > 1 and not whole) + data
        if (counters.sent, counters.sums) != (fragments, fragments):
            self.scene.violated(
                "all-reduces add up",
                f"{name} has sent {counters.sent} fragments and taken {counters.sums} sums: its "
                f"tensors have {fragments}",
            )


class ReducesLeaveExact(PacketCheck):
    """Compares each REDUCED for a worker with the sum of all contributions to its fragment."""

    name = "sums of all leave exact"
    takes = frozenset({Kind.REDUCE})
    gives = frozenset({Kind.REDUCED})

    def session_begins(self):
        # Lanes and exponents by unit and worker.
        self._parts = defaultdict(dict)

    def took(self, switch, worker, packet):
        part = packet.body, packet.feature_group
        known = self._parts[packet.unit].setdefault(worker, part)
        if known != part and self.scene.honest(worker):
            self.tell(f"worker {worker} sends two different fragments {_number_of(packet)}")

    def gave(self, switch, worker, packet):
        if self.scene.byzantine or self.scene.reduces is None:
            return
        parts = list(self._parts[packet.unit].values())
        sums = [np.frombuffer(lanes, dtype=">i4").astype(np.int32) for lanes, _ in parts]
        right = (
            len(parts) == packet.count == self.scene.reduces.workers
            and packet.feature_group == max(exponent for _, exponent in parts)
            and packet.body == np.sum(sums, axis=0, dtype=np.int32).astype(">i4").tobytes()
        )
        if not right and packet.is_sound:
            self.tell(
                f"{switch.name} sends a wrong sum of fragment {_number_of(packet)} to worker "
                f"{worker}"
            )


def _number_of(packet):
    """Return the number of the fragment in a packet of an all-reduce."""
    return packet.unit.round << _BLOCK_BITS | packet.block_id


class ReduceRightParty(RightParty):
    """Looks at the errors of all-reduces."""

    name = "all-reduce right party"

    def task_of(self, worker):
        return worker.reducer.task if worker.reducer is not None else None

    def judge(self, worker, error, gone):
        blamed = set(error.workers) if isinstance(error, HostError) else set()
        # A Byzantine worker may take the slots of others, which then wait for nobody.
        if blamed or not self.scene.byzantine:
            super().judge(worker, error, gone)
