"""Programs without threads and sockets, and a P4Runtime client."""

import queue
import socket
import threading
import time
from pathlib import Path

import grpc
from finsy.proto import U128, p4i, p4r, p4r_grpc, rpc_status
from google.protobuf import text_format

from switchgnn.softswitch.base.ports import QueueSettings
from switchgnn.softswitch.base.tables import EVERY_BIT, Ternary
from switchgnn.softswitch.forwarding import Forwarder
from switchgnn.softswitch.lowering.loader import GivenProgram
from switchgnn.softswitch.native.engine import Attachment, NativeEngine, PortKind, load_native
from tests.support.captured import Captured
from tests.support.speed import seconds_here

PROGRAMS = Path(__file__).parent / "programs"
DEADLINE = 10.0


def config_bytes(name):
    return (PROGRAMS / f"{name}.json").read_bytes()


def udp_socket():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    sock.bind(("127.0.0.1", 0))
    sock.settimeout(seconds_here(5))
    return sock


def free_address():
    with udp_socket() as sock:
        return sock.getsockname()


def exactly(value):
    return Ternary(value, EVERY_BIT)


def action_target(table, action, data):
    """What an entry of a table does: an action by its id, with fresh counters if there are any."""
    number = list(table.actions.values()).index(action)
    return number, data, [0, 0] if table.with_counters else None


class Rig:
    """A program in Python; all sent frames are in a list of (port, bytes)."""

    def __init__(self, config, queues=None, attached=range(510), clock=time.monotonic):
        self.program = GivenProgram(config).lowered
        self.sent = []
        self.forwarder = Forwarder(
            self.program,
            depth=(queues or QueueSettings()).depth,
            senders={port: self._sender(port) for port in attached},
            clock=clock,
        )
        self.state, self.counts = self.forwarder.state, self.forwarder.counts

    def _sender(self, port):
        def send(frame):
            self.sent.append((port, frame))
            return True

        return send

    def run(self, port, frame):
        self.sent.clear()
        self.forwarder.receive(port, frame)
        self.finish()
        return list(self.sent)

    def finish(self):
        while self.forwarder.busy:
            self.forwarder.run_again(100)

    def step(self, port, frame, limit):
        self.sent.clear()
        self.forwarder.receive(port, frame)
        self.forwarder.run_again(limit)
        return list(self.sent)


class NativeRig:
    def __init__(self, config, queues=None, attached=range(510), clock=None):
        given = GivenProgram(config)
        self.program = given.lowered
        self.engine = NativeEngine(load_native(given), queues or QueueSettings())
        self._sent = []
        self.state = self.engine.state
        if clock is not None:
            self.engine.switch.call("switch_tick", clock)
        self.engine.attach(dict.fromkeys(attached, Attachment(PortKind.CAPTURED)))
        self.forwarder = self.engine
        self.captured = Captured(self.engine)

    @property
    def sent(self):
        self._sent += self.captured()
        return self._sent

    @property
    def counts(self):
        return self.engine.counts

    def run(self, port, frame):
        self.engine.receive(port, frame)
        self.finish()
        self._sent = self.captured()
        return list(self._sent)

    def finish(self):
        while self.engine.run_again(100):
            pass

    def step(self, port, frame, limit):
        self.engine.receive(port, frame)
        self.engine.run_again(limit)
        return self.captured()


RIGS = {"python": Rig, "native": NativeRig}


class Controller:
    """A P4Runtime client with one stream."""

    def __init__(self, address, program=None, election_id=1, device_id=0, credentials=None):
        options = [("grpc.max_receive_message_length", 256 << 20)]
        if credentials is None:
            self.channel = grpc.insecure_channel(address, options)
        else:
            self.channel = grpc.secure_channel(address, credentials, options)
        self.stub = p4r_grpc.P4RuntimeStub(self.channel)
        self.election_id = U128.encode(election_id)
        self.device_id = device_id
        self.program = program
        self.p4info = p4i.P4Info()
        if program is not None:
            text_format.Parse((PROGRAMS / f"{program}.p4info.txtpb").read_text(), self.p4info)
        self._requests = queue.SimpleQueue()
        self.responses = queue.SimpleQueue()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._requests.put(None)
        self.channel.close()

    def open_stream(self):
        stream = self.stub.StreamChannel(iter(self._requests.get, None))

        def pump():
            try:
                for response in stream:
                    self.responses.put(response)
            except grpc.RpcError as error:
                self.responses.put(error)

        threading.Thread(target=pump, daemon=True).start()

    def send(self, **update):
        self._requests.put(p4r.StreamMessageRequest(**update))

    def receive(self):
        return self.responses.get(timeout=seconds_here(DEADLINE))

    def arbitrate(self):
        self.open_stream()
        self.send_arbitration()
        return self.receive().arbitration.status.code

    def send_arbitration(self):
        update = p4r.MasterArbitrationUpdate(device_id=self.device_id, election_id=self.election_id)
        self.send(arbitration=update)

    def set_config(self, action="VERIFY_AND_COMMIT", config=None, cookie=0, with_config=True):
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self.device_id,
            election_id=self.election_id,
            action=p4r.SetForwardingPipelineConfigRequest.Action.Value(action),
        )
        if with_config:
            if self.p4info is not None:
                request.config.p4info.CopyFrom(self.p4info)
            request.config.p4_device_config = config or config_bytes(self.program)
            request.config.cookie.cookie = cookie
        self.stub.SetForwardingPipelineConfig(request)

    def write(self, *updates, **extra):
        fields = {"device_id": self.device_id, "election_id": self.election_id, **extra}
        self.stub.Write(p4r.WriteRequest(updates=updates, **fields))

    def failed_write(self, *updates):
        """Codes of each update of a Write that fails as a whole."""
        try:
            self.write(*updates)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNKNOWN
            details = dict(error.trailing_metadata())["grpc-status-details-bin"]
        else:
            raise AssertionError("the write did not fail")
        codes = []
        for detail in rpc_status.Status.FromString(details).details:
            message = p4r.Error()
            assert detail.Unpack(message)
            codes.append(message.canonical_code)
        return codes

    def read(self, **entity):
        request = p4r.ReadRequest(device_id=self.device_id, entities=[p4r.Entity(**entity)])
        return [e for response in self.stub.Read(request) for e in response.entities]

    def ident(self, kind, name):
        for item in getattr(self.p4info, kind):
            if item.preamble.name.endswith(name):
                return item.preamble.id
        raise KeyError(name)

    def table_entry(self, table, matches=(), action=None, parameters=(), **extra):
        entry = p4r.TableEntry(table_id=self.ident("tables", table), **extra)
        for number, match in enumerate(matches, 1):
            if match is not None:
                entry.match.append(p4r.FieldMatch(field_id=number, **match))
        if action is not None:
            entry.action.action.action_id = self.ident("actions", action)
            for number, value in enumerate(parameters, 1):
                entry.action.action.params.add(param_id=number, value=value)
        return entry


def exact(value, size=2):
    return {"exact": p4r.FieldMatch.Exact(value=value.to_bytes(size, "big"))}


def ternary(value, mask):
    return {"ternary": p4r.FieldMatch.Ternary(value=value, mask=mask)}


def lpm(value, length):
    return {"lpm": p4r.FieldMatch.LPM(value=value, prefix_len=length)}


def between(low, high):
    return {"range": p4r.FieldMatch.Range(low=low, high=high)}


def optional(value):
    return {"optional": p4r.FieldMatch.Optional(value=value)}


def every_kind(controller):
    """An entry of every match kind for the program `tables`."""
    entry = controller.table_entry
    note = {"priority": 10, "metadata": b"note"}
    return [
        entry("exact_table", [exact(0x12), exact(5)], "counted", [b"\x00\x07"]),
        entry("lpm_table", [exact(3), lpm(b"\x12\x00", 8)], "answer", [b"\x08"]),
        entry("single_lpm_table", [], "answer", [b"\x09"]),
        entry("ternary_table", [None, ternary(b"\x02", b"\x02")], "answer", [b"\x0a"], **note),
        entry("range_table", [between(b"\x01", b"\x02\x00")], "answer", [b"\x0b"], priority=20),
        entry("optional_table", [optional(b"\x00\x2a")], "answer", [b"\x0c"], priority=30),
    ]


def update(kind, **entity):
    return p4r.Update(type=p4r.Update.Type.Value(kind), entity=p4r.Entity(**entity))


def insert(entry):
    return update("INSERT", table_entry=entry)


def modify(entry):
    return update("MODIFY", table_entry=entry)


def delete(entry):
    return update("DELETE", table_entry=entry)


def replication(kind, **entry):
    return update(kind, packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(**entry))
