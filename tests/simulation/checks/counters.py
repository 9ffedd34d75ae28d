"""Workers send and keep what they have to, and the turns of switches only grow."""

import gc
from collections import Counter
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

from greenlet import greenlet

from switchgnn.host.innetwork.fixed_point import Foresight
from tests.simulation.checks.check import Check, SwitchCheck
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
        # Those of a round are kept until the next: an array and its number each.
        fetched = exchange.counters.features_fetched
        of_round, self._fetched[worker] = fetched - self._fetched[worker], fetched
        if done.round not in (_FIRST, last):
            return
        # Early packets are kept until their unit begins, and bounded by a length of their own.
        early = objects_of(exchange._units._inbox._kept)
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


# Fragment, block, pool and width.
_UNIT_BITS = 32
_OF_THE_BARRIER = (".barrier_tag", ".feature_tag", ".newest_round", ".collected_tag")


class TurnsGrow(SwitchCheck):
    """Compares the registers of the barrier with those at the frames before."""

    name = "turns grow"

    def begin(self, scene):
        super().begin(scene)
        self._pools = scene.scenario.pools
        # Registers, their images and their contents by pool, by switch.
        self._known = {}

    def ends(self, switch):
        self._known.pop(switch.number, None)

    def taken(self, switch, port, frames):
        if switch.engine is None:
            return
        if switch.number not in self._known:
            registers = {
                name.rpartition(".")[2]: register
                for name, register in switch.engine.state.registers.items()
                if name.endswith(_OF_THE_BARRIER)
            }
            self._known[switch.number] = registers, [], self._contents(registers)
            return
        registers, before_images, before = self._known[switch.number]
        images = [register.cells[: self._pools] for register in registers.values()]
        if images == before_images:
            return
        now = self._contents(registers)
        self._known[switch.number] = registers, images, now
        for before_it, after_it in zip(before, now, strict=True):
            self._compare(switch, before_it, after_it)

    def _compare(self, switch, before, now):
        """Compare the registers of a pool."""
        back = [name for name in now if now[name] < before[name]]
        if back and not (back == ["feature_tag"] and _corrects(before, now)):
            self.tell(f"{switch.name} goes back: its barrier had {before}, and has {now}")
        if now["feature_tag"] < now["barrier_tag"]:
            self.tell(f"{switch.name} refuses features of the block whose turn it is: {now}")

    def _contents(self, registers):
        """Return the registers of each pool; what all pools share stands in the first one."""
        return [
            {
                name: register.cells[pool]
                for name, register in registers.items()
                if pool < len(register.cells)
            }
            for pool in range(self._pools)
        ]


def _corrects(before, now):
    """Return whether a round was opened that begins with an earlier block than foreseen."""
    same_round = before["feature_tag"] >> _UNIT_BITS == now["feature_tag"] >> _UNIT_BITS
    return same_round and before["barrier_tag"] < now["barrier_tag"] == now["feature_tag"]
