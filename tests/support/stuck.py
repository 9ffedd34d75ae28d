# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a program was doing that does not end."""

import signal
import subprocess

import pytest

from tests.support.speed import seconds_here

# Python dumps the stacks of an aborted program.
STACKS_ON_ABORT = {"PYTHONFAULTHANDLER": "1"}
_LAST_CHARACTERS = 4000


def output_of(process, log):
    """Return the output of a process; if it hangs, its threads and the end of its log."""
    try:
        return process.communicate(timeout=seconds_here())[0]
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        process.wait()
        pytest.fail(f"It did not end: {log.read_text(errors='replace')[-_LAST_CHARACTERS:]}")
