"""The embedded switch's engines, without threads and sockets."""

from collections.abc import Iterable
from functools import partial

from switchgnn.base.native import find_compiler
from switchgnn.softswitch import Backend, QueueSettings
from switchgnn.softswitch.base.ports import ForwardingCounts, Sender
from switchgnn.softswitch.base.state import ProgramState
from switchgnn.softswitch.forwarding import Forwarder
from switchgnn.softswitch.lowering.loader import GivenProgram
from switchgnn.softswitch.lowering.program import LoweredProgram
from switchgnn.softswitch.native.engine import (
    Attachment,
    NativeEngine,
    NativeProgram,
    PortKind,
    load_native,
)
from tests.simulation.timing import SECOND, Scheduler
from tests.support.captured import Captured

Sent = list[tuple[int, bytes]]


class Programs:
    """Programs, each compiled once."""

    def __init__(self, backend: Backend) -> None:
        if backend is Backend.AUTO:
            backend = Backend.PYTHON if find_compiler() is None else Backend.NATIVE
        self._backend = backend
        self._given: dict[bytes, GivenProgram] = {}
        self._native: dict[bytes, NativeProgram] = {}

    def give(self, document: bytes) -> GivenProgram:
        if document not in self._given:
            self._given[document] = GivenProgram(document)
        return self._given[document]

    def engine(
        self,
        given: GivenProgram,
        *,
        queues: QueueSettings,
        ports: Iterable[int],
        scheduler: Scheduler,
    ) -> "Engine":
        if self._backend is Backend.PYTHON:
            return PythonEngine(given.lowered, queues, ports, scheduler)
        if given.document not in self._native:
            self._native[given.document] = load_native(given)
        return EngineFrames(self._native[given.document], queues, ports, scheduler)


class EngineFrames:
    """A native engine whose ports are captured.

    `take` processes a packet and then recirculated ones, `go_around` those alone, up to a number;
    both return whether there are more. `sent` returns the frames that have left since the last
    call, with their ports, and `tick` sends what queues allow now, and returns the next time in
    seconds; 0: never. `spill` drops all queued and recirculated packets.
    """

    def __init__(
        self,
        native: NativeProgram,
        queues: QueueSettings,
        ports: Iterable[int],
        scheduler: Scheduler,
    ) -> None:
        self._engine = NativeEngine(native, queues)
        self._engine.attach(dict.fromkeys(ports, Attachment(PortKind.CAPTURED)))
        self._limited = queues.limited
        self._scheduler = scheduler
        self._tick = partial(self._engine.switch.call, "switch_tick")
        self._tick(scheduler.now / SECOND)
        self.go_around = self._engine.run_again
        self.sent = Captured(self._engine)

    @property
    def state(self) -> ProgramState:
        return self._engine.state

    @property
    def counts(self) -> ForwardingCounts:
        return self._engine.counts

    def take(self, port: int, frame: bytes, most: int) -> bool:
        self._engine.receive(port, frame)
        return self.go_around(most)

    def tick(self) -> float:
        if not self._limited:
            return 0.0
        return max(0.0, float(self._tick(self._scheduler.now / SECOND)))

    def spill(self) -> None:
        self._engine.clear()


class PythonEngine:
    """The interpreter, which knows no rates of ports; as `EngineFrames`."""

    def __init__(
        self,
        lowered: LoweredProgram,
        queues: QueueSettings,
        ports: Iterable[int],
        scheduler: Scheduler,
    ) -> None:
        self._sent: Sent = []
        self._forwarder = Forwarder(
            lowered,
            depth=queues.depth,
            senders={port: self._sender(port) for port in ports},
            clock=lambda: scheduler.now / SECOND,
        )
        self.state, self.counts = self._forwarder.state, self._forwarder.counts

    def _sender(self, port: int) -> Sender:
        def send(frame: bytes) -> bool:
            self._sent.append((port, frame))
            return True

        return send

    def take(self, port: int, frame: bytes, most: int) -> bool:
        self._forwarder.receive(port, frame)
        return self.go_around(most)

    def go_around(self, most: int) -> bool:
        self._forwarder.run_again(most)
        return self._forwarder.busy

    def sent(self) -> Sent:
        sent, self._sent = self._sent, []
        return sent

    def tick(self) -> float:
        return 0.0

    def spill(self) -> None:
        self._forwarder.clear()


Engine = EngineFrames | PythonEngine
