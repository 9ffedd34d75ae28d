"""P4Runtime without sockets: the calls of a client reach the service of a virtual switch."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from queue import Empty
from typing import Any, NoReturn

import grpc
from finsy.proto import p4r, rpc_code

from switchgnn.controller.base.errors import ControllerError, SwitchUnreachableError
from switchgnn.controller.p4runtime.connection import election_message
from switchgnn.controller.p4runtime.rpc_errors import not_primary
from switchgnn.softswitch.base.errors import RequestError
from switchgnn.softswitch.p4runtime.server import P4RuntimeService, StreamClient
from tests.simulation.parts.switch import VirtualSwitch
from tests.simulation.timing import SECOND, Scheduler, Task

# Nanoseconds in one direction, and between two polls of a cut line.
_WAY = 200_000
_LOOK = 50_000_000


class RpcError(grpc.RpcError):  # type: ignore[misc]  # gRPC has no types
    """A call that failed, as gRPC raises it."""

    def __init__(self, code: grpc.StatusCode, details: str, trailing: Any = ()) -> None:
        super().__init__(details)
        self._code, self._details, self._trailing = code, details, trailing

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details

    def trailing_metadata(self) -> Any:
        return self._trailing


class _Context:
    """The context in which the service aborts a call."""

    def __init__(self) -> None:
        self._trailing: Any = ()

    def set_trailing_metadata(self, trailing: Any) -> None:
        self._trailing = trailing

    def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        raise RpcError(code, details, self._trailing)


class ControlLine:
    """The line from the controller to one switch; without a controller, calls take no time."""

    def __init__(self, switch: VirtualSwitch, scheduler: Scheduler) -> None:
        self.switch = switch
        self._scheduler = scheduler
        self._cut_until = 0
        self._task: Task | None = None

    def cut(self, seconds: float) -> None:
        """Let no message pass for some seconds."""
        self._cut_until = max(self._cut_until, self._scheduler.now + int(seconds * SECOND))

    def hold(self, task: Task) -> None:
        """Let this controller wait for its calls from now on."""
        self._task = task

    def pass_word(self, until: int) -> bool:
        """Wait until a message has passed, at most until a time; return whether it has."""
        task = self._task
        if task is None:
            return True
        while self._cut_until > self._scheduler.now:
            if self._scheduler.now >= until:
                return False
            task.sleep(min(_LOOK, self._cut_until - self._scheduler.now))
        task.sleep(_WAY)
        return True

    def reach(self, seconds: float) -> P4RuntimeService:
        end = self._scheduler.now + int(seconds * SECOND)
        while self.pass_word(end):
            if self.switch.service is not None:
                return self.switch.service
            if self._scheduler.now >= end or self._task is None:
                raise RpcError(grpc.StatusCode.DEADLINE_EXCEEDED, "no switch answers")
            self._task.sleep(_LOOK)
        raise RpcError(grpc.StatusCode.DEADLINE_EXCEEDED, "the line is cut")


class VirtualConnection:
    """A connection to the service that a switch has now; it breaks when the switch ends."""

    def __init__(self, line: ControlLine, scheduler: Scheduler) -> None:
        self._line = line
        self._scheduler = scheduler
        self._service: P4RuntimeService | None = None

    @property
    def stub(self) -> "VirtualConnection":
        """The calls of P4Runtime: this connection has them as attributes."""
        return self

    @property
    def broken(self) -> bool:
        return self._service is not None and self._service is not self._line.switch.service

    def Capabilities(  # noqa: N802
        self, request: p4r.CapabilitiesRequest, timeout: float, wait_for_ready: bool = False
    ) -> p4r.CapabilitiesResponse:
        """Ask for the version; the first call connects, waiting for the switch if so asked."""
        if self._service is None:
            self._service = self._line.reach(timeout if wait_for_ready else 0.0)
        return self._call("Capabilities", request, timeout)

    def SetForwardingPipelineConfig(self, request: Any, timeout: float) -> Any:  # noqa: N802
        return self._call("SetForwardingPipelineConfig", request, timeout)

    def GetForwardingPipelineConfig(self, request: Any, timeout: float) -> Any:  # noqa: N802
        return self._call("GetForwardingPipelineConfig", request, timeout)

    def write(self, request: bytes, timeout: float) -> "Future[Any]":
        done: Future[Any] = Future()
        try:
            done.set_result(self._call("Write", request, timeout))
        except RpcError as error:
            done.set_exception(error)
        return done

    def read(self, request: bytes, timeout: float) -> Iterator[bytes]:
        return iter(self._call("Read", request, timeout, list))

    def stream(self, device_id: int, election_id: int) -> "VirtualStream":
        """Open the stream that makes a controller the primary."""
        service = self._reached()
        if not self._line.pass_word(self._scheduler.now):
            raise SwitchUnreachableError(f"Switch {self._line.switch.name} cannot be reached.")
        return VirtualStream(self, service, device_id, election_id)

    def close(self) -> None:
        """Do nothing: there is nothing to disconnect."""

    def _reached(self) -> P4RuntimeService:
        if self._service is None or self.broken:
            raise RpcError(grpc.StatusCode.UNAVAILABLE, "the connection is broken")
        return self._service

    def _call(
        self,
        name: str,
        request: Any,
        timeout: float,
        take: Callable[[Any], Any] = lambda answer: answer,
    ) -> Any:
        end = self._scheduler.now + int(timeout * SECOND)
        if not self._line.pass_word(end):
            raise RpcError(grpc.StatusCode.DEADLINE_EXCEEDED, "no answer came")
        data = request if isinstance(request, bytes) else request.SerializeToString()
        answer = take(getattr(self._reached(), name)(data, _Context()))
        if not self._line.pass_word(end):
            raise RpcError(grpc.StatusCode.DEADLINE_EXCEEDED, "no answer came")
        self._reached()
        return answer


class VirtualStream:
    """The stream of a controller, without threads."""

    def __init__(
        self,
        connection: VirtualConnection,
        service: P4RuntimeService,
        device_id: int,
        election_id: int,
    ) -> None:
        self._connection = connection
        self._service = service
        self._client = StreamClient()
        self._closed = False
        self._error: ControllerError | None = None
        update = p4r.MasterArbitrationUpdate(
            device_id=device_id, election_id=election_message(election_id)
        )
        try:
            service.arbiter.open(self._client)
            service.arbiter.update(self._client, update)
        except RequestError as error:
            self._error = not_primary("virtual", str(error))

    def wait_primary(self, deadline: float) -> None:
        """Read the switch's answer, which has already come."""
        if self._error is not None:
            raise self._error
        try:
            message = self._client.outbox.get_nowait()
        except Empty:
            message = None
        if not isinstance(message, p4r.StreamMessageResponse):
            raise SwitchUnreachableError(f"No answer within {deadline:g} s.")
        status = message.arbitration.status
        if status.code != rpc_code.OK:
            raise not_primary("virtual", status.message)

    @property
    def alive(self) -> bool:
        return not self._closed and not self._connection.broken

    def close(self) -> None:
        self._closed = True
        self._service.arbiter.remove(self._client)
