"""Serve P4Runtime on a Unix socket or a TCP address: primary controller, streams and calls."""

import os
import queue
import socket
import ssl
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

import grpc
from finsy.proto import U128, p4i, p4r, rpc_code, rpc_status
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message
from google.protobuf.wrappers_pb2 import StringValue

from switchgnn.base.files import read_regular
from switchgnn.base.udp_socket import why_not_bound
from switchgnn.softswitch.base import schema as p4
from switchgnn.softswitch.base.errors import GrpcAddressError, RequestError
from switchgnn.softswitch.lowering.loader import GivenProgram
from switchgnn.softswitch.p4runtime.entities import apply_updates, read_entities, read_request
from switchgnn.softswitch.p4runtime.pipeline_config import Device, Give, PipelineConfigs

STREAMS_PER_HOST = 8
STREAMS = 16
READS = 16
API_VERSION = "1.4.1"
_STATUS = {status.value[0]: status for status in grpc.StatusCode}
_SCHEME = "unix:"
_OWNER_ONLY = 0o177  # umask of mode 0600
_MOST_BYTES = 107  # of a path: https://man7.org/linux/man-pages/man7/unix.7.html
# A call holds a thread while it lasts; the service leaves half of them to short calls.
_THREADS = 64
_MESSAGE_BYTES = 256 << 20
_LAST_PORT = 65_535
_GRACE, _LONGEST_STOP = 0.5, 4.0  # seconds until calls are cancelled, and then abandoned


class StreamClient:
    """An open stream; the last item of ``outbox`` is None or the error that ends it.

    ``has_asked`` is set by the first message received.
    """

    def __init__(self, peer: str = "") -> None:
        # All users of the owner's Unix socket are one host.
        self.host = peer.rpartition(":")[0] if peer.startswith(("ipv4:", "ipv6:")) else peer
        self.outbox: queue.SimpleQueue[p4r.StreamMessageResponse | RequestError | None] = (
            queue.SimpleQueue()
        )
        self.election_id: int | None = None
        self.has_asked = False


class Arbiter:
    """The open streams, oldest first; the highest election id ever seen is the primary's.

    At a limit of streams the oldest without any request ends, so that idle streams cannot keep a
    controller out.
    """

    def __init__(self, device_id: int) -> None:
        self.device_id = device_id
        self._lock = threading.Lock()
        self._streams: list[StreamClient] = []
        self._highest = 0

    def open(self, client: StreamClient) -> None:
        """Count a stream as open."""
        with self._lock:
            own = [each for each in self._streams if each.host == client.host]
            if len(own) >= STREAMS_PER_HOST:
                self._end_an_idle_one(own, f"This client has {len(own)} streams open")
            elif len(self._streams) >= STREAMS:
                why = f"All {STREAMS} streams of this switch are open"
                self._end_an_idle_one(self._streams, why)
            self._streams.append(client)

    def _end_an_idle_one(self, streams: list[StreamClient], why: str) -> None:
        idle = next((each for each in streams if not each.has_asked), None)
        if idle is None:
            raise p4.exhausted(f"{why}: close one first.")
        idle.outbox.put(p4.exhausted(f"{why}, and this one was idle: send a request."))
        self._streams.remove(idle)

    def update(self, client: StreamClient, message: p4r.MasterArbitrationUpdate) -> None:
        """Register a client's election id and notify the affected clients."""
        self.check_device(message.device_id)
        if message.role.name or message.role.id:
            raise p4.unimplemented("Only the default role is supported: leave the role out.")
        election_id = U128.decode(message.election_id)
        with self._lock:
            others = [each for each in self._streams if each is not client]
            if election_id and any(each.election_id == election_id for each in others):
                raise p4.invalid(f"Election id {election_id} is used by another controller.")
            before = self._primary()
            client.election_id = election_id
            self._highest = max(self._highest, election_id)
            changed = self._primary() is not before
            self._notify(self._streams if changed else [client])

    def remove(self, client: StreamClient) -> None:
        """Forget a closed stream; notify the others if it was the primary."""
        with self._lock:
            was_primary = self._primary() is client
            self._streams = [each for each in self._streams if each is not client]
            if was_primary:
                self._notify(self._streams)

    def _primary(self) -> StreamClient | None:
        if not self._highest:
            return None
        return next((each for each in self._streams if each.election_id == self._highest), None)

    def _notify(self, clients: list[StreamClient]) -> None:
        primary = self._primary()
        for client in clients:
            if client.election_id is None:
                continue
            if primary is None:
                code, text = rpc_code.NOT_FOUND, "there is no primary"
            elif client is primary:
                code, text = rpc_code.OK, "is primary"
            else:
                code, text = rpc_code.ALREADY_EXISTS, "is backup"
            status = rpc_status.Status(code=code, message=text)
            update = p4r.MasterArbitrationUpdate(
                device_id=self.device_id, election_id=U128.encode(self._highest), status=status
            )
            client.outbox.put(p4r.StreamMessageResponse(arbitration=update))

    def check_device(self, device_id: int) -> None:
        """Refuse a request for another device."""
        if device_id != self.device_id:
            raise p4.not_found(f"This is device {self.device_id}, not {device_id}.")

    def check_primary(self, device_id: int, election_id: p4r.Uint128) -> None:
        """Refuse a request without the primary's election id."""
        self.check_device(device_id)
        with self._lock:
            primary = self._primary()
            if primary is None or U128.decode(election_id) != primary.election_id:
                raise p4.denied("Only the primary controller may change the switch.")

    def is_primary(self, client: StreamClient) -> bool:
        """Return whether a stream is the primary's."""
        with self._lock:
            return self._primary() is client

    def send_to_primary(self, message: p4r.StreamMessageResponse) -> bool:
        """Queue a message for the primary and return whether there is one."""
        with self._lock:
            primary = self._primary()
            if primary is None:
                return False
            primary.outbox.put(message)
            return True

    def close(self) -> None:
        """End every stream."""
        with self._lock:
            for client in self._streams:
                client.outbox.put(None)


@contextmanager
def place(reads: threading.Semaphore) -> Iterator[None]:
    """Take a place for concurrent reads, which slow clients may keep, inside the block."""
    if not reads.acquire(blocking=False):
        raise p4.exhausted(f"{READS} reads are in progress: fetch their responses first.")
    try:
        yield
    finally:
        reads.release()


def _header_bytes(header: p4i.ControllerPacketMetadata) -> int:
    return sum(field.bitwidth for field in header.metadata) // 8


def packet_out_frame(header: p4i.ControllerPacketMetadata, packet: p4r.PacketOut) -> bytes:
    """Return the packet-out header followed by the payload; as in PI, missing metadata is zero."""
    given = {metadata.metadata_id: metadata.value for metadata in packet.metadata}
    value = 0
    for field in header.metadata:
        text = given.pop(field.id, b"\0")
        value = value << field.bitwidth | p4.decode(text, field.bitwidth, f"Metadata {field.id}")
    if given:
        raise p4.invalid(f"The packet-out has unknown metadata with id {min(given)}.")
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
        packet.metadata.add(metadata_id=field.id, value=p4.encode(number))
    return p4r.StreamMessageResponse(packet=packet)


@contextmanager
def aborting(context: grpc.ServicerContext) -> Iterator[None]:
    """End a call with the RequestError that is raised inside the block."""
    try:
        yield
    except RequestError as error:
        context.abort(_STATUS[error.code], str(error))


class P4RuntimeService:
    """Serves one device; methods take serialized requests, and run in any thread."""

    def __init__(
        self, device: Device, device_id: int, cpu_port: int | None, give: Give = GivenProgram
    ) -> None:
        self._device = device
        self._cpu_port = cpu_port
        self.arbiter = Arbiter(device_id)
        self.configs = PipelineConfigs(device, give)
        self._reads = threading.Semaphore(READS)

    def Capabilities(  # noqa: N802
        self, data: bytes, context: grpc.ServicerContext
    ) -> p4r.CapabilitiesResponse:
        """Return the version of the API, and which switch this is."""
        with aborting(context):
            p4.decoded(p4r.CapabilitiesRequest, data)
        found = p4r.CapabilitiesResponse(p4runtime_api_version=API_VERSION)
        found.experimental.Pack(StringValue(value="SwitchGNN"))
        return found

    def SetForwardingPipelineConfig(  # noqa: N802
        self, data: bytes, context: grpc.ServicerContext
    ) -> p4r.SetForwardingPipelineConfigResponse:
        """Load a program."""
        with aborting(context):
            request = p4.decoded(p4r.SetForwardingPipelineConfigRequest, data)
            self.arbiter.check_primary(request.device_id, request.election_id)
            self.configs.set(request)
        return p4r.SetForwardingPipelineConfigResponse()

    def GetForwardingPipelineConfig(  # noqa: N802
        self, data: bytes, context: grpc.ServicerContext
    ) -> p4r.GetForwardingPipelineConfigResponse:
        """Return the loaded program."""
        with aborting(context):
            request = p4.decoded(p4r.GetForwardingPipelineConfigRequest, data)
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
                raise p4.unimplemented("Only CONTINUE_ON_ERROR is supported.")
            errors = apply_updates(self._device, pipeline or self.configs.installed(), request)
        if errors is not None:
            _abort_with_details(context, errors)
        return p4r.WriteResponse()

    def Read(self, data: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:  # noqa: N802
        """Stream serialized ReadResponses."""
        with aborting(context):
            request = p4.decoded(p4r.ReadRequest, data)
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
                self._handle_stream(client, p4.decoded(p4r.StreamMessageRequest, data))
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
                raise p4.unimplemented(f"Stream messages of type {kind} are not supported.")
            if not self.arbiter.is_primary(client):
                raise p4.denied("Only the primary controller may send packets.")
            if self._cpu_port is None:
                raise p4.unimplemented("The switch was started without a CPU port.")
            header = self.configs.installed().schema.packet_out
            self._device.inject(self._cpu_port, packet_out_frame(header, request.packet))
        except RequestError as error:
            answer = p4r.StreamError(canonical_code=error.code, message=str(error))
            if kind == "packet":
                answer.packet_out.packet_out.CopyFrom(request.packet)
            client.outbox.put(p4r.StreamMessageResponse(error=answer))

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


def socket_path(address: str) -> Path | None:
    """Return the path of a Unix address, or None for any other address."""
    if not address.startswith(_SCHEME):
        return None
    path = address.removeprefix(_SCHEME)
    if not path or len(os.fsencode(path)) > _MOST_BYTES:
        raise GrpcAddressError(
            f"The gRPC address {address} cannot be used: choose a socket path of 1 to "
            f"{_MOST_BYTES} bytes."
        )
    return Path(path)


@contextmanager
def _owner_only() -> Iterator[None]:
    before = os.umask(_OWNER_ONLY)
    try:
        yield
    finally:
        os.umask(before)


@dataclass(frozen=True)
class ServerTls:
    """PEM files: the server's certificate and key; with a client CA, clients need certificates."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


class P4RuntimeServer:
    """A gRPC server for one P4Runtime service."""

    def __init__(self, service: P4RuntimeService, address: str, tls: ServerTls | None) -> None:
        self._service = service
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="softswitch-grpc")
        self._server = grpc.server(
            self._threads,
            options=[
                # Without this a second server on the port would silently share it.
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", _MESSAGE_BYTES),
                ("grpc.max_send_message_length", _MESSAGE_BYTES),
            ],
        )
        self._server.add_generic_rpc_handlers((_handlers(service),))
        self.address = _bind(self._server, address, tls)

    def start(self) -> None:
        """Start serving."""
        self._server.start()

    def stop(self) -> bool:
        """End all streams and stop serving; return whether all calls ended in time."""
        self._service.arbiter.close()
        end = threading.Thread(target=self._end, daemon=True)
        end.start()
        end.join(_GRACE + _LONGEST_STOP)
        return not end.is_alive()

    def _end(self) -> None:
        self._server.stop(_GRACE).wait()
        # A cancelled call has ended for gRPC, though its thread may still work.
        self._threads.shutdown()


def _handlers(service: P4RuntimeService) -> grpc.GenericRpcHandler:
    """Return the service for gRPC, which gets bytes, and returns them where they may be many.

    gRPC's own deserializers never release a request that they refuse, and its stream never ends.
    """
    load, get = service.SetForwardingPipelineConfig, service.GetForwardingPipelineConfig
    handlers = {
        method.__name__: grpc.unary_unary_rpc_method_handler(method, None, _serialized)
        for method in (service.Capabilities, load, get, service.Write)
    }
    handlers["Read"] = grpc.unary_stream_rpc_method_handler(service.Read)
    handlers["StreamChannel"] = grpc.stream_stream_rpc_method_handler(
        service.StreamChannel, None, _serialized
    )
    return grpc.method_handlers_generic_handler("p4.v1.P4Runtime", handlers)


def _serialized(message: Message) -> bytes:
    return message.SerializeToString()


def _bind(server: grpc.Server, address: str, tls: ServerTls | None) -> str:
    path, fix = socket_path(address), "free it or choose another"
    if path is None:
        _check_free(address)
    else:
        with socket.socket(socket.AF_UNIX) as sock:
            if sock.connect_ex(os.fspath(path)) == 0:
                raise GrpcAddressError(f"The gRPC address {address} cannot be used: {fix}.")
    # gRPC expects a URI with a quoted path.
    target = address if path is None else f"unix:{quote(os.fspath(path))}"
    try:
        with _owner_only() if path is not None else nullcontext():
            if tls is None:
                port = server.add_insecure_port(target)
            else:
                port = server.add_secure_port(target, _credentials(tls))
    except (RuntimeError, ValueError) as error:
        raise GrpcAddressError(
            f"The gRPC address {address} cannot be used: {fix} ({error})."
        ) from None
    if port == 0:
        raise GrpcAddressError(f"The gRPC address {address} cannot be used: {fix}.")
    return address if path is not None else f"{address.rpartition(':')[0]}:{port}"


def _check_free(address: str) -> None:
    """Bind to an address briefly, as gRPC logs more than one line about one in use."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > _LAST_PORT:
        raise GrpcAddressError(
            f"Invalid gRPC address {address}: write unix:PATH or HOST:PORT, with a port from 0 "
            f"(any free one) to {_LAST_PORT}."
        )
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        for family, kind, protocol, _, place in found[:1]:
            with socket.socket(family, kind, protocol) as sock:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind(place)
    except (OSError, UnicodeError) as error:
        why = why_not_bound(error, host, "choose another, such as 127.0.0.1:9559 or unix:PATH")
        raise GrpcAddressError(f"The gRPC address {address} cannot be used: {why}.") from None


def _credentials(tls: ServerTls) -> grpc.ServerCredentials:
    try:
        key, certificate = read_regular(tls.key), read_regular(tls.certificate)
        client_ca = None if tls.client_ca is None else read_regular(tls.client_ca)
        # gRPC would report an unusable address.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            tls.certificate, tls.key, password=""
        )
    except ssl.SSLError as error:
        raise GrpcAddressError(
            f"The TLS files {tls.certificate} and {tls.key} are not a certificate and its private "
            f"key ({error.reason}): give a matching pair of PEM files."
        ) from None
    except OSError as error:
        raise GrpcAddressError(f"A TLS file cannot be read: {error}.") from None
    return grpc.ssl_server_credentials(
        [(key, certificate)], root_certificates=client_ca, require_client_auth=client_ca is not None
    )
