# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Answers Read requests."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain

from finsy.proto import p4r

from switchgnn.softswitch.p4runtime.arrays import (
    encode_counters,
    encode_registers,
    read_counters,
    read_registers,
)
from switchgnn.softswitch.p4runtime.device import Device, InstalledPipeline
from switchgnn.softswitch.p4runtime.replication_entries import read_replication
from switchgnn.softswitch.p4runtime.schema import TableSchema
from switchgnn.softswitch.p4runtime.table_entries import (
    encode_default,
    encode_entries,
    find_table,
    snapshot,
)
from switchgnn.softswitch.p4runtime.values import unimplemented

_ENTITIES_PER_RESPONSE = 1024


# An entity, or the bytes of a response with several.
_Found = p4r.Entity | bytes


def read_entities(
    device: Device, pipeline: InstalledPipeline, entities: Iterable[p4r.Entity]
) -> Iterator[bytes]:
    """Yield responses with everything asked for, in pieces that fit a message.

    Args:
        device: the switch.
        pipeline: the installed program.
        entities: what is asked for; id 0 asks for all objects of a kind.

    Yields:
        Bytes of responses with at most 1,024 entities each; one empty response if there are none.

    Raises:
        RequestError: something asked for is unknown or not supported.
    """
    # The whole request is copied first, so that an unknown id fails it before any answer.
    found = chain.from_iterable([_read(device, pipeline, entity) for entity in entities])
    empty = True
    piece: list[p4r.Entity] = []
    for each in found:
        empty = False
        if piece and (len(piece) == _ENTITIES_PER_RESPONSE or isinstance(each, bytes)):
            yield _response(piece)
            piece = []
        if isinstance(each, bytes):
            yield each
        else:
            piece.append(each)
    if piece or empty:
        yield _response(piece)


def _response(entities: list[p4r.Entity]) -> bytes:
    return p4r.ReadResponse(entities=entities).SerializeToString()


def _read(device: Device, pipeline: InstalledPipeline, entity: p4r.Entity) -> Iterable[_Found]:
    what = entity.WhichOneof("entity")
    handler = _HANDLERS.get(what or "")
    if handler is None:
        raise unimplemented(f"Reading a {what or 'missing entity'} is not supported.")
    return handler(device, pipeline, entity)


def _read_tables(
    device: Device, pipeline: InstalledPipeline, entity: p4r.Entity
) -> Iterable[_Found]:
    message = entity.table_entry
    schemas = (
        [find_table(pipeline.schema, message.table_id)]
        if message.table_id
        else list(pipeline.schema.tables.values())
    )
    return chain.from_iterable(_read_table(device, pipeline, s, message) for s in schemas)


def _read_table(
    device: Device, pipeline: InstalledPipeline, schema: TableSchema, message: p4r.TableEntry
) -> Iterable[_Found]:
    table = pipeline.state.tables[schema.name]
    if message.is_default_action:
        return [encode_default(schema, table.default[0])]
    entries = device.call(lambda: snapshot(schema, table, message))
    with_counts = message.HasField("counter_data")
    if pipeline.batches is not None and not (with_counts and schema.table.with_counters):
        answers = pipeline.batches.answers(schema.ident, entries, _ENTITIES_PER_RESPONSE)
        if answers is not None:
            return answers
    return encode_entries(schema, entries, with_counts)


def _read_direct_counters(
    device: Device, pipeline: InstalledPipeline, entity: p4r.Entity
) -> Iterable[p4r.Entity]:
    wanted = entity.direct_counter_entry.table_entry
    if wanted.table_id:
        schemas = [find_table(pipeline.schema, wanted.table_id)]
    else:
        direct = pipeline.schema.direct_counters.values()
        schemas = [pipeline.schema.tables[ident] for ident in direct]
    for schema in schemas:
        table = pipeline.state.tables[schema.name]

        entries = device.call(partial(snapshot, schema, table, wanted))
        for found in encode_entries(schema, entries, True):
            entry = p4r.DirectCounterEntry(
                table_entry=found.table_entry, data=found.table_entry.counter_data
            )
            entry.table_entry.ClearField("counter_data")
            entry.table_entry.ClearField("action")
            yield p4r.Entity(direct_counter_entry=entry)


def _read_registers(
    device: Device, pipeline: InstalledPipeline, entity: p4r.Entity
) -> Iterable[p4r.Entity]:
    return encode_registers(*device.call(lambda: read_registers(pipeline, entity.register_entry)))


def _read_counters(
    device: Device, pipeline: InstalledPipeline, entity: p4r.Entity
) -> Iterable[p4r.Entity]:
    return encode_counters(device.call(lambda: read_counters(pipeline, entity.counter_entry)))


def _read_replication(
    device: Device, pipeline: InstalledPipeline, entity: p4r.Entity
) -> Iterable[p4r.Entity]:
    entry = entity.packet_replication_engine_entry
    return device.call(lambda: read_replication(pipeline, entry))


_HANDLERS: dict[str, Callable[[Device, InstalledPipeline, p4r.Entity], Iterable[_Found]]] = {
    "table_entry": _read_tables,
    "direct_counter_entry": _read_direct_counters,
    "register_entry": _read_registers,
    "counter_entry": _read_counters,
    "packet_replication_engine_entry": _read_replication,
}
