# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The worker processes that `run`, `train` and `allreduce` start, and how they get their tasks.

Many start at once, so each imports only the module of its task.
"""

import importlib
import signal
import sys

# By the name of the command, the module whose `run` takes a task as one line of JSON.
WORKERS = {
    "worker": "switchgnn.host.worker",
    "train-worker": "switchgnn.training.worker",
    "reduce-worker": "switchgnn.host.reduce.worker",
    "gloo-worker": "switchgnn.training.allreduce",
}


def run_worker(name: str) -> None:
    """Take a task from standard input and do it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    line = sys.stdin.readline()
    importlib.import_module(WORKERS[name]).run(line)
