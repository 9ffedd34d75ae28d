# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The P4Runtime service."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NoReturn

import grpc
from finsy.proto import p4i, p4r, rpc_code, rpc_status
from google.protobuf.any_pb2 import Any as AnyMessage

from switchgnn.softswitch.errors import RequestError
from switchgnn.softswitch.loader import GivenProgram
from switchgnn.softswitch.p4runtime.arbitration import READS, Arbiter, StreamClient, place
from switchgnn.softswitch.p4runtime.entities import apply_updates, read_entities, read_request
from switchgnn.softswitch.p4runtime.pipeline_config import Device, Give, PipelineConfigs
from switchgnn.softswitch.schema import decode, decoded, denied, encode, invalid, unimplemented


def _header_bytes(header: p4i.ControllerPacketMetadata) -> int:
    return sum(field.bitwidth for field in header.metadata) // 8


def packet_out_frame(header: p4i.ControllerPacketMetadata, packet: p4r.PacketOut) -> bytes:
    """Return the packet-out header followed by the payload; as in PI, missing metadata is zero."""
    given = {metadata.metadata_id: metadata.value for metadata in packet.metadata}
    value = 0
    for field in header.metadata:
        text = given.pop(field.id, b"\0")
        value = value << field.bitwidth | decode(text, field.bitwidth, f"Metadata {field.id}")
    if given:
        raise invalid(f"The packet-out has unknown metadata with id {min(given)}.")
    return value.to_bytes(_header_bytes(header), "big") + packet.payload


def packet_in_message(
    header: p4i.ControllerPacketMetadata, frame: bytes
) -> p4r.StreamMessageResponse:
    """Return the message for a frame that left by the CPU port."""
    size = _header_bytes(header)
    packet = p4r.PacketIn(payload=frame[size:])
    value, position = int.from_bytes(frame[:size], "big"), 8 * size
    for field in header.metadata:
        position -= field.bitwidth
        number = value >> position & ((1 << field.bitwidth) - 1)
        packet.metadata.add(metadata_id=field.id, value=encode(number))
    return p4r.StreamMessageResponse(packet=packet)


API_VERSION = "1.4.1"

_STATUS = {status.value[0]: status for status in grpc.StatusCode}


@contextmanager
def aborting(context: grpc.ServicerContext) -> Iterator[None]:
    """End a call with the RequestError that is raised inside the block."""
    try:
        yield
    except RequestError as error:
        context.abort(_STATUS[error.code], str(error))


class P4RuntimeService:
    """Serves one device; methods take serialized requests, and run in any thread.

    ``changed`` is set after every change.
    """

    def __init__(
        self, device: Device, device_id: int, cpu_port: int | None, give: Give = GivenProgram
    ) -> None:
        self._device = device
        self._cpu_port = cpu_port
        self.arbiter = Arbiter(device_id)
        self.configs = PipelineConfigs(device, give)
        self.changed = threading.Event()
        self._reads = threading.Semaphore(READS)

    def Capabilities(  # noqa: N802
        self, data: bytes, context: grpc.ServicerContext
    ) -> p4r.CapabilitiesResponse:
        """Return the version of the API."""
        with aborting(context):
            decoded(p4r.CapabilitiesRequest, data)
        return p4r.CapabilitiesResponse(p4runtime_api_version=API_VERSION)

    def SetForwardingPipelineConfig(  # noqa: N802
        self, data: bytes, context: grpc.ServicerContext
    ) -> p4r.SetForwardingPipelineConfigResponse:
        """Load a program."""
        with aborting(context):
            request = decoded(p4r.SetForwardingPipelineConfigRequest, data)
            self.arbiter.check_primary(request.device_id, request.election_id)
            self.configs.set(request)
        self.changed.set()
        return p4r.SetForwardingPipelineConfigResponse()

    def GetForwardingPipelineConfig(  # noqa: N802
        self, data: bytes, context: grpc.ServicerContext
    ) -> p4r.GetForwardingPipelineConfigResponse:
        """Return the loaded program."""
        with aborting(context):
            request = decoded(p4r.GetForwardingPipelineConfigRequest, data)
            self.arbiter.check_device(request.device_id)
            config = self.configs.get(request.response_type)
        return p4r.GetForwardingPipelineConfigResponse(config=config)

    def Write(self, data: bytes, context: grpc.ServicerContext) -> p4r.WriteResponse:  # noqa: N802
        """Apply updates; a failure reports one error per update."""
        with aborting(context):
            pipeline = self.configs.current
            request = read_request(pipeline, data)
            message = request.message
            self.arbiter.check_primary(message.device_id, message.election_id)
            if message.atomicity != p4r.WriteRequest.CONTINUE_ON_ERROR:
                raise unimplemented("Only CONTINUE_ON_ERROR is supported.")
            errors = apply_updates(self._device, pipeline or self.configs.installed(), request)
        self.changed.set()
        if errors is not None:
            _abort_with_details(context, errors)
        return p4r.WriteResponse()

    def Read(self, data: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:  # noqa: N802
        """Stream serialized ReadResponses."""
        with aborting(context):
            request = decoded(p4r.ReadRequest, data)
            self.arbiter.check_device(request.device_id)
            with place(self._reads):
                yield from read_entities(self._device, self.configs.installed(), request.entities)

    def StreamChannel(  # noqa: N802
        self, messages: Iterable[bytes], context: grpc.ServicerContext
    ) -> Iterator[p4r.StreamMessageResponse]:
        """Exchange arbitration messages and packets with a controller."""
        client = StreamClient(context.peer())
        if not context.add_callback(lambda: client.outbox.put(None)):
            return
        with aborting(context):
            self.arbiter.open(client)
            reading = (client, messages)
            threading.Thread(target=self._read_stream, args=reading, daemon=True).start()
            try:
                while (message := client.outbox.get()) is not None:
                    if isinstance(message, RequestError):
                        raise message
                    yield message
            finally:
                self.arbiter.remove(client)

    def _read_stream(self, client: StreamClient, messages: Iterable[bytes]) -> None:
        try:
            for data in messages:
                self._handle_stream(client, decoded(p4r.StreamMessageRequest, data))
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
            answer = p4r.StreamError(canonical_code=error.code, message=str(error))
            if kind == "packet":
                answer.packet_out.packet_out.CopyFrom(request.packet)
            client.outbox.put(p4r.StreamMessageResponse(error=answer))

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
