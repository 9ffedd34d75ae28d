# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Puts into a switch what a file has kept, as a controller would."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from finsy.proto import p4i, p4r, rpc_code
from google.protobuf.message import DecodeError

from switchgnn.softswitch.daemon.state_file import open_state, unusable
from switchgnn.softswitch.errors import RequestError
from switchgnn.softswitch.p4runtime.device import Device, InstalledPipeline
from switchgnn.softswitch.p4runtime.pipeline_config import PipelineConfigs
from switchgnn.softswitch.p4runtime.writing import apply_updates, read_request

_Set = p4r.SetForwardingPipelineConfigRequest

# Changes a default action that was kept, for programs in which one says what a switch remembers.
Amend = Callable[[p4i.P4Info, p4r.TableEntry], p4r.TableEntry]


def as_it_was(_p4info: p4i.P4Info, entry: p4r.TableEntry) -> p4r.TableEntry:
    """Return a default action as it was kept."""
    return entry


@dataclass(frozen=True)
class Restored:
    """How much was put into a switch.

    Attributes:
        entries: table entries.
        groups: multicast groups and clone sessions.
    """

    entries: int
    groups: int


def load_config(configs: PipelineConfigs, config: p4r.ForwardingPipelineConfig) -> None:
    """Install a program, as a controller would.

    Raises:
        RequestError: it is refused.
    """
    configs.set(_Set(action=_Set.VERIFY_AND_COMMIT, config=config))


def restore(
    path: Path, device: Device, configs: PipelineConfigs, amend: Amend = as_it_was
) -> Restored | None:
    """Load a program and all that was set from a file; its caller has the switch alone.

    Args:
        path: of the file.
        device: the switch.
        configs: its programs.
        amend: changes the default actions before they are written.

    Returns:
        How much it was; None where there is no file, or no program was installed.

    Raises:
        StateFileError: it is not in order; what was loaded until then is in the switch.
    """
    with open_state(path) as messages:
        if messages is None:
            return None
        try:
            config = p4r.ForwardingPipelineConfig.FromString(next(messages, b""))
            if not config.p4_device_config:
                return None
            load_config(configs, config)
            return _restore_entries(path, device, configs.installed(), messages, amend)
        except DecodeError:
            raise unusable(path, "it has something else than P4Runtime's messages") from None
        except RequestError as error:
            raise unusable(path, f"the switch refuses the program in it ({error})") from None


def _restore_entries(
    path: Path,
    device: Device,
    pipeline: InstalledPipeline,
    messages: Iterator[bytes],
    amend: Amend,
) -> Restored:
    # Entries that a program begins with, and that controllers may change, are among those kept.
    for schema in pipeline.schema.tables.values():
        if not schema.constant:
            pipeline.state.tables[schema.name].clear()
    entries = groups = 0
    for message in messages:
        entities = p4r.ReadResponse.FromString(message).entities
        kinds = [entity.WhichOneof("entity") for entity in entities]
        entries += kinds.count("table_entry")
        groups += kinds.count("packet_replication_engine_entry")
        if not set(kinds) <= _KINDS:
            raise unusable(path, "it has what no controller sets")
        updates = [_update(entity, pipeline.config.p4info, amend) for entity in entities]
        request = p4r.WriteRequest(updates=updates).SerializeToString()
        errors = apply_updates(device, pipeline, read_request(pipeline, request)) or ()
        for error in errors:
            if error.canonical_code != rpc_code.OK:
                raise unusable(path, f"the switch refuses an entry in it ({error.message})")
    return Restored(entries, groups)


_KINDS = {"table_entry", "packet_replication_engine_entry"}


def _update(entity: p4r.Entity, p4info: p4i.P4Info, amend: Amend) -> p4r.Update:
    if not entity.table_entry.is_default_action:
        return p4r.Update(type=p4r.Update.INSERT, entity=entity)
    amended = amend(p4info, entity.table_entry)
    return p4r.Update(type=p4r.Update.MODIFY, entity=p4r.Entity(table_entry=amended))
