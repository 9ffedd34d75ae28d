# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The software switch: ports, packet path and P4Runtime server of one device."""

import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TypeVar

from switchgnn.softswitch.codegen.compiler import CompiledProgram, compile_program
from switchgnn.softswitch.errors import SoftSwitchError
from switchgnn.softswitch.event_loop import EventLoop
from switchgnn.softswitch.forwarding import Forwarder, ForwardingCounts, Sender
from switchgnn.softswitch.loader import load_program
from switchgnn.softswitch.p4runtime.server import P4RuntimeServer, TlsFiles
from switchgnn.softswitch.p4runtime.service import P4RuntimeService
from switchgnn.softswitch.ports import Port, PortSpec, open_ports
from switchgnn.softswitch.replication import ReplicationEngine
from switchgnn.softswitch.state import ProgramState, bind
from switchgnn.softswitch.traffic_manager import QueueSettings, TrafficManager

Result = TypeVar("Result")


class SoftSwitch:
    """A switch that runs programs that p4c compiled for BMv2's simple_switch.

    Args:
        ports: what each port number (0 to 510) is attached to. Other ports exist too: what
            is sent to them is dropped after egress.
        device_id: the device id that P4Runtime clients must use.
        grpc: where it serves P4Runtime, ``unix:PATH`` for its owner alone, or HOST:PORT (port 0:
            any free one); None for no server.
        cpu_port: the port at which packet-outs arrive and packet-ins leave, or None.
        queues: the depth and the speed of the egress queues.
        tls: the files for TLS, or None for plain connections.
    """

    def __init__(
        self,
        ports: Mapping[int, PortSpec] | None = None,
        *,
        device_id: int = 0,
        grpc: str | None = "127.0.0.1:0",
        cpu_port: int | None = None,
        queues: QueueSettings | None = None,
        tls: TlsFiles | None = None,
    ) -> None:
        self.device_id = device_id
        self.counts = ForwardingCounts()
        self.replication = ReplicationEngine()
        self.compiled: CompiledProgram | None = None
        self.state: ProgramState | None = None
        self._port_specs = dict(ports or {})
        self.queues = TrafficManager(queues or QueueSettings(), self._port_specs)
        self._grpc = grpc
        self._cpu_port = cpu_port
        self._tls = tls
        self._senders: dict[int, Sender] = {}
        self._ports: dict[int, Port] = {}
        self._loop: EventLoop | None = None
        self._server: P4RuntimeServer | None = None
        self._ready = threading.Event()

    @property
    def grpc_address(self) -> str:
        """``unix:PATH`` or HOST:PORT that the server listens on.

        Raises:
            SoftSwitchError: the switch is not started or has no server.
        """
        if self._server is None:
            raise SoftSwitchError("The switch serves no P4Runtime: start it with a gRPC address.")
        return self._server.address

    def start(self) -> None:
        """Attach the ports and start forwarding and serving; do nothing when already started.

        Raises:
            PortError: a port cannot be attached.
            GrpcAddressError: the gRPC address cannot be used.
        """
        if self._loop is not None:
            return
        self._ports = open_ports(self._port_specs.items())
        try:
            service = self._attach()
            if service is not None and self._grpc is not None:
                self._server = P4RuntimeServer(service, self._grpc, self._tls)
        except SoftSwitchError:
            self._detach()
            raise
        self._loop = EventLoop(self._ports, self.queues, self.counts)
        if self.compiled is not None and self.state is not None:
            self._loop.forwarder = self._forwarder(self.compiled, self.state)
        self._loop.start()
        if self._server is not None:
            self._server.start()
        self._ready.set()

    def _attach(self) -> P4RuntimeService | None:
        self._senders.update({number: port.send for number, port in self._ports.items()})
        if self._grpc is None:
            return None
        service = P4RuntimeService(self, self.device_id, self._cpu_port)
        if self._cpu_port is not None:
            self._senders[self._cpu_port] = service.packet_in
        return service

    def _detach(self) -> None:
        for port in self._ports.values():
            port.close()
        self._ports.clear()
        self._senders.clear()

    def wait_until_ready(self, timeout: float = 10.0) -> None:
        """Wait until the switch forwards and serves, for at most ``timeout`` seconds.

        Raises:
            SoftSwitchError: it was not started in time.
        """
        if not self._ready.wait(timeout):
            raise SoftSwitchError(f"The switch was not ready after {timeout} s: call start().")

    def stop(self) -> None:
        """Stop serving and forwarding, and detach the ports; do nothing when already stopped."""
        self._ready.clear()
        if self._server is not None:
            self._server.stop()
            self._server = None
        if self._loop is not None:
            self._loop.stop()
            self._loop = None
        self._detach()
        self.queues.clear()

    def __enter__(self) -> "SoftSwitch":
        self.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.stop()

    def call(self, function: Callable[[], Result]) -> Result:
        """Run a function between two packets and return its result."""
        return function() if self._loop is None else self._loop.call(function)

    def load(self, config: bytes) -> ProgramState:
        """Install the program in a BMv2 JSON document, with fresh state.

        Raises:
            MalformedProgramError: the document cannot be read.
            UnsupportedProgramError: the program uses a feature that the switch refuses.
        """
        return self.install(compile_program(load_program(config)))

    def install(self, compiled: CompiledProgram) -> ProgramState:
        """Replace the running program by a compiled one, with fresh state."""
        state = ProgramState(compiled.program)
        forwarder = self._forwarder(compiled, state)

        def swap() -> None:
            self.replication.reset()
            self.queues.clear()
            self.compiled, self.state = compiled, state
            if self._loop is not None:
                self._loop.forwarder = forwarder

        self.call(swap)
        return state

    def _forwarder(self, compiled: CompiledProgram, state: ProgramState) -> Forwarder:
        functions = bind(compiled, state)
        return Forwarder(
            compiled,
            functions,
            replication=self.replication,
            queues=self.queues,
            senders=self._senders,
            counts=self.counts,
        )

    def inject(self, port: int, frame: bytes) -> None:
        """Process a frame as if it had arrived at a port, attached or not."""

        def receive() -> None:
            forwarder = None if self._loop is None else self._loop.forwarder
            if forwarder is None:
                self.counts.without_program += 1
            else:
                forwarder.receive(port, frame)

        self.call(receive)
