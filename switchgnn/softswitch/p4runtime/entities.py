"""Apply the updates of Write requests and answer Read requests."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat, starmap
from typing import Any

from finsy.proto import p4r, rpc_code

from switchgnn.softswitch.base import schema as p4
from switchgnn.softswitch.base.errors import RequestError
from switchgnn.softswitch.native.state import NativeBatch
from switchgnn.softswitch.p4runtime import table_entries as tables
from switchgnn.softswitch.p4runtime.pipeline_config import Device, InstalledPipeline

# Updates applied between two packets, so that long Writes do not stop forwarding.
_UPDATES_PER_TURN = 128
_BATCHED_PER_TURN = 1024
_OK = p4r.Error(canonical_code=rpc_code.OK)
_KINDS = (p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE)
# An entity, or a serialized response.
_Found = p4r.Entity | bytes


@dataclass(frozen=True)
class WriteRequest:
    """A Write request: its updates are in ``batch``, if they were read natively, or ``message``."""

    message: p4r.WriteRequest
    batch: NativeBatch | None


def read_request(pipeline: InstalledPipeline | None, data: bytes) -> WriteRequest:
    """Read a Write request, natively if possible."""
    batches = None if pipeline is None else pipeline.batches
    batch = None if batches is None else batches.read(data)
    return WriteRequest(p4.decoded(p4r.WriteRequest, batch.rest if batch else data), batch)


def apply_updates(
    device: Device, pipeline: InstalledPipeline, request: WriteRequest
) -> list[p4r.Error] | None:
    """Apply all updates in order; return one error each (perhaps OK) if any failed, or None."""
    batch, updates = request.batch, request.message.updates
    count = len(updates) if batch is None else len(batch)
    errors: dict[int, p4r.Error] = {}
    place = 0

    def turn() -> None:
        nonlocal place
        end = min(place + _BATCHED_PER_TURN, count)
        for _ in range(_UPDATES_PER_TURN):
            if batch is not None:
                place = batch.apply(place, end)
            if place == end:
                return
            update = updates[place] if batch is None else p4r.Update.FromString(batch.update(place))
            error = _apply(pipeline, update)
            if error.canonical_code != rpc_code.OK:
                errors[place] = error
            place += 1

    while place < count:
        device.call(turn)
    return [errors.get(each, _OK) for each in range(count)] if errors else None


def _apply(pipeline: InstalledPipeline, update: p4r.Update) -> p4r.Error:
    kind, entity = update.type, update.entity
    what = entity.WhichOneof("entity") or "missing entity"
    try:
        if kind not in _KINDS:
            raise p4.invalid("An update needs a type: INSERT, MODIFY or DELETE.")
        if what == "table_entry":
            schema = tables.find_table(pipeline.schema, entity.table_entry.table_id)
            tables.write_entry(schema, pipeline.state.tables[schema.name], kind, entity.table_entry)
        elif what == "packet_replication_engine_entry":
            tables.write_replication(pipeline, kind, entity.packet_replication_engine_entry)
        else:
            raise p4.unimplemented(f"Writing a {what} is not supported.")
    except RequestError as error:
        return p4r.Error(canonical_code=error.code, message=str(error), space="softswitch")
    return _OK


def _indices(message: p4r.RegisterEntry | p4r.CounterEntry, size: int) -> range:
    if not message.HasField("index"):
        return range(size)
    index = int(message.index.index)
    if not 0 <= index < size:
        raise p4.invalid(f"Index {index} is outside the array of {size}.")
    return range(index, index + 1)


def _array(pipeline: InstalledPipeline, kind: str, ident: int) -> Any:  # noqa: ANN401  by its kind
    name = getattr(pipeline.schema, f"{kind}s").get(ident)
    if name is None:
        raise tables.absent(pipeline.schema, ident, kind)
    return getattr(pipeline.state, f"{kind}s")[name]


def _read_array(
    device: Device,
    pipeline: InstalledPipeline,
    message: p4r.RegisterEntry | p4r.CounterEntry,
    *,
    kind: str,
    entity: Callable[..., p4r.Entity],
) -> Iterable[p4r.Entity]:
    wanted = getattr(message, f"{kind}_id")
    idents = [wanted] if wanted else list(getattr(pipeline.schema, f"{kind}s"))
    arrays = [(ident, _array(pipeline, kind, ident).columns) for ident in idents]

    def copy() -> list[tuple[int, ...]]:
        copied: list[tuple[int, ...]] = []
        for ident, columns in arrays:
            indices = _indices(message, len(columns[0]))
            cells = (column[indices.start : indices.stop] for column in columns)
            copied += zip(repeat(ident), indices, *cells)
        return copied

    return starmap(entity, device.call(copy))


def _register_entity(ident: int, index: int, value: int) -> p4r.Entity:
    entity = p4r.Entity()
    entry = entity.register_entry
    entry.register_id = ident
    entry.index.index = index
    entry.data.bitstring = p4.encode(value)
    return entity


def _counter_entity(ident: int, index: int, packets: int, total: int) -> p4r.Entity:
    # Three times as fast as building and copying messages.
    entity = p4r.Entity()
    entry = entity.counter_entry
    entry.counter_id = ident
    entry.index.index = index
    entry.data.packet_count = packets & p4.COUNT_MASK
    entry.data.byte_count = total & p4.COUNT_MASK
    return entity


def read_entities(
    device: Device, pipeline: InstalledPipeline, entities: Iterable[p4r.Entity]
) -> Iterator[bytes]:
    """Yield serialized responses; at least an empty one."""
    # Copy everything first, so that an unknown id fails the request before any response.
    found = []
    for entity in entities:
        what = entity.WhichOneof("entity") or "missing entity"
        if what not in _HANDLERS:
            raise p4.unimplemented(f"Reading a {what} is not supported.")
        found.append(_HANDLERS[what](device, pipeline, getattr(entity, what)))
    responses = tables.pack_responses(chain.from_iterable(found))
    yield next(responses, b"")
    yield from responses


def _read_tables(
    device: Device, pipeline: InstalledPipeline, message: p4r.TableEntry
) -> Iterable[_Found]:
    schemas = list(pipeline.schema.tables.values())
    if message.table_id:
        schemas = [tables.find_table(pipeline.schema, message.table_id)]
    return chain.from_iterable(_read_table(device, pipeline, s, message) for s in schemas)


def _read_table(
    device: Device, pipeline: InstalledPipeline, schema: p4.TableSchema, message: p4r.TableEntry
) -> Iterable[_Found]:
    table = pipeline.state.tables[schema.name]
    if message.is_default_action:
        return [tables.encode_default(schema, table.default)]
    entries = device.call(lambda: tables.snapshot(schema, table, message))
    return tables.encode_table(pipeline, schema, entries, message.HasField("counter_data"))


def _read_direct_counters(
    device: Device, pipeline: InstalledPipeline, message: p4r.DirectCounterEntry
) -> Iterable[p4r.Entity]:
    wanted = message.table_entry
    idents = [wanted.table_id] if wanted.table_id else pipeline.schema.direct_counters.values()
    for schema in [tables.find_table(pipeline.schema, ident) for ident in idents]:
        table = pipeline.state.tables[schema.name]
        entries = device.call(partial(tables.snapshot, schema, table, wanted))
        for found in tables.encode_entries(schema, entries, True):
            entry = p4r.DirectCounterEntry(
                table_entry=found.table_entry, data=found.table_entry.counter_data
            )
            entry.table_entry.ClearField("counter_data")
            entry.table_entry.ClearField("action")
            yield p4r.Entity(direct_counter_entry=entry)


_HANDLERS: dict[str, Callable[[Device, InstalledPipeline, Any], Iterable[_Found]]] = {
    "table_entry": _read_tables,
    "direct_counter_entry": _read_direct_counters,
    "register_entry": partial(_read_array, kind="register", entity=_register_entity),
    "counter_entry": partial(_read_array, kind="counter", entity=_counter_entity),
    "packet_replication_engine_entry": lambda device, pipeline, message: device.call(
        lambda: tables.read_replication(pipeline, message)
    ),
}
