# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The P4Runtime service."""

import threading
from collections.abc import Iterable, Iterator
from typing import NoReturn

import grpc
from finsy.proto import p4r, rpc_code, rpc_status
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError

from switchgnn.softswitch.errors import RequestError
from switchgnn.softswitch.given_program import GivenProgram
from switchgnn.softswitch.p4runtime.arbitration import Arbiter, StreamClient
from switchgnn.softswitch.p4runtime.call_limits import ReadLimit, StreamLimits
from switchgnn.softswitch.p4runtime.device import Device
from switchgnn.softswitch.p4runtime.packet_io import packet_in_message, packet_out_frame
from switchgnn.softswitch.p4runtime.pipeline_config import Give, PipelineConfigs
from switchgnn.softswitch.p4runtime.reading import read_entities
from switchgnn.softswitch.p4runtime.values import denied, unimplemented
from switchgnn.softswitch.p4runtime.writing import apply_updates, read_request

API_VERSION = "1.4.1"

_STATUS = {status.value[0]: status for status in grpc.StatusCode}


def _abort(context: grpc.ServicerContext, error: RequestError) -> NoReturn:
    context.abort(_STATUS[error.code], str(error))
    raise AssertionError  # abort raises


class P4RuntimeService:
    """Serves one device; every method may run in a thread of its own.

    Args:
        device: the switch.
        device_id: the device id that requests must name.
        cpu_port: the port at which packet-outs enter the program, or None to refuse them.
        give: makes a program of a device configuration.

    Attributes:
        changed: set whenever a controller has changed something.
    """

    def __init__(
        self,
        device: Device,
        device_id: int,
        cpu_port: int | None,
        give: Give = GivenProgram,
    ) -> None:
        self._device = device
        self._cpu_port = cpu_port
        self.arbiter = Arbiter(device_id)
        self.configs = PipelineConfigs(device, give)
        self.changed = threading.Event()
        self._streams = StreamLimits()
        self._reads = ReadLimit()

    def Capabilities(  # noqa: N802
        self, _request: p4r.CapabilitiesRequest, _context: grpc.ServicerContext
    ) -> p4r.CapabilitiesResponse:
        """Return the version of the API."""
        return p4r.CapabilitiesResponse(p4runtime_api_version=API_VERSION)

    def SetForwardingPipelineConfig(  # noqa: N802
        self, request: p4r.SetForwardingPipelineConfigRequest, context: grpc.ServicerContext
    ) -> p4r.SetForwardingPipelineConfigResponse:
        """Load a program."""
        try:
            self.arbiter.check_primary(request.device_id, request.election_id)
            self.configs.set(request)
        except RequestError as error:
            _abort(context, error)
        self.changed.set()
        return p4r.SetForwardingPipelineConfigResponse()

    def GetForwardingPipelineConfig(  # noqa: N802
        self, request: p4r.GetForwardingPipelineConfigRequest, context: grpc.ServicerContext
    ) -> p4r.GetForwardingPipelineConfigResponse:
        """Return the loaded program."""
        try:
            self.arbiter.check_device(request.device_id)
            config = self.configs.get(request.response_type)
        except RequestError as error:
            _abort(context, error)
        return p4r.GetForwardingPipelineConfigResponse(config=config)

    def Write(self, data: bytes, context: grpc.ServicerContext) -> p4r.WriteResponse:  # noqa: N802
        """Apply the updates of a serialized WriteRequest; a failure has one error per update."""
        pipeline = self.configs.current
        try:
            request = read_request(pipeline, data)
        except DecodeError:
            # As gRPC answers where it reads the messages itself.
            context.abort(grpc.StatusCode.INTERNAL, "Exception deserializing request!")
        message = request.message
        try:
            self.arbiter.check_primary(message.device_id, message.election_id)
            if message.atomicity != p4r.WriteRequest.CONTINUE_ON_ERROR:
                raise unimplemented("Only CONTINUE_ON_ERROR is supported.")
            pipeline = pipeline or self.configs.installed()
        except RequestError as error:
            _abort(context, error)
        errors = apply_updates(self._device, pipeline, request)
        self.changed.set()
        if errors is not None:
            _abort_with_details(context, errors)
        return p4r.WriteResponse()

    def Read(  # noqa: N802
        self, request: p4r.ReadRequest, context: grpc.ServicerContext
    ) -> Iterator[bytes]:
        """Stream what is asked for, as serialized ReadResponses."""
        try:
            self.arbiter.check_device(request.device_id)
            with self._reads.place():
                yield from read_entities(self._device, self.configs.installed(), request.entities)
        except RequestError as error:
            _abort(context, error)

    def StreamChannel(  # noqa: N802
        self, request_iterator: Iterable[p4r.StreamMessageRequest], context: grpc.ServicerContext
    ) -> Iterator[p4r.StreamMessageResponse]:
        """Exchange arbitration messages and packets with a controller."""
        client = StreamClient()
        if not context.add_callback(lambda: client.outbox.put(None)):
            return
        try:
            with self._streams.place_for(client, context.peer()):
                yield from self._serve_stream(client, request_iterator)
        except RequestError as error:
            _abort(context, error)

    def _serve_stream(
        self, client: StreamClient, requests: Iterable[p4r.StreamMessageRequest]
    ) -> Iterator[p4r.StreamMessageResponse]:
        threading.Thread(target=self._read_stream, args=(client, requests), daemon=True).start()
        try:
            while (message := client.outbox.get()) is not None:
                if isinstance(message, RequestError):
                    raise message
                yield message
        finally:
            self.arbiter.remove(client)

    def _read_stream(
        self, client: StreamClient, requests: Iterable[p4r.StreamMessageRequest]
    ) -> None:
        try:
            for request in requests:
                self._handle_stream(client, request)
        except RequestError as error:
            client.outbox.put(error)
        except grpc.RpcError:
            client.outbox.put(None)
        else:
            client.outbox.put(None)

    def _handle_stream(self, client: StreamClient, request: p4r.StreamMessageRequest) -> None:
        client.has_asked = True
        kind = request.WhichOneof("update")
        if kind == "arbitration":
            self.arbiter.update(client, request.arbitration)
            return
        try:
            if kind != "packet":
                raise unimplemented(f"Stream messages of type {kind} are not supported.")
            self._packet_out(client, request.packet)
        except RequestError as error:
            client.outbox.put(_stream_error(error, request))

    def _packet_out(self, client: StreamClient, packet: p4r.PacketOut) -> None:
        if not self.arbiter.is_primary(client):
            raise denied("Only the primary controller may send packets.")
        if self._cpu_port is None:
            raise unimplemented("The switch was started without a CPU port.")
        header = self.configs.installed().schema.packet_out
        self._device.inject(self._cpu_port, packet_out_frame(header, packet))

    def packet_in(self, frame: bytes) -> bool:
        """Send a frame from the CPU port to the primary and return whether there is one."""
        header = self.configs.installed().schema.packet_in
        return self.arbiter.send_to_primary(packet_in_message(header, frame))


def _stream_error(
    error: RequestError, request: p4r.StreamMessageRequest
) -> p4r.StreamMessageResponse:
    answer = p4r.StreamError(canonical_code=error.code, message=str(error))
    if request.WhichOneof("update") == "packet":
        answer.packet_out.packet_out.CopyFrom(request.packet)
    return p4r.StreamMessageResponse(error=answer)


def _abort_with_details(context: grpc.ServicerContext, errors: list[p4r.Error]) -> NoReturn:
    status = rpc_status.Status(
        code=rpc_code.UNKNOWN, message="Some updates failed: see the details of each."
    )
    for error in errors:
        detail = AnyMessage()
        detail.Pack(error)
        status.details.append(detail)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(grpc.StatusCode.UNKNOWN, status.message)
    raise AssertionError  # abort raises
