"""A P4Runtime server that only stores, and fails on demand."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import grpc
from finsy.proto import p4r, p4r_grpc, rpc_code, rpc_status
from google.protobuf import any_pb2
from google.protobuf.wrappers_pb2 import StringValue


@dataclass
class Faults:
    """What goes wrong; updates are counted from the moment they are armed."""

    fail_at: int | None = None  # refuse this update once
    fail_code: int = rpc_code.INTERNAL
    drop_at: int | None = None  # break the connection instead of handling this update
    lose_at: int | None = None  # say OK to this update, but forget it
    keep_failing: bool = False
    seen: int = 0

    def hits(self, number):
        if number is None:
            return False
        return self.seen == number or (self.keep_failing and self.seen >= number)


@dataclass
class Contents:
    config: p4r.ForwardingPipelineConfig | None = None
    entries: dict = field(default_factory=dict)
    defaults: dict = field(default_factory=dict)
    groups: dict = field(default_factory=dict)
    counters: dict = field(default_factory=dict)


def canonical(value):
    return value.lstrip(b"\0") or b"\0"


def canonical_entry(entry):
    copy = p4r.TableEntry()
    copy.CopyFrom(entry)
    for match in copy.match:
        match.exact.value = canonical(match.exact.value)
    for param in copy.action.action.params:
        param.value = canonical(param.value)
    return copy


def entry_key(entry):
    return entry.table_id, tuple(sorted((m.field_id, m.exact.value) for m in entry.match))


class FakeSwitch(p4r_grpc.P4RuntimeServicer):
    """A switch at ``address``; ``start``, ``stop`` and ``restart`` may be called repeatedly."""

    def __init__(self):
        self.faults = Faults()
        self.contents = Contents()
        self.updates = 0
        self.pushes = 0
        self.foreign_primary = None  # election id of a controller that was here first
        self._primaries = []
        self._lock = threading.RLock()
        self._server = None
        self._port = 0

    @property
    def address(self):
        return f"127.0.0.1:{self._port}"

    def start(self):
        if self._server is None:
            options = [("grpc.max_receive_message_length", -1), ("grpc.so_reuseport", 0)]
            self._server = grpc.server(ThreadPoolExecutor(8), options=options)
            p4r_grpc.add_P4RuntimeServicer_to_server(self, self._server)
            self._port = self._server.add_insecure_port(self.address)
            self._server.start()
        return self

    def stop(self):
        server, self._server = self._server, None
        if server is not None:
            server.stop(0).wait()
            self._primaries.clear()

    def restart(self):
        self.stop()
        self.contents = Contents()
        self.start()

    def arm(self, **faults):
        self.faults = Faults(**faults)

    def StreamChannel(self, request_iterator, context):  # noqa: N802
        mine = None
        try:
            for request in request_iterator:
                mine = request.arbitration.election_id.low
                with self._lock:
                    self._primaries.append(mine)
                    highest = max([*self._primaries, self.foreign_primary or 0])
                reply = p4r.StreamMessageResponse()
                reply.arbitration.election_id.low = highest
                if highest > mine or self.foreign_primary == mine:
                    reply.arbitration.status.code = rpc_code.ALREADY_EXISTS
                    reply.arbitration.status.message = "Is backup"
                yield reply
        finally:
            with self._lock:
                if mine in self._primaries:
                    self._primaries.remove(mine)

    def SetForwardingPipelineConfig(self, request, context):  # noqa: N802
        self._require_primary(request, context)
        self.pushes += 1
        self.contents = Contents(config=request.config)
        return p4r.SetForwardingPipelineConfigResponse()

    def GetForwardingPipelineConfig(self, request, context):  # noqa: N802
        return p4r.GetForwardingPipelineConfigResponse(config=self._require_config(context))

    def Write(self, request, context):  # noqa: N802
        self._require_primary(request, context)
        self._require_config(context)
        with self._lock:
            results = [self._apply(update, context) for update in request.updates]
        if any(code for code, _ in results):
            status = rpc_status.Status(code=rpc_code.UNKNOWN)
            for code, message in results:
                detail = any_pb2.Any()
                detail.Pack(p4r.Error(canonical_code=code, message=message))
                status.details.append(detail)
            context.set_trailing_metadata(
                (("grpc-status-details-bin", status.SerializeToString()),)
            )
            context.abort(grpc.StatusCode.UNKNOWN, "")
        return p4r.WriteResponse()

    def Read(self, request, context):  # noqa: N802
        self._require_config(context)
        entities = [found for entity in request.entities for found in self._find(entity)]
        # Two responses, as a switch may cut its answer anywhere.
        half = len(entities) // 2
        yield p4r.ReadResponse(entities=entities[:half])
        yield p4r.ReadResponse(entities=entities[half:])

    def Capabilities(self, request, context):  # noqa: N802
        found = p4r.CapabilitiesResponse(p4runtime_api_version="1.3.0")
        found.experimental.Pack(StringValue(value="another switch"))
        return found

    def _require_primary(self, request, context):
        if request.election_id.low not in self._primaries:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "Not primary")

    def _require_config(self, context):
        if self.contents.config is None:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "No pipeline config set")
        return self.contents.config

    def _apply(self, update, context):
        faults = self.faults
        faults.seen += 1
        if faults.hits(faults.drop_at):
            server, self._server = self._server, None
            server.stop(0)
            context.abort(grpc.StatusCode.UNAVAILABLE, "connection dropped")
        if faults.hits(faults.fail_at):
            return faults.fail_code, "told to fail"
        if faults.hits(faults.lose_at):
            return rpc_code.OK, ""
        self.updates += 1
        if update.entity.HasField("table_entry"):
            return self._apply_entry(update.type, canonical_entry(update.entity.table_entry))
        entry = update.entity.packet_replication_engine_entry.multicast_group_entry
        return self._store(self.contents.groups, entry.multicast_group_id, update.type, entry)

    def _apply_entry(self, kind, entry):
        if not entry.is_default_action:
            return self._store(self.contents.entries, entry_key(entry), kind, entry)
        if entry.HasField("action"):
            self.contents.defaults[entry.table_id] = entry
        else:
            self.contents.defaults.pop(entry.table_id, None)
        return rpc_code.OK, ""

    @staticmethod
    def _store(where, key, kind, value):
        if kind == p4r.Update.INSERT and key in where:
            return rpc_code.ALREADY_EXISTS, "exists"
        if kind != p4r.Update.INSERT and key not in where:
            return rpc_code.NOT_FOUND, "not found"
        if kind == p4r.Update.DELETE:
            del where[key]
        else:
            where[key] = value
        return rpc_code.OK, ""

    def _find(self, query):
        contents = self.contents
        if query.HasField("counter_entry"):
            return self._find_counters(query.counter_entry.counter_id)
        if query.HasField("packet_replication_engine_entry"):
            found = []
            for group in contents.groups.values():
                entity = p4r.Entity()
                entity.packet_replication_engine_entry.multicast_group_entry.CopyFrom(group)
                found.append(entity)
            return found
        wanted = query.table_entry
        if wanted.is_default_action:
            return [p4r.Entity(table_entry=self._default(wanted.table_id))]
        return [
            p4r.Entity(table_entry=entry)
            for (table, _), entry in contents.entries.items()
            if table == wanted.table_id
        ]

    def _default(self, table_id):
        if table_id in self.contents.defaults:
            return self.contents.defaults[table_id]
        table = next(t for t in self.contents.config.p4info.tables if t.preamble.id == table_id)
        entry = p4r.TableEntry(table_id=table_id, is_default_action=True)
        action = entry.action.action
        action.action_id = table.initial_default_action.action_id
        for argument in table.initial_default_action.arguments:
            action.params.add(param_id=argument.param_id, value=canonical(argument.value))
        return entry

    def _find_counters(self, counter_id):
        counters = self.contents.config.p4info.counters
        counter = next(each for each in counters if each.preamble.id == counter_id)
        found = []
        for index in range(counter.size):
            entity = p4r.Entity()
            entity.counter_entry.counter_id = counter_id
            entity.counter_entry.index.index = index
            packets = self.contents.counters.get((counter.preamble.alias, index), 0)
            entity.counter_entry.data.packet_count = packets
            found.append(entity)
        return found
