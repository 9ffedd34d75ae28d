# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What controllers have set in a switch: at one moment, and as messages."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from finsy.proto import p4r

from switchgnn.softswitch.p4runtime.device import Device, InstalledPipeline
from switchgnn.softswitch.p4runtime.schema import TableSchema
from switchgnn.softswitch.p4runtime.table_entries import encode_default, encode_entries
from switchgnn.softswitch.tables import Entry

_ENTITIES_PER_RESPONSE = 1024


@dataclass(frozen=True)
class Snapshot:
    """A program, its entries, default actions, groups and sessions.

    What packets have changed is not part of it: registers, and what was counted. Of a moment that
    is over they would say what is no longer true, such as how far an exchange has come.

    Attributes:
        pipeline: the program.
        entries: those of each table.
        defaults: the default actions that are not the program's own.
        replication: multicast groups and clone sessions.
    """

    pipeline: InstalledPipeline
    entries: tuple[tuple[TableSchema, Iterable[Entry]], ...]
    defaults: tuple[p4r.Entity, ...]
    replication: tuple[p4r.Entity, ...]

    def responses(self) -> Iterator[bytes]:
        """Yield all of it as serialized ReadResponses, in pieces that fit a message."""
        yield from _pieces((*self.defaults, *self.replication))
        for schema, entries in self.entries:
            yield from self._table(schema, entries)

    def _table(self, schema: TableSchema, entries: Iterable[Entry]) -> Iterable[bytes]:
        if self.pipeline.batches is not None:
            answers = self.pipeline.batches.answers(schema.ident, entries, _ENTITIES_PER_RESPONSE)
            if answers is not None:
                return answers
        return _pieces(encode_entries(schema, entries, False))


def take_snapshot(device: Device, pipeline: InstalledPipeline) -> Snapshot:
    """Copy what controllers have set, all of it between the same two packets.

    Args:
        device: the switch.
        pipeline: the installed program.

    Returns:
        The copy.
    """
    return device.call(lambda: _copy(pipeline))


def _copy(pipeline: InstalledPipeline) -> Snapshot:
    tables = pipeline.state.tables
    schemas = pipeline.schema.tables.values()
    return Snapshot(
        pipeline,
        tuple((each, tables[each.name].snapshot()) for each in schemas if not each.constant),
        tuple(
            encode_default(each, tables[each.name].default[0])
            for each in schemas
            if tables[each.name].default[0][:2] != tables[each.name].initial_default[:2]
        ),
        (*map(_group, pipeline.groups.values()), *map(_session, pipeline.sessions.values())),
    )


def _group(group: p4r.MulticastGroupEntry) -> p4r.Entity:
    entry = p4r.PacketReplicationEngineEntry(multicast_group_entry=group)
    return p4r.Entity(packet_replication_engine_entry=entry)


def _session(session: p4r.CloneSessionEntry) -> p4r.Entity:
    entry = p4r.PacketReplicationEngineEntry(clone_session_entry=session)
    return p4r.Entity(packet_replication_engine_entry=entry)


def _pieces(entities: Iterable[p4r.Entity]) -> Iterator[bytes]:
    piece: list[p4r.Entity] = []
    for entity in entities:
        piece.append(entity)
        if len(piece) == _ENTITIES_PER_RESPONSE:
            yield p4r.ReadResponse(entities=piece).SerializeToString()
            piece = []
    if piece:
        yield p4r.ReadResponse(entities=piece).SerializeToString()
