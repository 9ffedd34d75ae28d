# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Apply the updates of a Write request; convert registers and counters of messages."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from finsy.proto import p4d, p4r, rpc_code

from switchgnn.softswitch.errors import RequestError
from switchgnn.softswitch.p4runtime.device import Device, InstalledPipeline
from switchgnn.softswitch.p4runtime.schema import (
    COUNT_MASK,
    Schema,
    decode,
    decode_counts,
    encode,
    invalid,
    not_found,
    unimplemented,
)
from switchgnn.softswitch.p4runtime.table_entries import (
    absent,
    decode_matches,
    find_table,
    write_entry,
    write_replication,
)
from switchgnn.softswitch.state import CounterCells, RegisterCells
from switchgnn.softswitch.tables import Batch

# Updates applied between two packets, so that long Writes do not stop forwarding.
_UPDATES_PER_TURN = 128
_BATCHED_PER_TURN = 1024
_OK = p4r.Error(canonical_code=rpc_code.OK)


@dataclass(frozen=True)
class WriteRequest:
    """A Write request: updates read natively in ``batch``, all others in ``message``."""

    message: p4r.WriteRequest
    batch: Batch | None


def read_request(pipeline: InstalledPipeline | None, data: bytes) -> WriteRequest:
    """Read a Write request, natively as far as possible; raise DecodeError."""
    batches = None if pipeline is None else pipeline.batches
    batch = None if batches is None else batches.read(data)
    return WriteRequest(p4r.WriteRequest.FromString(batch.rest if batch else data), batch)


def apply_updates(
    device: Device, pipeline: InstalledPipeline, request: WriteRequest
) -> list[p4r.Error] | None:
    """Apply all updates in order; return one error each (perhaps OK) if any failed, or None."""
    updates = request.message.updates
    if request.batch is not None:
        return _BatchedUpdates(device, pipeline, request.batch, updates).apply()
    errors: list[p4r.Error] = []
    for start in range(0, len(updates), _UPDATES_PER_TURN):
        batch = updates[start : start + _UPDATES_PER_TURN]

        def apply(batch: Sequence[p4r.Update] = batch) -> list[p4r.Error]:
            return [_apply(device, pipeline, update) for update in batch]

        errors += device.call(apply)
    return errors if any(error.canonical_code != rpc_code.OK for error in errors) else None


class _BatchedUpdates:
    """Updates applied natively as far as possible, and here otherwise."""

    def __init__(
        self, device: Device, pipeline: InstalledPipeline, batch: Batch, rest: Sequence[p4r.Update]
    ) -> None:
        self._device = device
        self._pipeline = pipeline
        self._batch = batch
        self._rest = iter(rest)
        self._errors: dict[int, p4r.Error] = {}
        self._place = 0

    def apply(self) -> list[p4r.Error] | None:
        """Apply all updates and return their errors, or None."""
        count = len(self._batch)
        while self._place < count:
            self._device.call(self._turn)
        if not self._errors:
            return None
        return [self._errors.get(place, _OK) for place in range(count)]

    def _turn(self) -> None:
        end = min(self._place + _BATCHED_PER_TURN, len(self._batch))
        for _ in range(_UPDATES_PER_TURN):
            self._place = self._batch.apply(self._place, end)
            if self._place == end:
                return
            error = _apply(self._device, self._pipeline, self._update())
            if error.canonical_code != rpc_code.OK:
                self._errors[self._place] = error
            self._place += 1

    def _update(self) -> p4r.Update:
        """Return the update that native code did not read or could not apply."""
        if self._batch.is_read(self._place):
            return p4r.Update.FromString(self._batch.update(self._place))
        return next(self._rest)


def _apply(device: Device, pipeline: InstalledPipeline, update: p4r.Update) -> p4r.Error:
    try:
        _dispatch(device, pipeline, update)
    except RequestError as error:
        return p4r.Error(canonical_code=error.code, message=str(error), space="softswitch")
    return _OK


def _dispatch(device: Device, pipeline: InstalledPipeline, update: p4r.Update) -> None:
    kind, entity = update.type, update.entity
    if kind == p4r.Update.UNSPECIFIED:
        raise invalid("An update needs a type: INSERT, MODIFY or DELETE.")
    what = entity.WhichOneof("entity")
    if what == "table_entry":
        schema = find_table(pipeline.schema, entity.table_entry.table_id)
        write_entry(schema, pipeline.state.tables[schema.name], kind, entity.table_entry)
    elif what == "register_entry":
        write_register(pipeline, kind, entity.register_entry)
    elif what == "counter_entry":
        write_counter(pipeline, kind, entity.counter_entry)
    elif what == "direct_counter_entry":
        write_direct_counter(pipeline, kind, entity.direct_counter_entry)
    elif what == "packet_replication_engine_entry":
        entry = entity.packet_replication_engine_entry
        write_replication(pipeline, device.replication, kind, entry)
    else:
        raise unimplemented(f"Writing a {what or 'missing entity'} is not supported.")


def _named(schema: Schema, names: Mapping[int, str], ident: int, kind: str) -> str:
    name = names.get(ident)
    if name is None:
        raise absent(schema, ident, kind)
    return name


def _only_modify(kind: int) -> None:
    if kind != p4r.Update.MODIFY:
        raise invalid("Registers and counters are only changed by MODIFY.")


def _indices(message: p4r.RegisterEntry | p4r.CounterEntry, size: int) -> range:
    if not message.HasField("index"):
        return range(size)
    index = int(message.index.index)
    if not 0 <= index < size:
        raise invalid(f"Index {index} is outside the array of {size}.")
    return range(index, index + 1)


def write_register(pipeline: InstalledPipeline, kind: int, message: p4r.RegisterEntry) -> None:
    """Set one cell, or every cell when no index is given."""
    _only_modify(kind)
    register = _register(pipeline, message)
    if message.data.WhichOneof("data") != "bitstring":
        raise invalid("Register data is a bitstring.")
    value = decode(message.data.bitstring, register.width, "Register data")
    for index in _indices(message, register.size):
        register.cells[index] = value


def _register(pipeline: InstalledPipeline, message: p4r.RegisterEntry) -> RegisterCells:
    name = _named(pipeline.schema, pipeline.schema.registers, message.register_id, "register")
    return pipeline.state.registers[name]


def read_registers(
    pipeline: InstalledPipeline, message: p4r.RegisterEntry
) -> tuple[list[tuple[int, int]], list[list[int]]]:
    """Copy the requested cells: [(register id, first index)] and their values."""
    if message.register_id:
        register = _register(pipeline, message)
        indices = _indices(message, register.size)
        return [(message.register_id, indices.start)], [
            list(register.cells[indices.start : indices.stop])
        ]
    places = [(ident, 0) for ident in pipeline.schema.registers]
    state = pipeline.state.registers
    return places, [list(state[name].cells) for name in pipeline.schema.registers.values()]


def encode_registers(
    places: list[tuple[int, int]], values: list[list[int]]
) -> Iterator[p4r.Entity]:
    """Yield the messages for copied cells."""
    for (ident, first), cells in zip(places, values, strict=True):
        for index, value in enumerate(cells, first):
            yield p4r.Entity(
                register_entry=p4r.RegisterEntry(
                    register_id=ident,
                    index=p4r.Index(index=index),
                    data=p4d.P4Data(bitstring=encode(int(value))),
                )
            )


def write_counter(pipeline: InstalledPipeline, kind: int, message: p4r.CounterEntry) -> None:
    """Set the counts of one index, or of every index when none is given."""
    _only_modify(kind)
    counter = _counter(pipeline, message)
    packets, total = decode_counts(message.data)
    for index in _indices(message, counter.size):
        counter.packets[index] = packets
        counter.bytes[index] = total


def _counter(pipeline: InstalledPipeline, message: p4r.CounterEntry) -> CounterCells:
    name = _named(pipeline.schema, pipeline.schema.counters, message.counter_id, "counter")
    return pipeline.state.counters[name]


Counts = list[tuple[int, int, int, int]]  # counter id, index, packets, bytes


def read_counters(pipeline: InstalledPipeline, message: p4r.CounterEntry) -> Counts:
    """Copy the requested counts."""
    if message.counter_id:
        counter = _counter(pipeline, message)
        return _counts(message.counter_id, counter, _indices(message, counter.size))
    state = pipeline.state.counters
    return [
        row
        for ident, name in pipeline.schema.counters.items()
        for row in _counts(ident, state[name], range(state[name].size))
    ]


def _counts(ident: int, counter: CounterCells, indices: range) -> Counts:
    some = slice(indices.start, indices.stop)
    counts = zip(indices, counter.packets[some], counter.bytes[some], strict=True)
    return [(ident, index, packets, total) for index, packets, total in counts]


def encode_counters(rows: Counts) -> Iterator[p4r.Entity]:
    """Yield the messages for copied counts."""
    for ident, index, packets, total in rows:
        # Three times as fast as building and copying messages.
        entity = p4r.Entity()
        entry = entity.counter_entry
        entry.counter_id = ident
        entry.index.index = index
        entry.data.packet_count = packets & COUNT_MASK
        entry.data.byte_count = total & COUNT_MASK
        yield entity


def write_direct_counter(
    pipeline: InstalledPipeline, kind: int, message: p4r.DirectCounterEntry
) -> None:
    """Set the counts of one table entry."""
    _only_modify(kind)
    schema = find_table(pipeline.schema, message.table_entry.table_id)
    table = pipeline.state.tables[schema.name]
    key = (decode_matches(schema, message.table_entry), message.table_entry.priority)
    if table.find(key) is None:
        raise not_found(f"Table '{schema.name}' has no such entry.")
    if not schema.table.with_counters:
        raise invalid(f"Table '{schema.name}' has no direct counter.")
    table.set_counts(key, decode_counts(message.data))
