# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Applies the updates of a Write request and reports each one's outcome."""

from collections.abc import Sequence

from finsy.proto import p4r, rpc_code

from switchgnn.softswitch.errors import RequestError
from switchgnn.softswitch.p4runtime.arrays import (
    write_counter,
    write_direct_counter,
    write_register,
)
from switchgnn.softswitch.p4runtime.device import Device, InstalledPipeline
from switchgnn.softswitch.p4runtime.replication_entries import write_replication
from switchgnn.softswitch.p4runtime.table_entries import find_table, write_entry
from switchgnn.softswitch.p4runtime.values import invalid, unimplemented

# Updates applied between two packets: a longer Write does not hold up forwarding.
_UPDATES_PER_TURN = 128


def apply_updates(
    device: Device, pipeline: InstalledPipeline, updates: Sequence[p4r.Update]
) -> list[p4r.Error] | None:
    """Apply every update in order.

    Args:
        device: the switch.
        pipeline: the installed program.
        updates: the updates.

    Returns:
        One error message per update when any failed (OK for those that did not), else None.
    """
    errors: list[p4r.Error] = []
    for start in range(0, len(updates), _UPDATES_PER_TURN):
        batch = updates[start : start + _UPDATES_PER_TURN]

        def apply(batch: Sequence[p4r.Update] = batch) -> list[p4r.Error]:
            return [_apply(device, pipeline, update) for update in batch]

        errors += device.call(apply)
    return errors if any(error.canonical_code != rpc_code.OK for error in errors) else None


_OK = p4r.Error(canonical_code=rpc_code.OK)


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
