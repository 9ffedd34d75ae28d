"""Access to P4Runtime, limits on idle clients, and requests with arbitrary values."""

import os
import queue
import random
import socket
import stat
import threading
from contextlib import ExitStack, contextmanager

import grpc
import pytest
from finsy.proto import p4r
from google.protobuf.descriptor import FieldDescriptor

from switchgnn.softswitch import GrpcAddressError, SoftSwitch
from switchgnn.softswitch.base.errors import RequestError
from switchgnn.softswitch.p4runtime.server import (
    READS,
    STREAMS_PER_HOST,
    Arbiter,
    StreamClient,
    place,
)
from tests.softswitch.harness import DEADLINE, Controller, exact, insert
from tests.support.listeners import refused_to_nobody
from tests.support.markers import needs_root
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

IDLE = 45
OK = 0


@contextmanager
def idle_streams(address, count):
    """Yields the calls of streams without requests."""
    waiting = queue.SimpleQueue()
    with Controller(address) as client:
        calls = [client.stub.StreamChannel(iter(waiting.get, None)) for _ in range(count)]
        try:
            yield calls
        finally:
            for call in calls:
                call.cancel()
                waiting.put(None)


def test_idle_streams_hold_up_no_call(switch):
    address = switch.grpc_address
    with Controller(address, "tables") as before, idle_streams(address, IDLE) as calls:
        ended = wait_until(
            lambda: [each for each in calls if each.done()][IDLE - STREAMS_PER_HOST - 1 :],
            "all but a few are told to end",
        )
        assert {call.code() for call in ended} == {grpc.StatusCode.RESOURCE_EXHAUSTED}
        assert before.arbitrate() == OK
        before.set_config()
        before.write(insert(before.table_entry("hit_table", [exact(7)], "answer", [b"\1"])))
        assert before.read(table_entry=p4r.TableEntry())
        answer = before.stub.GetForwardingPipelineConfig(
            p4r.GetForwardingPipelineConfigRequest(), timeout=seconds_here(DEADLINE)
        )
        assert answer.config.p4_device_config


def test_no_client_takes_the_streams_of_another():
    arbiter, other = Arbiter(0), StreamClient("ipv4:10.0.0.1:5")
    greedy = [StreamClient(f"ipv4:10.0.0.2:{port}") for port in range(STREAMS_PER_HOST + 1)]
    for stream in (other, *greedy):
        arbiter.open(stream)
    assert isinstance(greedy[0].outbox.get_nowait(), RequestError)
    # Streams in use are not ended for others.
    for stream in greedy:
        stream.has_asked = True
    with pytest.raises(RequestError, match="close one first"):
        arbiter.open(StreamClient("ipv4:10.0.0.2:99"))
    assert other.outbox.empty()


def test_reads_are_limited():
    reads = threading.Semaphore(READS)
    with ExitStack() as stack:
        for _ in range(READS):
            stack.enter_context(place(reads))
        with pytest.raises(RequestError, match=f"{READS} reads"):
            stack.enter_context(place(reads))
    with place(reads):
        pass


def test_a_socket_is_for_its_owner(tmp_path):
    path, before = tmp_path / "p4runtime.sock", os.umask(0)
    try:
        with SoftSwitch(grpc=f"unix:{path}") as switch:
            assert switch.grpc_address == f"unix:{path}"
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            with Controller(switch.grpc_address, "tables") as controller:
                assert controller.arbitrate() == OK
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert not path.exists()


@needs_root
def test_another_user_cannot_connect(tmp_path):
    path = tmp_path / "p4runtime.sock"
    with SoftSwitch(grpc=f"unix:{path}"):
        # The folder is open to all; the socket is not.
        for folder in path.parents:
            if not folder.stat().st_mode & stat.S_IXOTH:
                folder.chmod(folder.stat().st_mode | stat.S_IXOTH)
        assert refused_to_nobody(socket.AF_UNIX, str(path))
        path.chmod(0o666)
        assert not refused_to_nobody(socket.AF_UNIX, str(path))


def test_a_socket_in_use_is_not_taken_away(tmp_path):
    address = f"unix:{tmp_path}/p4runtime.sock"
    with SoftSwitch(grpc=address):
        with pytest.raises(GrpcAddressError, match="cannot be used"):
            SoftSwitch(grpc=address).start()
        with Controller(address, "tables") as controller:
            assert controller.arbitrate() == OK


@pytest.mark.parametrize("path", ["", "x" * 108])
def test_a_path_that_no_socket_can_have_is_refused(path):
    with pytest.raises(GrpcAddressError, match="107 bytes"):
        SoftSwitch(grpc=f"unix:{path}").start()


TRIES = 500
MOST_DEPTH = 8
FIELDS_LEFT_OUT = 0.6
NUMBERS = (0, 1, 2, 7, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1, -1, -(2**31), -(2**63))
VALUES = {
    FieldDescriptor.TYPE_BYTES: (b"", b"\0", b"\1", b"\xff" * 4, b"\xff" * 17, bytes(200)),
    FieldDescriptor.TYPE_STRING: ("", "x", "\0", "\u00e9" * 50),
    FieldDescriptor.TYPE_BOOL: (False, True),
    FieldDescriptor.TYPE_DOUBLE: (float("nan"),),
    FieldDescriptor.TYPE_ENUM: (0, 1, 2, 3, 4, 5, 77),
}


def fill(message, chosen, ids, depth=0):
    """Fill a message with random values; ``ids`` are those of the program."""
    for field in message.DESCRIPTOR.fields:
        if chosen.random() < FIELDS_LEFT_OUT or depth > MOST_DEPTH:
            continue
        many = hasattr(getattr(message, field.name), "append")
        for _ in range(chosen.choice((1, 2, 5)) if many else 1):
            if field.message_type is None:
                number = field.type == FieldDescriptor.TYPE_UINT32
                values = VALUES.get(field.type, (*NUMBERS, *ids * number * 3))
                try:
                    value = chosen.choice(values)
                    getattr(message, field.name).append(value) if many else setattr(
                        message, field.name, value
                    )
                except ValueError:
                    continue  # It does not fit the field: nobody could send it.
            elif not field.message_type.GetOptions().map_entry:
                place = getattr(message, field.name)
                inner = place.add() if many else place
                inner.SetInParent()
                fill(inner, chosen, ids, depth + 1)


@pytest.mark.whole
def test_every_request_is_answered(tables):
    info = tables.p4info
    kinds = (info.tables, info.actions, info.counters, info.direct_counters, info.registers)
    ids = tuple(each.preamble.id for kind in kinds for each in kind)
    chosen, refused = random.Random(1), 0
    for _ in range(TRIES):
        entities = [p4r.Entity() for _ in range(chosen.randint(1, 4))]
        for each in entities:
            fill(each, chosen, ids)
        try:
            if chosen.random() < 0.5:
                types = chosen.choices((0, 1, 2, 3), k=len(entities))
                tables.write(
                    *(p4r.Update(type=t, entity=e) for t, e in zip(types, entities, strict=True))
                )
            else:
                request = p4r.ReadRequest(entities=entities)
                list(tables.stub.Read(request, timeout=seconds_here(DEADLINE)))
        except grpc.RpcError as error:
            refused += 1
            assert error.code() not in {
                grpc.StatusCode.INTERNAL,
                grpc.StatusCode.DEADLINE_EXCEEDED,
                grpc.StatusCode.UNAVAILABLE,
            }, entities
            assert "Exception" not in str(error.details()), entities
    assert TRIES / 2 < refused < TRIES
    tables.set_config()
    tables.write(insert(tables.table_entry("hit_table", [exact(7)], "answer", [b"\1"])))
    assert tables.read(table_entry=p4r.TableEntry())


def test_connections_that_say_nothing_hold_up_no_call(switch, tables):
    with ExitStack() as stack:
        host, _, port = switch.grpc_address.rpartition(":")
        for number in range(200):
            idle = stack.enter_context(socket.create_connection((host, int(port))))
            idle.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[: number % 25])
        assert tables.stub.Capabilities(p4r.CapabilitiesRequest(), timeout=seconds_here(DEADLINE))
