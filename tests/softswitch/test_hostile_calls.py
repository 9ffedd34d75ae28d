# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Requests with arbitrary values are answered, and break nothing."""

import random
import socket
from contextlib import ExitStack

import grpc
from finsy.proto import p4r
from google.protobuf.descriptor import FieldDescriptor

from tests.softswitch.harness import DEADLINE, exact, insert
from tests.support.speed import seconds_here

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


def ids_of(client):
    request = p4r.GetForwardingPipelineConfigRequest()
    info = client.stub.GetForwardingPipelineConfig(
        request, timeout=seconds_here(DEADLINE)
    ).config.p4info
    kinds = (info.tables, info.actions, info.counters, info.direct_counters, info.registers)
    return tuple(each.preamble.id for kind in kinds for each in kind)


def test_every_request_is_answered(tables):
    chosen, ids, refused = random.Random(1), ids_of(tables), 0
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
