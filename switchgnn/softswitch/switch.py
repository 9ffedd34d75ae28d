"""The software switch: ports, packet path and P4Runtime server of one device."""

import logging
import os
import select
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from switchgnn.base.native import find_compiler
from switchgnn.softswitch.base.errors import PortError, SoftSwitchError
from switchgnn.softswitch.base.ports import (
    ForwardingCounts,
    Port,
    PortSpec,
    QueueSettings,
    Sender,
    open_ports,
)
from switchgnn.softswitch.base.program import DROP_PORT
from switchgnn.softswitch.base.state import ProgramState
from switchgnn.softswitch.forwarding import Forwarder
from switchgnn.softswitch.lowering.loader import GivenProgram
from switchgnn.softswitch.native.build import Backend, NoCompilerError
from switchgnn.softswitch.native.engine import (
    NativeEngine,
    NativeLoop,
    NativeProgram,
    load_native,
    made_natively,
)
from switchgnn.softswitch.p4runtime.pipeline_config import PreparedProgram
from switchgnn.softswitch.p4runtime.server import P4RuntimeServer, P4RuntimeService, ServerTls

Result = TypeVar("Result")

_LOG = logging.getLogger("softswitch.loop")

# Frames read from one port before other ports and controllers are served.
_FRAMES_PER_TURN = 32
# Recirculations before controllers are served again.
_AGAIN_PER_TURN = 256


class EventLoop:
    """Waits for frames and forwards them, if there is a program."""

    def __init__(
        self, ports: Mapping[int, Port], counts: ForwardingCounts, forwarder: Forwarder | None
    ) -> None:
        self._forwarder = forwarder
        self._counts = counts
        self._ports = {port.fileno(): (number, port) for number, port in ports.items()}
        # A thread that waits for a turn holds the other lock, so that turns alternate.
        self._waiting, self._turn = threading.Lock(), threading.Lock()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="softswitch-loop", daemon=True)
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll = select.epoll()
        for descriptor in (self._wake, *self._ports):
            self._epoll.register(descriptor, select.EPOLLIN)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread and close the descriptors."""
        self._stopping = True
        os.eventfd_write(self._wake, 1)
        self._thread.join()
        self._epoll.close()
        os.close(self._wake)

    def call(self, function: Callable[[], Result]) -> Result:
        """Run a function between two packets and return its result or raise its error."""
        with self._alone():
            result = function()
        # It may have left recirculated packets.
        os.eventfd_write(self._wake, 1)
        return result

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._waiting:
            self._turn.acquire()
        try:
            yield
        finally:
            self._turn.release()

    def _run(self) -> None:
        while not self._stopping:
            busy = self._forwarder is not None and self._forwarder.busy
            ready = self._epoll.poll(0.0 if busy else -1.0)
            with self._alone():
                for descriptor, _ in ready:
                    if descriptor == self._wake:
                        os.eventfd_read(self._wake)
                    else:
                        self._read_port(*self._ports[descriptor])
                if self._forwarder is not None:
                    self._guarded(self._forwarder.run_again, _AGAIN_PER_TURN)

    def _read_port(self, number: int, port: Port) -> None:
        forwarder = self._forwarder
        for _ in range(_FRAMES_PER_TURN):
            # Recirculated packets go first, within a limit: they may never end.
            if forwarder is not None:
                self._guarded(forwarder.run_again, _AGAIN_PER_TURN)
            try:
                frame = port.receive(port.frame_bytes)
            except OSError:
                # Nothing to read, or the interface or the peer is down.
                return
            if forwarder is None:
                self._counts.without_program += 1
                continue
            self._guarded(forwarder.receive, number, frame)
            if forwarder.busy:
                return

    def _guarded(self, function: Callable[..., None], *arguments: object) -> None:
        try:
            function(*arguments)
        except Exception:
            # A packet on which the program fails is lost; the switch continues with the next.
            self._counts.failures += 1
            _LOG.exception("A packet was lost to an error in the program.")


class SoftSwitch:
    """A switch that runs programs compiled by p4c for BMv2's simple_switch.

    Args:
        ports: attachments by port number (0 to 510); frames to other ports are dropped after
            egress.
        device_id: the device id of P4Runtime requests.
        grpc: P4Runtime address, ``unix:PATH`` (owner only) or HOST:PORT (0: any free port); None
            for no server.
        cpu_port: the port of packet-outs and packet-ins, or None.
        queues: limits of the egress queues.
        tls: TLS files, or None for plain connections.
        backend: the code generated for programs.

    Raises:
        NoCompilerError: the native back end is requested, or ports have limits, and there is no
            compiler.
    """

    def __init__(
        self,
        ports: Mapping[int, PortSpec] | None = None,
        *,
        device_id: int = 0,
        grpc: str | None = "127.0.0.1:0",
        cpu_port: int | None = None,
        queues: QueueSettings | None = None,
        tls: ServerTls | None = None,
        backend: Backend = Backend.AUTO,
    ) -> None:
        self._queue_settings = queues or QueueSettings()
        if backend is Backend.NATIVE and find_compiler() is None:
            raise NoCompilerError(
                "The native back end needs a C++ compiler on the PATH: "
                "apt-get install g++, or use --backend python."
            )
        self.device_id = device_id
        self.backend = backend
        if backend is Backend.PYTHON or find_compiler() is None:
            self._refuse_limits()
        self._port_specs = dict(ports or {})
        self._counts = ForwardingCounts()
        self._grpc = grpc
        self._cpu_port = cpu_port
        self._tls = tls
        self._senders: dict[int, Sender] = {}
        self._ports: dict[int, Port] = {}
        self._loop: EventLoop | NativeLoop | None = None
        self._engine: NativeEngine | Forwarder | None = None
        # Held while the loop is in use, so that it is not replaced.
        self._swapping = threading.RLock()
        self._packet_in: Sender | None = None
        self._server: P4RuntimeServer | None = None

    @property
    def counts(self) -> ForwardingCounts:
        """Packet counts since the switch was created."""
        return self._counts if self._engine is None else self._counts + self._engine.counts

    def queued(self, port: int) -> int:
        """Return the number of packets queued for a port."""
        return 0 if self._engine is None else self._engine.length(port)

    @property
    def grpc_address(self) -> str:
        """The server's address, ``unix:PATH`` or HOST:PORT."""
        if self._server is None:
            raise SoftSwitchError(
                "The switch does not serve P4Runtime: start it with a gRPC address."
            )
        return self._server.address

    def start(self, prepare: Callable[[P4RuntimeService], None] | None = None) -> None:
        """Attach the ports and start forwarding and serving, unless already started.

        `prepare` is called after the ports are attached, before any packet or request is served.
        """
        if self._loop is not None:
            return
        self._ports = open_ports(self._port_specs.items())
        self._senders.update({number: port.send for number, port in self._ports.items()})
        try:
            if self._grpc is not None:
                self._serve(self._grpc, prepare)
        except SoftSwitchError:
            self.stop()
            raise
        with self._swapping:
            self._loop = self._new_loop()
            self._loop.start()
        if self._server is not None:
            self._server.start()

    def _new_loop(self) -> EventLoop | NativeLoop:
        engine = self._engine
        if isinstance(engine, NativeEngine):
            return NativeLoop(engine, self._ports, self._cpu_port, self._packet_in)
        return EventLoop(self._ports, self._counts if engine is None else engine.counts, engine)

    def _serve(self, address: str, prepare: Callable[[P4RuntimeService], None] | None) -> None:
        service = P4RuntimeService(self, self.device_id, self._cpu_port)
        if self._cpu_port is not None:
            self._senders[self._cpu_port] = self._packet_in = service.packet_in
        self._server = P4RuntimeServer(service, address, self._tls)
        if prepare is not None:
            prepare(service)

    def stop(self) -> bool:
        """Stop serving and forwarding and detach the ports; may be repeated.

        Returns whether all P4Runtime calls have ended; one that compiles a program takes its time.
        """
        ended = self._server is None or self._server.stop()
        self._server = None
        with self._swapping:
            if self._loop is not None:
                self._loop.stop()
                self._loop = None
            for port in self._ports.values():
                port.close()
            self._ports.clear()
            self._senders.clear()
            if self._engine is not None:
                self._engine.clear()
        return ended

    def __enter__(self) -> "SoftSwitch":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def call(self, function: Callable[[], Result]) -> Result:
        """Run a function between two packets and return its result."""
        with self._swapping:
            return function() if self._loop is None else self._loop.call(function)

    def load(self, config: bytes) -> ProgramState:
        """Install the program in a BMv2 JSON document, with fresh state."""
        prepared = self.prepare(GivenProgram(config))
        prepared.install()
        return prepared.state

    def prepare(self, given: GivenProgram) -> PreparedProgram:
        """Make the code and the fresh state of a program.

        SoftSwitchError: the back end cannot run the program.
        """
        native = made_natively(given, self.backend, load_native)
        engine: NativeEngine | Forwarder
        if isinstance(native, NativeProgram):
            engine = NativeEngine(native, self._queue_settings)
        else:
            self._refuse_limits()
            depth = self._queue_settings.depth
            engine = Forwarder(given.lowered, depth=depth, senders=self._senders)
        return PreparedProgram(engine.state, partial(self._install, engine))

    def _install(self, engine: NativeEngine | Forwarder) -> None:
        with self._swapping:
            running = self._loop
            if running is not None:
                running.stop()
            self._counts, self._engine = self.counts, engine
            if running is not None:
                self._loop = self._new_loop()
                self._loop.start()

    def _refuse_limits(self) -> None:
        if self._queue_settings.limited:
            raise NoCompilerError(
                "Rates and bandwidths of ports need the native back end: apt-get install g++, and "
                "do not use --backend python."
            )

    def inject(self, port: int, frame: bytes) -> None:
        """Process a frame as if it had arrived at a port, attached or not.

        PortError: no port has that number.
        """
        if not 0 <= port < DROP_PORT:
            raise PortError(f"There is no port {port}: ports are 0 to {DROP_PORT - 1}.")
        with self._swapping:
            if self._engine is None:
                self._counts.without_program += 1
            else:
                self.call(partial(self._engine.receive, port, frame))
