# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""No worker holds memory that grows with the rounds."""

import gc
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

from greenlet import greenlet

from switchgnn.host.innetwork.fixed_point import Foresight
from switchgnn.virtual.checks.check import Check
from switchgnn.virtual.network.link import VirtualLink
from switchgnn.virtual.parts.worker import Done
from switchgnn.virtual.timing.scheduler import Scheduler
from switchgnn.virtual.timing.task import Task

# Behind the first round not all is there yet; the last one is the scenario's, or this.
_FIRST, _LAST = 2, 8
_ROUNDS = 4
# What is under way differs from round to round by about ten objects: timers, questions.
_ALLOWED = 40
# What a worker foresees follows from up to 256 rounds, more than are looked at here.
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
    """Counts the objects of a worker's exchange behind an early round and a later one."""

    def session_begins(self) -> None:
        """Forget what was counted in the last session."""
        self._early: dict[int, int] = {}

    def done(self, done: Done) -> None:
        """Count behind some rounds."""
        rounds = self.scene.scenario.rounds
        last = min(rounds, _LAST)
        if rounds < _ROUNDS or done.round not in (_FIRST, last):
            return
        if not self.scene.honest(done.worker):
            return
        objects = objects_of(self.scene.workers[done.worker].exchange)
        if done.round == _FIRST:
            self._early[done.worker] = objects
            return
        before = self._early.get(done.worker, objects)
        if objects > before + _ALLOWED:
            self.scene.violated(
                "memory bounded",
                f"worker {done.worker} holds {before} objects behind round {_FIRST}, and "
                f"{objects} behind round {last}",
            )


def objects_of(root: object) -> int:
    """Return how many objects can be reached from one, without code and what workers share."""
    seen = {id(root)}
    left = [root]
    while left:
        for each in gc.get_referents(left.pop()):
            if id(each) not in seen and not isinstance(each, _SHARED):
                seen.add(id(each))
                left.append(each)
    return len(seen)
