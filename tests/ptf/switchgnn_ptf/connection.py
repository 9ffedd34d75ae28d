# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The P4Runtime connection that all cases of one PTF process share."""

import atexit
import functools

from ptf import testutils

from switchgnn.controller import P4RuntimeClient, clear, program_cookie
from switchgnn.controller.p4runtime.state import read_groups
from switchgnn.p4src import Program, load_program, load_strawman
from tests.ptf.switchgnn_ptf.mistakes import with_mistake


@functools.cache
def program(*, strawman: bool) -> Program:
    """Return the program under test: a committed one, or one with a planted mistake."""
    committed = load_strawman() if strawman else load_program()
    mistake = testutils.test_param_get("mistake")
    return with_mistake(committed, mistake) if mistake else committed


def connection(*, strawman: bool = False) -> P4RuntimeClient:
    """Return the connection, with the program loaded."""
    client, wanted = _client(), program_cookie(program(strawman=strawman))
    cookie = client.get_pipeline_cookie()
    # Groups are left when an earlier run was killed. BMv2 would keep them while it
    # loads a program, and send everything twice once they are added again.
    if cookie != wanted or read_groups(client):
        if cookie is not None:
            clear(client)
        push(client, strawman=strawman)
    return client


def push(client: P4RuntimeClient, *, strawman: bool = False) -> None:
    """Load the program again, as after a restart: no entries, and registers of zeros."""
    wanted = program(strawman=strawman)
    client.set_pipeline(wanted, program_cookie(wanted))


@functools.cache
def _client() -> P4RuntimeClient:
    client = P4RuntimeClient(testutils.test_param_get("grpc", "127.0.0.1:9559"))
    client.open()
    atexit.register(client.close)
    return client
