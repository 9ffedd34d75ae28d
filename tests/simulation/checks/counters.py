"""What workers keep is bounded."""

import gc
from collections import Counter
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

from greenlet import greenlet

from switchgnn.host.innetwork.fixed_point import Foresight
from tests.simulation.checks.check import Check
from tests.simulation.network import VirtualLink
from tests.simulation.timing import Scheduler, Task

# After the first round not all objects exist yet; the last round is the scenario's, or this.
_FIRST, _LAST, _ROUNDS = 2, 8, 4
# The number of timers and questions under way differs by about ten from round to round.
_ALLOWED = 40
# Foresight keeps up to 256 rounds, more than are checked here.
_SHARED = (
    *(type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, greenlet),
    *(Scheduler, Task, VirtualLink, Foresight),
)


class MemoryBounded(Check):
    """Counts the objects of a worker's exchange after an early round and a later one."""

    name = "memory bounded"

    def session_begins(self):
        self._early, self._fetched = {}, Counter()

    def done(self, done):
        worker, rounds = done.worker, self.scene.scenario.rounds
        exchange, last = self.scene.workers[worker].exchange, min(rounds, _LAST)
        if rounds < _ROUNDS or exchange is None or not self.scene.honest(worker):
            return
        # Those of a round are kept until the next, an array and its number each, but not those of
        # one sum.
        fetched = 0 if exchange._endpoint.per_sum else exchange.counters.features_fetched
        of_round, self._fetched[worker] = fetched - self._fetched[worker], fetched
        if done.round not in (_FIRST, last):
            return
        # Early packets are kept until their unit begins, and bounded by a length of their own.
        early = objects_of(exchange._units.inbox._kept)
        objects = objects_of(exchange) - early - 2 * of_round
        if done.round == _FIRST:
            self._early[worker] = objects
        before = self._early.get(worker, objects)
        if done.round == last and objects > before + _ALLOWED:
            self.tell(
                f"worker {worker} holds {before} objects besides fetched features after round "
                f"{_FIRST}, and {objects} after round {last}"
            )


def objects_of(root):
    """Return the number of objects reachable from one, without code and shared ones."""
    seen, left = {id(root)}, [root]
    while left:
        for each in gc.get_referents(left.pop()):
            if id(each) not in seen and not isinstance(each, _SHARED):
                seen.add(id(each))
                left.append(each)
    return len(seen)
