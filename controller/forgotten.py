# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a switch that came back with its tables, and empty registers, has to say of its session."""

from finsy.proto import p4i, p4r

_TABLE = "session"
_ANY_TURN = "any_turn"


def forget_turn(p4info: p4i.P4Info, entry: p4r.TableEntry) -> p4r.TableEntry:
    """Return a default action that was kept over a restart, as a controller would write it then.

    The registers say whose turn it is, and are lost. A controller that installs a plan on a switch
    that was restarted says so with `any_turn`; without it the switch would refuse the workers of a
    run that goes on.

    Args:
        p4info: of the program that the switch runs.
        entry: a default action of any of its tables.

    Returns:
        A copy with `any_turn` if it is that of a session; otherwise the same.
    """
    called = entry.action.action
    names = {
        param.id: param.name
        for action in p4info.actions
        if action.preamble.id == called.action_id
        for param in action.params
    }
    if _ANY_TURN not in names.values() or not any(
        table.preamble.id == entry.table_id and table.preamble.alias == _TABLE
        for table in p4info.tables
    ):
        return entry
    copy = p4r.TableEntry()
    copy.CopyFrom(entry)
    for param in copy.action.action.params:
        if names.get(param.param_id) == _ANY_TURN:
            param.value = b"\x01"
    return copy
