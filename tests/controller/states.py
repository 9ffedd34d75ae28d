# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Comparing what a switch holds."""

from switchgnn.controller import P4RuntimeClient
from switchgnn.controller.change import change_between
from switchgnn.controller.p4runtime.state import read_state
from tests.support.speed import seconds_here


def holds(client, layout):
    """Return all that a switch holds, or None when it runs no program."""
    if client.get_pipeline_cookie() is None:
        return None
    return read_state(client, layout)


def same(layout, one, other):
    return change_between(layout, one, other).counts.total == 0


def observed(address, layout):
    with P4RuntimeClient(address, primary=False, deadline=seconds_here(3)) as client:
        return holds(client, layout)
