# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The P4Runtime connection that all cases of one PTF process share."""

import atexit
import functools

from ptf import testutils

from switchgnn.controller import P4RuntimeClient, clear, program_cookie
from switchgnn.controller.state import read_groups
from switchgnn.p4src import Program, load_program
from switchgnn_ptf.mistakes import with_mistake


@functools.cache
def program() -> Program:
    """Return the program under test: the committed one, or one with a planted mistake."""
    committed = load_program()
    mistake = testutils.test_param_get("mistake")
    return with_mistake(committed, mistake) if mistake else committed


@functools.cache
def connection() -> P4RuntimeClient:
    """Return the connection, with the program loaded."""
    client = P4RuntimeClient(testutils.test_param_get("grpc", "127.0.0.1:9559"))
    client.open()
    atexit.register(client.close)
    cookie = client.get_pipeline_cookie()
    # Groups are left when an earlier run was killed. BMv2 would keep them while it
    # loads a program, and send everything twice once they are added again.
    if cookie != program_cookie(program()) or read_groups(client):
        if cookie is not None:
            clear(client)
        push(client)
    return client


def push(client: P4RuntimeClient) -> None:
    """Load the program anew, as after a restart: no entries, and registers of zeros."""
    client.set_pipeline(program(), program_cookie(program()))
