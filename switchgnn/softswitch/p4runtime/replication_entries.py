# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Converts multicast groups and clone sessions between P4Runtime messages and the switch."""

from collections.abc import Iterable, Iterator

from finsy.proto import p4r

from switchgnn.softswitch.p4runtime.device import InstalledPipeline
from switchgnn.softswitch.p4runtime.values import decode, exists, invalid, not_found, unimplemented
from switchgnn.softswitch.program import DROP_PORT
from switchgnn.softswitch.replication import CloneSession, Replica, ReplicationEngine

_MAX_GROUP = 0xFFFF
_MAX_SESSION = 0x7FFF


def write_replication(
    pipeline: InstalledPipeline,
    engine: ReplicationEngine,
    kind: int,
    message: p4r.PacketReplicationEngineEntry,
) -> None:
    """Apply one change of a multicast group or clone session.

    Args:
        pipeline: the installed program, which keeps the messages for later reads.
        engine: the groups and sessions of the switch.
        kind: INSERT, MODIFY or DELETE, as in ``p4r.Update.Type``.
        message: the group or session.

    Raises:
        RequestError: the change is refused.
    """
    if message.WhichOneof("type") == "multicast_group_entry":
        _write_group(pipeline, engine, kind, message.multicast_group_entry)
    elif message.WhichOneof("type") == "clone_session_entry":
        _write_session(pipeline, engine, kind, message.clone_session_entry)
    else:
        raise invalid("A replication entry is a multicast group or a clone session.")


def _write_group(
    pipeline: InstalledPipeline,
    engine: ReplicationEngine,
    kind: int,
    message: p4r.MulticastGroupEntry,
) -> None:
    ident = message.multicast_group_id
    _check(kind, ident, _MAX_GROUP, ident in pipeline.groups, "Multicast group")
    if kind == p4r.Update.DELETE:
        del pipeline.groups[ident], engine.groups[ident]
        return
    engine.groups[ident] = _replicas(message.replicas)
    pipeline.groups[ident] = _copy_group(message)


def _copy_group(message: p4r.MulticastGroupEntry) -> p4r.MulticastGroupEntry:
    copy = p4r.MulticastGroupEntry()
    copy.CopyFrom(message)
    return copy


def _write_session(
    pipeline: InstalledPipeline,
    engine: ReplicationEngine,
    kind: int,
    message: p4r.CloneSessionEntry,
) -> None:
    ident = message.session_id
    _check(kind, ident, _MAX_SESSION, ident in pipeline.sessions, "Clone session")
    if kind == p4r.Update.DELETE:
        del pipeline.sessions[ident], engine.sessions[ident]
        return
    if message.class_of_service:
        raise unimplemented("Classes of service are not supported: leave class_of_service at 0.")
    replicas = _replicas(message.replicas)
    engine.sessions[ident] = CloneSession(replicas, 0, message.packet_length_bytes)
    copy = p4r.CloneSessionEntry()
    copy.CopyFrom(message)
    pipeline.sessions[ident] = copy


def _check(kind: int, ident: int, highest: int, known: bool, what: str) -> None:
    if not 0 < ident <= highest:
        raise invalid(f"{what} {ident} is outside 1 to {highest}.")
    if kind == p4r.Update.INSERT and known:
        raise exists(f"{what} {ident} exists already: modify it instead.")
    if kind != p4r.Update.INSERT and not known:
        raise not_found(f"{what} {ident} does not exist.")


def _replicas(messages: Iterable[p4r.Replica]) -> tuple[Replica, ...]:
    replicas = tuple(Replica(_port(message), message.instance) for message in messages)
    if len(set(replicas)) != len(replicas):
        raise invalid("A replica with the same port and instance is given twice.")
    return replicas


def _port(message: p4r.Replica) -> int:
    if message.WhichOneof("port_kind") == "port":
        port = decode(message.port, 32, "A replica's port")
    else:
        port = message.egress_port
    if not 0 <= port < DROP_PORT:
        raise invalid(f"Egress port {port} is outside 0 to {DROP_PORT - 1}.")
    return port


def read_replication(
    pipeline: InstalledPipeline, message: p4r.PacketReplicationEngineEntry
) -> list[p4r.Entity]:
    """Return the messages for the group or session asked for; id 0 or no type means all."""
    kind = message.WhichOneof("type")
    entities: list[p4r.Entity] = []
    if kind in {None, "multicast_group_entry"}:
        entities += _groups(pipeline, message.multicast_group_entry.multicast_group_id)
    if kind in {None, "clone_session_entry"}:
        entities += _sessions(pipeline, message.clone_session_entry.session_id)
    return entities


def _groups(pipeline: InstalledPipeline, ident: int) -> Iterator[p4r.Entity]:
    for known, group in pipeline.groups.items():
        if ident in {0, known}:
            entity = p4r.Entity()
            entity.packet_replication_engine_entry.multicast_group_entry.CopyFrom(group)
            yield entity


def _sessions(pipeline: InstalledPipeline, ident: int) -> Iterator[p4r.Entity]:
    for known, session in pipeline.sessions.items():
        if ident in {0, known}:
            entry = p4r.PacketReplicationEngineEntry(clone_session_entry=session)
            yield p4r.Entity(packet_replication_engine_entry=entry)
