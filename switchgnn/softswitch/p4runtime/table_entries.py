"""Convert table entries, groups and sessions between P4Runtime messages and the switch."""

from collections.abc import Iterable, Iterator

from finsy.proto import p4i, p4r

from switchgnn.softswitch.base import schema as p4
from switchgnn.softswitch.base.errors import RequestError
from switchgnn.softswitch.base.program import DROP_PORT
from switchgnn.softswitch.base.state import Replica, Replicas
from switchgnn.softswitch.base.tables import (
    EVERY_BIT,
    Entry,
    EntryTable,
    Match,
    Range,
    Target,
    Ternary,
    prefix_mask,
)
from switchgnn.softswitch.p4runtime.pipeline_config import InstalledPipeline

_MatchField = p4i.MatchField
_ENTITIES_PER_RESPONSE = 1024
_MAX_GROUP = 0xFFFF
_MAX_SESSION = 0x7FFF


def find_table(schema: p4.Schema, ident: int) -> p4.TableSchema:
    """Return the table with an id."""
    table = schema.tables.get(ident)
    if table is None:
        raise absent(schema, ident, "table")
    return table


def absent(schema: p4.Schema, ident: int, kind: str) -> RequestError:
    """Return the error for an unknown id."""
    name = schema.removed.get(ident)
    if name is None:
        return p4.not_found(f"There is no {kind} with id {ident:#x}.")
    return p4.not_found(
        f"The {kind} '{name}' was removed by the compiler, because no packet can reach it."
    )


def write_entry(
    schema: p4.TableSchema, table: EntryTable, kind: int, message: p4r.TableEntry
) -> None:
    """Apply one INSERT, MODIFY or DELETE of a table entry, whose ``counter_data`` is ignored."""
    if message.idle_timeout_ns:
        raise p4.unimplemented("Idle timeouts are not supported: leave idle_timeout_ns at 0.")
    if message.HasField("meter_config"):
        raise p4.unimplemented("Direct meters are not supported: leave meter_config out.")
    if message.is_default_action:
        _write_default(schema, table, kind, message)
        return
    name = f"Table '{schema.name}'"
    if schema.constant:
        raise p4.denied(f"{name} has constant entries and cannot be changed.")
    key = (decode_matches(schema, message), _priority(schema, message))
    _check_entry(schema, kind, table.find(key) is not None, len(table))
    if kind == p4r.Update.DELETE:
        table.remove(key)
        return
    action, data = _action(schema, message)
    if not action.for_entries:
        raise p4.denied(f"Action '{action.name}' is only allowed as a default action.")
    counts = [0, 0] if schema.table.with_counters else None
    table.put(Entry(*key, (action.number, data, counts), message.metadata))


def _check_entry(schema: p4.TableSchema, kind: int, known: bool, entries: int) -> None:
    name = f"Table '{schema.name}'"
    if kind == p4r.Update.INSERT and known:
        raise p4.exists(f"{name} already has this entry: modify it instead.")
    if kind == p4r.Update.INSERT and schema.size and entries >= schema.size:
        raise p4.exhausted(f"{name} is full with {schema.size} entries.")
    if kind == p4r.Update.MODIFY and not known:
        raise p4.not_found(f"{name} has no such entry to modify: insert it first.")
    if kind == p4r.Update.DELETE and not known:
        raise p4.not_found(f"{name} has no such entry to delete.")


def _write_default(
    schema: p4.TableSchema, table: EntryTable, kind: int, message: p4r.TableEntry
) -> None:
    if kind != p4r.Update.MODIFY or message.match or message.priority:
        raise p4.invalid("A default entry is changed by MODIFY, without match and priority.")
    if schema.constant_default:
        raise p4.denied(f"The default action of table '{schema.name}' is constant.")
    if not message.HasField("action"):
        table.set_default(table.initial_default)
        return
    action, data = _action(schema, message)
    if not action.for_default:
        raise p4.denied(f"Action '{action.name}' is not allowed as a default action.")
    table.set_default((action.number, data, None))


def _action(
    schema: p4.TableSchema, message: p4r.TableEntry
) -> tuple[p4.ActionSchema, tuple[int, ...]]:
    if message.action.WhichOneof("type") != "action":
        raise p4.invalid(f"An entry of table '{schema.name}' needs an action.")
    given = message.action.action
    action = schema.actions.get(given.action_id)
    if action is None:
        raise p4.invalid(f"Table '{schema.name}' has no action with id {given.action_id:#x}.")
    values = {parameter.param_id: parameter.value for parameter in given.params}
    if len(given.params) != len(action.parameters) or len(values) != len(action.parameters):
        raise p4.invalid(f"Action '{action.name}' takes {len(action.parameters)} parameters.")
    for each in action.parameters:
        if each.id not in values:
            raise p4.invalid(f"Action '{action.name}' misses the parameter with id {each.id}.")
    return action, tuple(
        p4.decode(values[p.id], p.bitwidth, f"Parameter '{p.name}'") for p in action.parameters
    )


def _priority(schema: p4.TableSchema, message: p4r.TableEntry) -> int:
    priority = int(message.priority)
    if schema.prioritised and priority <= 0:
        raise p4.invalid(f"An entry of table '{schema.name}' needs a priority above 0.")
    if not schema.prioritised and priority:
        raise p4.invalid(f"An entry of table '{schema.name}' cannot have a priority.")
    return priority


def decode_matches(schema: p4.TableSchema, message: p4r.TableEntry) -> tuple[Match, ...]:
    """Return the match of every key field, in key order; absent fields match anything."""
    given = {match.field_id: match for match in message.match}
    if len(given) != len(message.match):
        raise p4.invalid(f"A match field of table '{schema.name}' is given twice.")
    matches = tuple(_match(field, given.pop(field.id, None)) for field in schema.fields)
    if given:
        raise p4.invalid(f"Table '{schema.name}' has no match field with id {min(given)}.")
    return matches


def _match(field: p4i.MatchField, given: p4r.FieldMatch | None) -> Match:
    what, width = f"Match field '{field.name}'", field.bitwidth
    if given is None:
        anything = _wildcard(field)
        if anything is None:
            raise p4.invalid(f"{what} is exact and must be given.")
        return anything
    kind = given.WhichOneof("field_match_type")
    if kind != p4.kind_of(field):
        raise p4.invalid(f"{what} needs a match of kind {p4.kind_of(field)}, not {kind}.")
    message = getattr(given, kind)
    if kind == "range":
        match = Range(p4.decode(message.low, width, what), p4.decode(message.high, width, what))
        if match.low > match.high:
            raise p4.invalid(f"{what} has a range that ends before it starts.")
        if match == _wildcard(field):
            raise p4.invalid(
                f"{what} has a range of all values: leave the field out to match anything."
            )
        return match
    value, mask, outside = p4.decode(message.value, width, what), (1 << width) - 1, ""
    if kind == "exact":
        return Ternary(value, EVERY_BIT)
    if kind == "ternary":
        mask, outside = p4.decode(message.mask, width, what), "outside its mask"
        if not mask:
            raise p4.invalid(f"{what} has an empty mask: leave the field out to match anything.")
    elif kind == "lpm":
        bits = message.prefix_len
        if not 0 < bits <= width:
            raise p4.invalid(f"{what} needs a prefix of 1 to {width} bits; leave it out for any.")
        mask, outside = prefix_mask(bits, width), f"after its prefix of {bits} bits"
    if value & ~mask:
        raise p4.invalid(f"{what} has ones {outside}.")
    return Ternary(value, mask)


def _wildcard(field: p4i.MatchField) -> Match | None:
    """Return the match of anything, which messages leave out; None: no match is left out."""
    if field.match_type == _MatchField.EXACT:
        return None
    if field.match_type == _MatchField.RANGE:
        return Range(0, (1 << field.bitwidth) - 1)
    return Ternary(0, 0)


def snapshot(schema: p4.TableSchema, table: EntryTable, message: p4r.TableEntry) -> Iterable[Entry]:
    """Copy the requested entries with their counts; call it between two packets."""
    if message.match:
        entry = table.find((decode_matches(schema, message), _priority(schema, message)))
        return [] if entry is None else [entry]
    wanted, entries = message.priority, table.snapshot()
    return (each for each in entries if each.priority == wanted) if wanted else entries


def encode_entries(
    schema: p4.TableSchema, entries: Iterable[Entry], with_counts: bool
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
            message.counter_data.packet_count = packets & p4.COUNT_MASK
            message.counter_data.byte_count = total & p4.COUNT_MASK
        yield p4r.Entity(table_entry=message)


def encode_table(
    pipeline: InstalledPipeline,
    schema: p4.TableSchema,
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


def encode_default(schema: p4.TableSchema, target: Target) -> p4r.Entity:
    """Return the message for a table's default entry."""
    message = p4r.TableEntry(table_id=schema.ident, is_default_action=True)
    _encode_action(schema, target, message)
    return p4r.Entity(table_entry=message)


def _encode_action(schema: p4.TableSchema, target: Target, message: p4r.TableEntry) -> None:
    action = schema.by_number.get(target[0])
    if action is None:
        return
    call = message.action.action
    call.action_id = action.ident
    for parameter, value in zip(action.parameters, target[1], strict=True):
        call.params.add(param_id=parameter.id, value=p4.encode(value))


def _encode_matches(schema: p4.TableSchema, entry: Entry, message: p4r.TableEntry) -> None:
    for field, match in zip(schema.fields, entry.matches, strict=True):
        if match == _wildcard(field):
            continue
        encoded = message.match.add(field_id=field.id)
        if isinstance(match, Range):
            encoded.range.low, encoded.range.high = p4.encode(match.low), p4.encode(match.high)
            continue
        kind = p4.kind_of(field)
        getattr(encoded, kind).value = p4.encode(match.value)
        if kind == "ternary":
            encoded.ternary.mask = p4.encode(match.mask)
        elif kind == "lpm":
            encoded.lpm.prefix_len = match.mask.bit_count()


def write_replication(
    pipeline: InstalledPipeline, kind: int, message: p4r.PacketReplicationEngineEntry
) -> None:
    """Apply one change of a multicast group or clone session."""
    which = message.WhichOneof("type")
    group, session = message.multicast_group_entry, message.clone_session_entry
    if which == "multicast_group_entry":
        ident, highest, what = group.multicast_group_id, _MAX_GROUP, "Multicast group"
    elif which == "clone_session_entry":
        ident, highest, what = session.session_id, _MAX_SESSION, "Clone session"
    else:
        raise p4.invalid("A replication entry is a multicast group or a clone session.")
    known = (which, ident) in pipeline.replication
    if not 0 < ident <= highest:
        raise p4.invalid(f"{what} {ident} is outside 1 to {highest}.")
    if kind == p4r.Update.INSERT and known:
        raise p4.exists(f"{what} {ident} exists already: modify it instead.")
    if kind != p4r.Update.INSERT and not known:
        raise p4.not_found(f"{what} {ident} does not exist.")
    replicas: Replicas = ()
    if kind == p4r.Update.DELETE:
        del pipeline.replication[which, ident]
    else:
        if session.class_of_service:
            raise p4.unimplemented(
                "Classes of service are not supported: leave class_of_service at 0."
            )
        messages = (*group.replicas, *session.replicas)
        replicas = tuple(Replica(_port(message), message.instance) for message in messages)
        if len(set(replicas)) != len(replicas):
            raise p4.invalid("A replica with the same port and instance is given twice.")
        kept = pipeline.replication[which, ident] = p4r.PacketReplicationEngineEntry()
        kept.CopyFrom(message)
    if which == "multicast_group_entry":
        pipeline.state.set_group(ident, replicas)
    else:
        pipeline.state.set_session(ident, replicas, session.packet_length_bytes)


def _port(message: p4r.Replica) -> int:
    if message.WhichOneof("port_kind") == "port":
        port = p4.decode(message.port, 32, "A replica's port")
    else:
        port = message.egress_port
    if not 0 <= port < DROP_PORT:
        raise p4.invalid(f"Egress port {port} is outside 0 to {DROP_PORT - 1}.")
    return port


def read_replication(
    pipeline: InstalledPipeline, message: p4r.PacketReplicationEngineEntry
) -> list[p4r.Entity]:
    """Return the requested groups or sessions; id 0 or no type means all."""
    wanted = message.WhichOneof("type")
    ident = message.multicast_group_entry.multicast_group_id or (
        message.clone_session_entry.session_id
    )
    return [
        p4r.Entity(packet_replication_engine_entry=entry)
        for (which, known), entry in pipeline.replication.items()
        if wanted in {None, which} and ident in {0, known}
    ]
