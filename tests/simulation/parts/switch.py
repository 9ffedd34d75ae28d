"""A switch in virtual time: a real engine, and a real P4Runtime service before it."""

from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

from switchgnn.softswitch.base.ports import QueueSettings
from switchgnn.softswitch.lowering.loader import GivenProgram
from switchgnn.softswitch.p4runtime.pipeline_config import PreparedProgram
from switchgnn.softswitch.p4runtime.server import P4RuntimeService
from tests.simulation.network import Wire
from tests.simulation.parts.engines import Engine, Programs, Sent
from tests.simulation.scenario import Scenario
from tests.simulation.timing import SECOND, Scheduler

Result = TypeVar("Result")
_ALL = 1 << 30
# Nanoseconds of one turn of recirculated packets.
_TURN = 2_000
_DEVICE = 0


class VirtualSwitch:
    """A switch; `Device` of the P4Runtime service."""

    def __init__(
        self,
        number: int,
        programs: Programs,
        scenario: Scenario,
        scheduler: Scheduler,
        *,
        random: Random,
    ) -> None:
        self.number = number
        self.name = f"s{number}"
        self.wires: dict[int, Wire] = {}  # from its ports
        self.service: P4RuntimeService | None = None  # its P4Runtime; None while it is off
        self.starts = 0  # how often it was started
        self.engine: Engine | None = None  # runs its program; None while it has none
        # hear of the frames that it takes and gives, and of its end; see `SwitchCheck`
        self.onlookers: list[Any] = []
        self._programs = programs
        self._scenario = scenario
        self._scheduler = scheduler
        self._turning = False
        self._ticks_at = 0
        self._tear: Callable[[], None] | None = None
        self._random = random

    def start(self) -> None:
        self.starts += 1
        self.engine = None
        self.service = P4RuntimeService(self, _DEVICE, None, self._programs.give)
        self._scheduler.trace.note(self.name, "starts")

    def stop(self) -> None:
        for onlooker in self.onlookers:
            onlooker.ends(self)
        self.service = self.engine = None
        self._scheduler.trace.note(self.name, "ends")

    def restart(self, seconds: float, started: Callable[[], None] = lambda: None) -> None:
        """End it, start it again some seconds later, and call `started`."""

        def start() -> None:
            self.start()
            started()

        if self.service is not None:
            self.stop()
            self._scheduler.after(int(seconds * SECOND), start)

    def tear(self, seconds: float, torn: Callable[[], None]) -> None:
        """Restart it when frames next leave through several ports, after only some have left."""

        def end() -> None:
            torn()
            self.restart(seconds)

        self._tear = end

    def spill(self) -> None:
        if self.engine is not None:
            self.engine.spill()
            self._scheduler.trace.note(self.name, "spills")

    def prepare(self, given: GivenProgram) -> PreparedProgram:
        """Make the engine of a program, which replaces the running one."""
        rate = self._scenario.queue_rate
        rates = dict.fromkeys(self.wires, rate) if rate else {}
        engine = self._programs.engine(
            given,
            queues=QueueSettings(depth=self._scenario.queue_depth, port_rates=rates),
            ports=self.wires,
            scheduler=self._scheduler,
        )
        return PreparedProgram(engine.state, lambda: self._install(engine))

    def _install(self, engine: Engine) -> None:
        for onlooker in self.onlookers:
            onlooker.ends(self)
        self.engine = engine

    def call(self, function: Callable[[], Result]) -> Result:
        return function()

    def inject(self, port: int, frame: bytes) -> None:
        """Process a frame as if it had arrived at a port."""
        self.arrive(port, [frame])

    def arrive(self, port: int, frames: list[bytes]) -> None:
        engine = self.engine
        if engine is None:
            return
        for onlooker in self.onlookers:
            onlooker.taken(self, port, frames)
        turns = self._scenario.turns or _ALL
        more = False
        engine.tick()
        for frame in frames:
            more = engine.take(port, frame, turns)
        self._go_on(engine, more)

    def _turn(self, engine: Engine) -> None:
        self._turning = False
        if engine is self.engine:
            self._go_on(engine, engine.go_around(self._scenario.turns or _ALL))

    def _tick(self, engine: Engine) -> None:
        self._ticks_at = 0
        if engine is self.engine:
            engine.tick()
            self._go_on(engine, engine.go_around(self._scenario.turns or _ALL))

    def _go_on(self, engine: Engine, more: bool) -> None:
        """Give what has left, and schedule the next turn and the next time of queues."""
        self._give(engine.sent())
        if engine is not self.engine:
            return
        if more and not self._turning:
            self._turning = True
            self._scheduler.after(_TURN, self._turn, engine)
        if self._scenario.queue_rate and not self._ticks_at:
            again = engine.tick()
            if again:
                self._ticks_at = int(again * SECOND) + 1
                self._scheduler.at(self._ticks_at, self._tick, engine)
            self._give(engine.sent())

    def _give(self, sent: Sent) -> None:
        by_port: dict[int, list[bytes]] = {}
        for port, frame in sent:
            by_port.setdefault(port, []).append(frame)
        end = self._tear if len(by_port) > 1 else None
        if end is not None:
            self._tear = None
            by_port = self._some(by_port)
        for port, frames in by_port.items():
            for onlooker in self.onlookers:
                onlooker.given(self, port, frames)
            self.wires[port].send(frames)
        if end is not None:
            end()

    def _some(self, by_port: dict[int, list[bytes]]) -> dict[int, list[bytes]]:
        number = self._random.randrange(1, len(by_port))
        return {port: by_port[port] for port in self._random.sample(list(by_port), number)}
