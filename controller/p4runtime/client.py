"""One switch over P4Runtime, without anything that is SwitchGNN's own."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import grpc
import numpy as np
from finsy.proto import p4r

from switchgnn.controller.base.errors import PipelineMissingError, SwitchUnreachableError
from switchgnn.controller.p4runtime import connection
from switchgnn.controller.p4runtime import rows as entries
from switchgnn.controller.p4runtime.layout import Layout, Table, parse_p4info
from switchgnn.controller.p4runtime.rpc_errors import explain_write, explained
from switchgnn.p4src import Program

DEFAULT_DEADLINE = 10.0  # seconds
# Reading or writing much, and compiling a program in the switch, take longer.
_LONG_DEADLINE = 300.0
# Makes rows of the serialized answers to a read of a table.
Decode = Callable[[Table, Iterable[bytes]], entries.Rows]
# In what the embedded switch adds to its capabilities, see softswitch/p4runtime/server.py.
_EMBEDDED = b"SwitchGNN"
_NOBODY_ANSWERED = (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE)


def program_cookie(program: Program) -> int:
    """Return the cookie that marks a switch as running ``program``."""
    return int(program.digest[:16], 16)


class P4RuntimeClient:
    """A connection to one switch, as its primary controller or as an observer.

    Args:
        address: of the P4Runtime server, ``HOST:PORT`` or ``unix:PATH``.
        device_id: of the switch.
        election_id: the controller with the highest one is the primary.
        tls: None for an unencrypted connection.
        primary: False to read only, which needs nobody's permission.
        deadline: seconds to wait for a connection or a short answer.
        connect: makes the connection; by default over gRPC.
        decode: makes rows of serialized answers.
    """

    def __init__(
        self,
        address: str,
        device_id: int = 0,
        election_id: int = 1,
        tls: connection.TlsOptions | None = None,
        *,
        primary: bool = True,
        deadline: float = DEFAULT_DEADLINE,
        connect: connection.Connect = connection.Connection,
        decode: Decode = entries.decode_rows,
    ) -> None:
        self.address = address
        self.device_id = device_id
        self.election_id = election_id
        self.primary = primary
        self.layout: Layout | None = None
        self.embedded = False  # whether the switch reports that it is the embedded one
        self._tls = tls
        self._deadline = deadline
        self._connect = connect
        self.decode = decode
        self._opened: connection.Connection | None = None
        self._stream: connection.Arbitration | None = None
        self._prefix = p4r.WriteRequest(
            device_id=device_id, election_id=connection.election_message(election_id)
        ).SerializeToString()

    def __enter__(self) -> "P4RuntimeClient":
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Connect, and become the primary if that was asked for; does nothing when open.

        Raises SwitchUnreachableError if nobody answers, or NotPrimaryError.
        """
        if self._opened is not None:
            return
        connection.check_owner(self.address)
        if self._tls is not None:
            self._tls.check()
        self._opened = self._connect(self.address, self._tls)
        try:
            self._wait_ready()
            if self.primary:
                self._stream = self._connection.stream(self.device_id, self.election_id)
                self._stream.wait_primary(self._deadline)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Disconnect; does nothing when closed."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        if self._opened is not None:
            opened, self._opened = self._opened, None
            opened.close()

    def reopen(self) -> None:
        """Connect again unless this is the connected primary."""
        if not self.alive:
            self.close()
            self.open()

    def another(self, election_id: int = 1, *, primary: bool = False) -> "P4RuntimeClient":
        """Return another client for the same switch, not yet open; by default it only reads."""
        return P4RuntimeClient(
            *(self.address, self.device_id, election_id, self._tls),
            primary=primary,
            deadline=self._deadline,
            connect=self._connect,
            decode=self.decode,
        )

    @property
    def _connection(self) -> connection.Connection:
        if self._opened is None:
            raise SwitchUnreachableError(
                f"Nothing is connected to switch {self.address}: open the client first."
            )
        return self._opened

    @property
    def alive(self) -> bool:
        """Whether this client is the connected primary."""
        return self._stream is not None and self._stream.alive

    def set_pipeline(self, program: Program, cookie: int) -> None:
        """Make the switch run ``program``, with no entries."""
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self.device_id,
            election_id=connection.election_message(self.election_id),
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
        )
        request.config.p4info.CopyFrom(parse_p4info(program.p4info))
        request.config.p4_device_config = program.json
        request.config.cookie.cookie = cookie
        with explained(self.address, "loading the P4 program"):
            self._connection.stub.SetForwardingPipelineConfig(request, timeout=_LONG_DEADLINE)
        self.layout = Layout.from_text(program.p4info)

    def get_pipeline_cookie(self) -> int | None:
        """Return the cookie of the program that the switch runs, or None when it runs none."""
        kind = p4r.GetForwardingPipelineConfigRequest.COOKIE_ONLY
        try:
            return int(self._get_pipeline(kind).cookie.cookie)
        except PipelineMissingError:
            return None

    def get_layout(self) -> Layout:
        """Return the layout of the program that the switch runs; asks where `layout` is None.

        PipelineMissingError: it runs none.
        """
        if self.layout is not None:
            return self.layout
        kind = p4r.GetForwardingPipelineConfigRequest.P4INFO_AND_COOKIE
        config = self._get_pipeline(kind)
        if not config.HasField("p4info"):
            raise PipelineMissingError(
                f"Switch {self.address} runs no P4 program: install a plan first."
            )
        self.layout = Layout.from_message(config.p4info)
        return self.layout

    def write(self, updates: list[p4r.Update], batch: int = entries.BATCH) -> int:
        """Send updates in requests of at most ``batch``; return how many.

        WriteRefusedError: some were refused; other updates of their request may be in place, and
        later requests were not sent.
        """
        return self.write_requests(entries.encode_messages(updates, batch))

    def write_requests(
        self, requests: Iterable[entries.Request], progress: Callable[[int], None] | None = None
    ) -> int:
        """Send prepared requests in order, each while the next is made; return how many updates.

        ``progress`` is called with the number of updates of each request that is through. Raises as
        ``write``.
        """
        written = 0
        under_way: tuple[entries.Request, Any] | None = None
        try:
            for request in requests:
                written += self._finish(under_way, progress)
                raw = self._prefix + request.updates
                under_way = (request, self._connection.write(raw, timeout=_LONG_DEADLINE))
        except BaseException:
            # Nobody may read the switch while a request is still being worked on.
            if under_way is not None:
                under_way[1].exception()
            raise
        return written + self._finish(under_way, progress)

    def read(self, entities: Iterable[p4r.Entity]) -> list[p4r.Entity]:
        """Return what the switch has of ``entities``."""
        responses = map(p4r.ReadResponse.FromString, self.read_responses(entities))
        return [entity for response in responses for entity in response.entities]

    def read_responses(self, entities: Iterable[p4r.Entity]) -> Iterator[bytes]:
        """Yield the serialized ReadResponses to a read of ``entities`` as they come."""
        request = p4r.ReadRequest(device_id=self.device_id, entities=entities)
        with explained(self.address, "being read"):
            yield from self._connection.read(request.SerializeToString(), timeout=_LONG_DEADLINE)

    def read_rows(self, table: Table) -> entries.Rows:
        """Return the entries of one table, sorted by key."""
        rows = self.decode(table, self.read_responses([entries.table_entity(table)]))
        return rows.select(np.argsort(rows.keys, kind="stable"))

    def read_default(self, table: Table) -> bytes:
        """Return the default action of one table."""
        query = p4r.TableEntry(table_id=table.id, is_default_action=True)
        for entity in self.read([p4r.Entity(table_entry=query)]):
            return entries.parse_default(table, entity.table_entry)
        return table.default or b""

    def read_groups(self) -> dict[int, tuple[int, ...]]:
        """Return the sorted ports of every multicast group."""
        query = p4r.Entity()
        # Group 0 stands for all groups.
        query.packet_replication_engine_entry.multicast_group_entry.multicast_group_id = 0
        found = (entity.packet_replication_engine_entry for entity in self.read([query]))
        return dict(entries.parse_group(entry.multicast_group_entry) for entry in found)

    def _get_pipeline(
        self, kind: "p4r.GetForwardingPipelineConfigRequest.ResponseType.ValueType"
    ) -> p4r.ForwardingPipelineConfig:
        asked = p4r.GetForwardingPipelineConfigRequest(device_id=self.device_id, response_type=kind)
        with explained(self.address, "being asked for its P4 program"):
            answer = self._connection.stub.GetForwardingPipelineConfig(asked, self._deadline)
        config: p4r.ForwardingPipelineConfig = answer.config
        return config

    def _wait_ready(self) -> None:
        # A call that has no effect.
        request, stub = p4r.CapabilitiesRequest(), self._connection.stub
        try:
            found = stub.Capabilities(request, timeout=self._deadline, wait_for_ready=True)
            self.embedded = _EMBEDDED in found.experimental.value
        except grpc.RpcError as error:
            if error.code() not in _NOBODY_ANSWERED:
                return
            how = "without TLS" if self._tls is None else f"with TLS; {self._why_not_ready()}"
            raise SwitchUnreachableError(
                f"No switch answers at {self.address} ({how}) within {self._deadline:g} s: "
                f"{connection.advice(self.address)}."
            ) from error

    def _why_not_ready(self) -> str:
        """Return gRPC's reason, such as a certificate that is not believed."""
        try:
            self._connection.stub.Capabilities(p4r.CapabilitiesRequest(), timeout=self._deadline)
        except grpc.RpcError as error:
            return error.details() or "no reason given"
        return "it answers only now"

    def _finish(
        self, sent: tuple[entries.Request, Any] | None, progress: Callable[[int], None] | None
    ) -> int:
        if sent is None:
            return 0
        request, call = sent
        try:
            call.result()
        except grpc.RpcError as error:
            message = p4r.WriteRequest.FromString(request.updates)
            raise explain_write(self.address, message, error, self.layout) from error
        if progress is not None:
            progress(request.count)
        return request.count
