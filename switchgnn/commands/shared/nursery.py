# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What forks the switches and workers of a command."""

import importlib

from switchgnn.topologies.processes.nursery import Nursery

# What they import, so that it is there when they are forked.
_MODULES = ("switchgnn.softswitch.daemon.command", "switchgnn.commands.worker.command")


def fork_nursery() -> Nursery:
    """Return a nursery, not yet started, that is forked from this process with its modules."""
    for name in _MODULES:
        importlib.import_module(name)
    return Nursery()
