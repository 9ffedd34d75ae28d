# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Takes everything out of a switch but its program."""

from switchgnn.controller.change import ChangeCounts, change_between
from switchgnn.controller.errors import VerificationError
from switchgnn.controller.p4runtime.client import P4RuntimeClient
from switchgnn.controller.p4runtime.state import empty_state, read_state


def clear(client: P4RuntimeClient) -> ChangeCounts:
    """Remove all entries and groups, restore the default actions, and verify; tell how much.

    The registers keep what they hold, and the session number that would tell
    is gone: the next install loads the program anew.

    Raises:
        PipelineMissingError: the switch runs no program.
        WriteRefusedError: it refuses.
        VerificationError: something is still there.
    """
    layout = client.get_layout()
    empty = empty_state(layout)
    change = change_between(layout, read_state(client, layout), empty)
    client.write_requests(change.requests())
    rest = change_between(layout, read_state(client, layout), empty)
    if rest.counts.total:
        raise VerificationError(
            f"Switch {client.address} is not empty after clearing it: {rest.first_difference()}. "
            "Something else writes to it: stop that and clear it again."
        )
    return change.counts
