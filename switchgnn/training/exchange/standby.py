"""What workers do without the switch: their sums go through Gloo until it answers again.

The operations over the switch, exchanges and all-reduces, are numbered in program order, the same
on all workers. A worker that hears nothing from the switch posts where it is in the store of the
process group, and so do the others as soon as they wait. A worker completes an operation only if
all have begun it. So the least number of all is that of an operation whose inputs all others still
have: those that have completed it serve those that have not, and all go on through Gloo.

When the switch answers again, each worker first completes over the switch what any of them has
begun, with the same inputs, and drops the sums. Then rounds, barriers and fragments agree again,
whether the switch was restarted or only unreachable.
"""

import json
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore, Store, _get_default_store

from switchgnn.base.array_types import Float32s
from switchgnn.host.base.errors import TransportError, named_workers
from switchgnn.host.base.operations import SUM, Operation
from switchgnn.host.base.pace import Pace
from switchgnn.host.base.silence import SwitchSilentError
from switchgnn.host.direct.kinds import BinnedSchedule
from switchgnn.host.direct.schedule import DirectSchedule
from switchgnn.host.paths.base import BlockPaths, Path
from switchgnn.host.paths.transport import PathsTransport
from switchgnn.host.reduce.reducer import Reducer
from switchgnn.planner.base.direction import Direction
from switchgnn.training.base.errors import LostWorkerError, collective
from switchgnn.training.base.steps import word_left

# Seconds between two looks at a sum, into the store, and at the other workers there.
_LOOK, _PERIOD, _LONG = 0.01, 0.02, 0.5


class Position(NamedTuple):
    """Where a worker is."""

    number: int  # of the operation that it makes, or will make next
    begun: bool  # whether it has begun that one over the switch
    epoch: int


@dataclass(eq=False)
class _Made:
    """An operation; `direction`: of an exchange, None: an all-reduce."""

    number: int
    values: Float32s  # its input; not changed
    direction: Direction | None
    paths: BlockPaths
    result: Float32s | None = None  # of an all-reduce
    begun: bool = False  # over the switch


class Rendezvous:
    """Tells workers that the switch is silent, and where each of them is.

    `seconds`: how long they wait for each other. Its `group` is for what they then do, and `beside`
    for blocks that take the path GLOO.
    """

    def __init__(self, store: Store, worker: int, workers: int, seconds: float) -> None:
        self._store, self._worker, self._workers = store, worker, workers
        self._seconds = seconds
        # PyTorch declares few of their methods.
        self.group, self.beside = (self._open(name) for name in ("group", "beside"))
        self._number = 0  # of meetings so far; each is of all workers

    def _open(self, name: str) -> Any:  # noqa: ANN401
        store = PrefixStore(name, self._store)
        return dist.ProcessGroupGloo(
            store, self._worker, self._workers, timedelta(seconds=self._seconds)
        )

    @classmethod
    def of_all(cls, worker: int, workers: int, pace: Pace) -> "Rendezvous":
        """Return that of the process group, all of whose workers call this."""
        store = PrefixStore("standby", _get_default_store())
        return cls(store, worker, workers, pace.timeout + pace.skew)

    def called(self) -> bool:
        """Return whether a worker waits there."""
        return self._store.check([f"{self._number}/called"])

    def hold(self, own: Position, stopped: Callable[[], bool]) -> list[Position]:
        """Wait for all workers; return where each of them is."""
        keys = [f"{self._number}/{worker}" for worker in range(self._workers)]
        self._store.set(keys[self._worker], json.dumps(own))
        self._store.set(f"{self._number}/called", "")
        deadline = time.monotonic() + self._seconds
        polls = threading.Event()  # a store in a file waits for whole seconds
        while not self._store.check(keys):
            polls.wait(_LOOK)
            if (failure := word_left()) is not None:
                raise failure
            if stopped():
                raise TransportError("The exchange was stopped.")
            if time.monotonic() > deadline:
                missing = [each for each, key in enumerate(keys) if not self._store.check([key])]
                raise LostWorkerError(
                    f"The switch is silent, and {named_workers(missing)} did not come to go on "
                    f"without it within {self._seconds:g} s: look at the errors of the others."
                )
        self._number += 1
        return [Position(*json.loads(self._store.get(key))) for key in keys]


class Standby:
    """The operations of a worker over the switch, and through Gloo while that is silent."""

    def __init__(self, exchange: PathsTransport, meeting: Rendezvous) -> None:
        self.down = False  # whether operations go through Gloo
        self._exchange, self._meeting, self._group = exchange, meeting, meeting.group
        self._schedule = exchange.standby()  # now, as it takes a while
        self._schedule_beside = self._schedule
        self._reducer: Reducer | None = None
        self._watch = exchange.watch
        self._watch.alarmed = meeting.called
        self._paths = exchange.paths
        self._changes: list[dict[str, Any]] = []
        self._next, self._epoch = 0, 1
        self._current: _Made | None = None
        # Those that another worker may not have completed, and the number of the first one of this
        # epoch.
        self._kept: list[_Made] = []
        self._first_of_epoch = 0
        # Those to complete over the switch before its return, up to a number; the first one may be
        # begun.
        self._owed: deque[_Made] = deque()
        self._last_owed = -1
        # Since when the switch answers, or when it was asked last.
        self._answered, self._asked_at = False, 0.0
        self._positions: list[Position] = []  # where all were when the switch became silent
        self._vote: tuple[dist.Work, torch.Tensor] | None = None

    def aggregate(
        self, rows: Float32s, direction: Direction, tensor_id: int = 0, operation: Operation = SUM
    ) -> Float32s:
        """Add up the rows of remote neighbours; see ``Transport.aggregate``."""
        operation.refuse("An exchange without the switch")
        beside = None
        if Path.GLOO in self._paths[direction]:
            beside = self._beside(rows, direction)
        made = _Made(self._next, rows.copy(), direction, self._paths)
        over_switch = Path.SWITCH in self._paths[direction]

        def exchanged() -> Float32s:
            sums = self._exchange.aggregate(rows, direction, tensor_id)
            return sums if beside is None else sums + beside

        return self._make(made, exchanged, barrier=over_switch)

    def _beside(self, rows: Float32s, direction: Direction) -> Float32s:
        """Return the sums of the blocks on the path GLOO; all workers do, also without a switch."""
        started = time.monotonic()
        schedule = _of(self._schedule_beside, direction)
        sums = self._swapped(rows, schedule, self._meeting.beside, self._wait_beside)
        seconds = time.monotonic() - started
        self._exchange.note(direction, rows.shape[1], Path.GLOO, seconds)
        return sums

    def _wait_beside(self, work: dist.Work) -> None:
        """Wait for others, and serve those to which the switch is silent meanwhile."""
        while True:
            try:
                work.wait(timedelta(seconds=_PERIOD))
            except RuntimeError:
                if work.is_completed():
                    work.wait()  # it may have been so just now
                    return
                if not self.down and self._meeting.called():
                    self._fall_back()
            else:
                return

    def reduce(self, values: Float32s, reducer: Reducer) -> Float32s:
        """Return the sums of float32[N] over all workers."""
        self._reducer = reducer
        made = _Made(self._next, values.copy(), None, self._paths)
        return self._make(made, partial(self._reduced, reducer, made.values), barrier=True)

    def attend(self, until: Callable[[], bool]) -> None:
        """Serve workers to which the switch is silent; see ``Transport.attend``."""
        while not until():
            self._exchange.attend(lambda: until() or self.down or self._meeting.called())
            if self.down:
                return
            if not until() and self._meeting.called():
                self._fall_back()

    def next_epoch(self) -> None:
        """Return to the switch if it has answered all workers; ask it again if it has not."""
        self._epoch += 1
        # In between all workers have added up gradients.
        self._kept = [each for each in self._kept if each.number >= self._first_of_epoch]
        self._first_of_epoch = self._next
        # Others may have been in this epoch already when they fell back.
        if not self.down or self._epoch <= max(each.epoch for each in self._positions):
            return
        if self._counted():
            # If it is silent again, others may be in this epoch: none votes before the next one.
            self._return()
            return
        self._answered = self._answered or self._answers()
        answers = torch.tensor([self._answered], dtype=torch.int32)
        self._vote = self._group.allreduce([answers], dist.ReduceOp.MIN), answers

    def set_paths(self, paths: BlockPaths) -> None:
        """Take other paths from the next exchange over the switch on; see ``PathsTransport``."""
        self._paths = paths
        if any(Path.GLOO in own for own in paths.values()):
            self._schedule_beside = self._exchange.beside(paths)
        # Without the switch some workers still owe exchanges over earlier paths.
        if not self.down:
            self._exchange.set_paths(paths)

    def take_changes(self) -> list[dict[str, Any]]:
        """Return when and why the switch was left or taken again since the last call."""
        taken, self._changes = self._changes, []
        return taken

    def close(self) -> None:
        """Wait for the last vote, which others may still count; give up what the switch owes."""
        self._counted()
        if self.down and self._reducer is not None:
            self._reducer.close(abort=True)

    def _make(self, made: _Made, over_switch: Callable[[], Float32s], *, barrier: bool) -> Float32s:
        """Make an operation; `barrier`: over the switch, it ends only when all have begun it."""
        self._current = made
        result = None
        if not self.down:
            try:
                made.begun = True
                result = over_switch()
                if barrier:
                    self._kept.clear()
            except SwitchSilentError:
                self._fall_back()
        if result is None:
            result = self._over_gloo(made)
            if made.number <= self._last_owed and not made.begun:
                self._owed.append(made)
        made.result = result if made.direction is None else None
        self._kept.append(made)
        self._current, self._next = None, self._next + 1
        return result

    def _reduced(self, reducer: Reducer, values: Float32s) -> Float32s:
        future, known = reducer.submit(values), reducer.timeout
        self._watch.begin(time.monotonic())
        heard_at, progress_at = known.heard_at, known.progress_at
        while True:
            try:
                found: Float32s = future.result(_LOOK)
            except FutureTimeoutError:
                heard, progress = known.heard_at > heard_at, known.progress_at > progress_at
                heard_at, progress_at = known.heard_at, known.progress_at
                now = time.monotonic()
                self._watch.look(now, heard=heard, progress=progress, ask=lambda: None)
            else:
                return found

    def _fall_back(self) -> None:
        """Do without the switch from now on, as all workers do."""
        current = self._current
        own = Position(self._next, current is not None and current.begun, self._epoch)
        self._positions = self._meeting.hold(own, lambda: self._exchange.stopped)
        self.down, self._vote, self._answered = True, None, False
        if self._reducer is not None:
            self._reducer.timeout.patient = True
        self._note(f"switch silent for {self._watch.seconds:.2g} s")
        if current is not None and current.begun:
            self._owed.append(current)
        begun = [each.number for each in self._positions if each.begun]
        self._last_owed = max(begun, default=-1)
        least = min(each.number for each in self._positions)
        for made in [each for each in self._kept if each.number >= least]:
            self._over_gloo(made)

    def _over_gloo(self, made: _Made) -> Float32s:
        with collective():
            if made.direction is not None:
                schedule = _of(self._schedule, made.direction)
                return self._swapped(made.values, schedule, self._group, lambda work: work.wait())
            ahead = [
                worker for worker, each in enumerate(self._positions) if each.number > made.number
            ]
            # Weights stay the same everywhere only if all take the same sums.
            total = torch.from_numpy((made.values if made.result is None else made.result).copy())
            if ahead:
                options = dist.BroadcastOptions()
                options.rootRank, options.rootTensor = ahead[0], 0
                self._group.broadcast([total], options).wait()
            else:
                self._group.allreduce([total], dist.ReduceOp.SUM).wait()
            return total.numpy()

    def _swapped(
        self,
        rows: Float32s,
        schedule: DirectSchedule,
        group: Any,  # noqa: ANN401
        wait: Callable[[dist.Work], object],
    ) -> Float32s:
        sent = torch.from_numpy(np.ascontiguousarray(schedule.send.apply(rows)))
        received = torch.empty((int(schedule.in_indptr[-1]), rows.shape[1]))
        sizes = (np.diff(each).tolist() for each in (schedule.in_indptr, schedule.out_indptr))
        with collective():
            wait(group.alltoall_base(received, sent, *sizes))
        sums: Float32s = schedule.add.apply(received.numpy())
        return sums

    def _answers(self) -> bool:
        """Return whether the switch answers about what this worker has begun, if anything."""
        first = self._owed[0] if self._owed else None
        if first is None or not first.begun:
            return True
        if first.direction is None:
            assert self._reducer is not None  # noqa: S101 - it has begun the all-reduce
            return time.monotonic() - self._reducer.timeout.heard_at < _LONG
        # An answer takes a moment, and silence a longer one.
        if time.monotonic() < self._asked_at + _LONG:
            return False
        self._watch.probe()
        self._asked_at = time.monotonic()
        try:
            self._exchange.resume()
        except SwitchSilentError:
            return self._watch.answered
        self._owed.popleft()
        return True

    def _counted(self) -> bool:
        """Wait for the last vote, if any; return whether the switch answers all workers."""
        if self._vote is None:
            return False
        work, answers = self._vote
        with collective():
            work.wait()
        return bool(answers)

    def _return(self) -> None:
        """Complete what is owed, and use the switch again."""
        self.down = False
        if self._reducer is not None:
            self._reducer.timeout.patient = False
        while self._owed:
            made = self._owed[0]
            try:
                if made.direction is None:
                    if self._reducer is not None and not made.begun:
                        self._reducer.submit(made.values)
                elif made.begun:
                    self._exchange.resume()
                else:
                    self._exchange.set_paths(made.paths)
                    made.begun = True
                    self._exchange.aggregate(made.values, made.direction)
            except SwitchSilentError:
                self._fall_back()
                return
            self._owed.popleft()
        self._exchange.set_paths(self._paths)
        self._note("switch answers again")

    def _note(self, why: str) -> None:
        words = f"epoch {self._epoch}: {why}"
        self._changes.append({"epoch": self._epoch, "why": why, "words": words})


def _of(both: BinnedSchedule, direction: Direction) -> DirectSchedule:
    return both.forward if direction is Direction.FORWARD else both.backward
