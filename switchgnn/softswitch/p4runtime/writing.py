# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Apply the updates of a Write request and report their errors."""

from collections.abc import Sequence
from dataclasses import dataclass

from finsy.proto import p4r, rpc_code

from switchgnn.softswitch.errors import RequestError
from switchgnn.softswitch.p4runtime.arrays import (
    write_counter,
    write_direct_counter,
    write_register,
)
from switchgnn.softswitch.p4runtime.device import Device, InstalledPipeline
from switchgnn.softswitch.p4runtime.schema import invalid, unimplemented
from switchgnn.softswitch.p4runtime.table_entries import find_table, write_entry, write_replication
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
