# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn switch` as a process of a test."""

import os

import pytest

from switchgnn.base.machine import python_program
from switchgnn.topologies.child import Child
from tests.support.commands import forkserver
from tests.support.processes import is_alive
from tests.support.speed import seconds_here


class Service:
    """A switch in a folder. A context manager; it may be started again when it has ended."""

    def __init__(self, folder, *options, variables=None):
        self.address = f"unix:{folder}/switch.sock"
        self._log = folder / "switch.log"
        self._words = [
            *python_program("switchgnn.commands", "switch", "--grpc", self.address),
            *map(str, options),
        ]
        self._variables = variables or {}
        self._child = None

    def start(self):
        self._child = Child(
            "The switch",
            self._words,
            self._log,
            pipe=True,
            environment=self._variables,
            forkserver=forkserver(),
        )
        self._child.start()

    def wait_until_serving(self):
        """Wait for its line: it listens before its program is compiled, and answers after that."""
        for line in self._child.stdout:
            if "serves P4Runtime" in line:
                return
        pytest.fail(f"it ended: {self.errors()}")

    def end(self, number):
        """Send a signal, and return the exit code."""
        assert is_alive(self._child.pid)
        os.kill(self._child.pid, number)
        return self._child.wait(seconds_here(60))

    def errors(self):
        return self._log.read_text()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._child.stop()
