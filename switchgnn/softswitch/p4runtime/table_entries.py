# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Convert table entries, groups and sessions between P4Runtime messages and the switch."""

from collections.abc import Iterable, Iterator, MutableSequence

from finsy.proto import p4i, p4r, rpc_code

from switchgnn.softswitch.errors import RequestError
from switchgnn.softswitch.p4runtime.device import InstalledPipeline
from switchgnn.softswitch.p4runtime.schema import (
    COUNT_MASK,
    ActionSchema,
    FieldSchema,
    Schema,
    TableSchema,
    decode,
    decode_counts,
    denied,
    encode,
    exists,
    invalid,
    not_found,
    unimplemented,
)
from switchgnn.softswitch.program import DROP_PORT
from switchgnn.softswitch.replication import CloneSession, Replica, ReplicationEngine
from switchgnn.softswitch.tables import (
    Entry,
    EntryKey,
    EntryTable,
    Exact,
    Match,
    Prefix,
    Range,
    Target,
    Ternary,
)

_MatchField = p4i.MatchField
_ENTITIES_PER_RESPONSE = 1024
_MAX_GROUP = 0xFFFF
_MAX_SESSION = 0x7FFF


def find_table(schema: Schema, ident: int) -> TableSchema:
    """Return the table with an id."""
    table = schema.tables.get(ident)
    if table is None:
        raise absent(schema, ident, "table")
    return table


def absent(schema: Schema, ident: int, kind: str) -> RequestError:
    """Return the error for an unknown id."""
    name = schema.removed.get(ident)
    if name is None:
        return not_found(f"There is no {kind} with id {ident:#x}.")
    return not_found(
        f"The {kind} '{name}' was removed by the compiler, because no packet can reach it."
    )


def write_entry(schema: TableSchema, table: EntryTable, kind: int, message: p4r.TableEntry) -> None:
    """Apply one INSERT, MODIFY or DELETE of a table entry."""
    _refuse_unsupported(message)
    if message.is_default_action:
        _write_default(schema, table, kind, message)
        return
    if schema.constant:
        raise denied(f"Table '{schema.name}' has constant entries and cannot be changed.")
    key = (decode_matches(schema, message), _priority(schema, message))
    if kind == p4r.Update.INSERT:
        _insert(schema, table, key, message)
    elif kind == p4r.Update.MODIFY:
        _modify(schema, table, key, message)
    elif table.find(key) is None:
        raise not_found(f"Table '{schema.name}' has no such entry to delete.")
    else:
        table.remove(key)


def _refuse_unsupported(message: p4r.TableEntry) -> None:
    if message.idle_timeout_ns:
        raise unimplemented("Idle timeouts are not supported: leave idle_timeout_ns at 0.")
    if message.HasField("meter_config"):
        raise unimplemented("Direct meters are not supported: leave meter_config out.")


def _insert(
    schema: TableSchema,
    table: EntryTable,
    key: EntryKey,
    message: p4r.TableEntry,
) -> None:
    if table.find(key) is not None:
        raise exists(f"Table '{schema.name}' already has this entry: modify it instead.")
    if schema.size and len(table) >= schema.size:
        raise RequestError(
            rpc_code.RESOURCE_EXHAUSTED,
            f"Table '{schema.name}' is full with {schema.size} entries.",
        )
    given = _counts(schema, message)
    counts = [0, 0] if schema.table.with_counters else None
    table.put(Entry(*key, _target(schema, message, counts), message.metadata))
    if given is not None:
        table.set_counts(key, given)


def _modify(
    schema: TableSchema,
    table: EntryTable,
    key: EntryKey,
    message: p4r.TableEntry,
) -> None:
    known = table.find(key)
    if known is None:
        raise not_found(f"Table '{schema.name}' has no such entry to modify: insert it first.")
    given = _counts(schema, message)
    table.put(Entry(*key, _target(schema, message, known.target[2]), message.metadata))
    if given is not None:
        table.set_counts(key, given)


def _counts(schema: TableSchema, message: p4r.TableEntry) -> tuple[int, int] | None:
    if not message.HasField("counter_data"):
        return None
    if not schema.table.with_counters:
        raise invalid(f"Table '{schema.name}' has no direct counter.")
    return decode_counts(message.counter_data)


def _write_default(
    schema: TableSchema, table: EntryTable, kind: int, message: p4r.TableEntry
) -> None:
    if kind != p4r.Update.MODIFY or message.match or message.priority:
        raise invalid("A default entry is changed by MODIFY, without match and priority.")
    if schema.constant_default:
        raise denied(f"The default action of table '{schema.name}' is constant.")
    if not message.HasField("action"):
        table.set_default(table.initial_default)
        return
    action, data = _action(schema, message)
    if not action.for_default:
        raise denied(f"Action '{action.name}' is not allowed as a default action.")
    table.set_default((action.number, data, None))


def _target(
    schema: TableSchema, message: p4r.TableEntry, counts: MutableSequence[int] | None
) -> Target:
    action, data = _action(schema, message)
    if not action.for_entries:
        raise denied(f"Action '{action.name}' is only allowed as a default action.")
    return action.number, data, counts


def _action(schema: TableSchema, message: p4r.TableEntry) -> tuple[ActionSchema, tuple[int, ...]]:
    if message.action.WhichOneof("type") != "action":
        raise invalid(f"An entry of table '{schema.name}' needs an action.")
    given = message.action.action
    action = schema.actions.get(given.action_id)
    if action is None:
        raise invalid(f"Table '{schema.name}' has no action with id {given.action_id:#x}.")
    values = {parameter.param_id: parameter.value for parameter in given.params}
    if len(given.params) != len(action.parameters) or len(values) != len(action.parameters):
        raise invalid(f"Action '{action.name}' takes {len(action.parameters)} parameters.")
    try:
        return action, tuple(
            decode(values[p.ident], p.width, f"Parameter '{p.name}'") for p in action.parameters
        )
    except KeyError as error:
        raise invalid(f"Action '{action.name}' misses the parameter with id {error}.") from None


def _priority(schema: TableSchema, message: p4r.TableEntry) -> int:
    priority = int(message.priority)
    if schema.prioritised and priority <= 0:
        raise invalid(f"An entry of table '{schema.name}' needs a priority above 0.")
    if not schema.prioritised and priority:
        raise invalid(f"An entry of table '{schema.name}' cannot have a priority.")
    return priority


def decode_matches(schema: TableSchema, message: p4r.TableEntry) -> tuple[Match, ...]:
    """Return the match of every key field, in key order; absent fields match anything."""
    given = {match.field_id: match for match in message.match}
    if len(given) != len(message.match):
        raise invalid(f"A match field of table '{schema.name}' is given twice.")
    matches = tuple(_match(field, given.pop(field.ident, None)) for field in schema.fields)
    if given:
        raise invalid(f"Table '{schema.name}' has no match field with id {min(given)}.")
    return matches


def _match(field: FieldSchema, given: p4r.FieldMatch | None) -> Match:
    what = f"Match field '{field.name}'"
    if given is None:
        return _wildcard(field, what)
    kind = given.WhichOneof("field_match_type")
    if kind != _KIND_NAMES[field.kind]:
        raise invalid(f"{what} needs a match of kind {_KIND_NAMES[field.kind]}, not {kind}.")
    if field.kind == _MatchField.EXACT:
        return Exact(decode(given.exact.value, field.width, what))
    if field.kind == _MatchField.OPTIONAL:
        return Ternary(decode(given.optional.value, field.width, what), (1 << field.width) - 1)
    if field.kind == _MatchField.LPM:
        return _prefix(field, given.lpm, what)
    if field.kind == _MatchField.TERNARY:
        return _ternary(field, given.ternary, what)
    return _range(field, given.range, what)


_KIND_NAMES: dict[int, str] = {
    _MatchField.EXACT: "exact",
    _MatchField.LPM: "lpm",
    _MatchField.TERNARY: "ternary",
    _MatchField.RANGE: "range",
    _MatchField.OPTIONAL: "optional",
}


def _wildcard(field: FieldSchema, what: str) -> Match:
    if field.kind == _MatchField.EXACT:
        raise invalid(f"{what} is exact and must be given.")
    if field.kind == _MatchField.LPM:
        return Prefix(0, 0, field.width)
    if field.kind == _MatchField.RANGE:
        return Range(0, (1 << field.width) - 1)
    return Ternary(0, 0)


def _prefix(field: FieldSchema, lpm: p4r.FieldMatch.LPM, what: str) -> Match:
    if not 0 < lpm.prefix_len <= field.width:
        raise invalid(f"{what} needs a prefix of 1 to {field.width} bits; leave it out for any.")
    match = Prefix(decode(lpm.value, field.width, what), lpm.prefix_len, field.width)
    if match.value & ~match.mask:
        raise invalid(f"{what} has ones after its prefix of {lpm.prefix_len} bits.")
    return match


def _ternary(field: FieldSchema, ternary: p4r.FieldMatch.Ternary, what: str) -> Match:
    match = Ternary(
        decode(ternary.value, field.width, what), decode(ternary.mask, field.width, what)
    )
    if not match.mask:
        raise invalid(f"{what} has an empty mask: leave the field out to match anything.")
    if match.value & ~match.mask:
        raise invalid(f"{what} has ones outside its mask.")
    return match


def _range(field: FieldSchema, given: p4r.FieldMatch.Range, what: str) -> Match:
    match = Range(decode(given.low, field.width, what), decode(given.high, field.width, what))
    if match.low > match.high:
        raise invalid(f"{what} has a range that ends before it starts.")
    if match == _wildcard(field, what):
        raise invalid(f"{what} has a range of all values: leave the field out to match anything.")
    return match


def snapshot(schema: TableSchema, table: EntryTable, message: p4r.TableEntry) -> Iterable[Entry]:
    """Copy the requested entries with their counts; call it between two packets."""
    if message.match:
        entry = table.find((decode_matches(schema, message), _priority(schema, message)))
        return [] if entry is None else [entry]
    wanted, entries = message.priority, table.snapshot()
    return (each for each in entries if each.priority == wanted) if wanted else entries


def encode_entries(
    schema: TableSchema, entries: Iterable[Entry], with_counts: bool
) -> Iterator[p4r.Entity]:
    """Yield the messages for a snapshot."""
    for entry in entries:
        counts = entry.target[2]
        message = p4r.TableEntry(
            table_id=schema.ident,
            priority=entry.priority if schema.prioritised else 0,
            metadata=entry.metadata,
            is_const=entry.constant,
        )
        _encode_matches(schema, entry, message)
        _encode_action(schema, entry.target, message)
        if with_counts and counts is not None:
            packets, total = counts
            message.counter_data.packet_count = packets & COUNT_MASK
            message.counter_data.byte_count = total & COUNT_MASK
        yield p4r.Entity(table_entry=message)


def encode_table(
    pipeline: InstalledPipeline,
    schema: TableSchema,
    entries: Iterable[Entry],
    with_counts: bool = False,
) -> Iterable[p4r.Entity | bytes]:
    """Yield the messages for a snapshot, as serialized ReadResponses where native code can."""
    if pipeline.batches is not None and not (with_counts and schema.table.with_counters):
        answers = pipeline.batches.answers(schema.ident, entries, _ENTITIES_PER_RESPONSE)
        if answers is not None:
            return answers
    return encode_entries(schema, entries, with_counts)


def pack_responses(found: Iterable[p4r.Entity | bytes]) -> Iterator[bytes]:
    """Yield serialized ReadResponses of at most 1,024 entities; bytes already are responses."""
    piece: list[p4r.Entity] = []
    for each in found:
        if piece and (len(piece) == _ENTITIES_PER_RESPONSE or isinstance(each, bytes)):
            yield p4r.ReadResponse(entities=piece).SerializeToString()
            piece = []
        if isinstance(each, bytes):
            yield each
        else:
            piece.append(each)
    if piece:
        yield p4r.ReadResponse(entities=piece).SerializeToString()


def encode_default(schema: TableSchema, target: Target) -> p4r.Entity:
    """Return the message for a table's default entry."""
    message = p4r.TableEntry(table_id=schema.ident, is_default_action=True)
    _encode_action(schema, target, message)
    return p4r.Entity(table_entry=message)


def _encode_action(schema: TableSchema, target: Target, message: p4r.TableEntry) -> None:
    action = schema.by_number.get(target[0])
    if action is None:
        return
    call = message.action.action
    call.action_id = action.ident
    for parameter, value in zip(action.parameters, target[1], strict=True):
        call.params.add(param_id=parameter.ident, value=encode(value))


def _encode_matches(schema: TableSchema, entry: Entry, message: p4r.TableEntry) -> None:
    for field, match in zip(schema.fields, entry.matches, strict=True):
        if field.kind != _MatchField.EXACT and match == _wildcard(field, field.name):
            continue
        encoded = message.match.add(field_id=field.ident)
        if isinstance(match, Exact):
            encoded.exact.value = encode(match.value)
        elif isinstance(match, Prefix):
            encoded.lpm.value, encoded.lpm.prefix_len = encode(match.value), match.length
        elif isinstance(match, Range):
            encoded.range.low, encoded.range.high = encode(match.low), encode(match.high)
        elif field.kind == _MatchField.OPTIONAL:
            encoded.optional.value = encode(match.value)
        else:
            encoded.ternary.value, encoded.ternary.mask = encode(match.value), encode(match.mask)


def write_replication(
    pipeline: InstalledPipeline,
    engine: ReplicationEngine,
    kind: int,
    message: p4r.PacketReplicationEngineEntry,
) -> None:
    """Apply one change of a multicast group or clone session."""
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
    """Return the requested groups or sessions; id 0 or no type means all."""
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
