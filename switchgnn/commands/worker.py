# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn worker`: one worker process, started by `switchgnn run`."""

import signal
import sys

import typer

from switchgnn.host.worker import WorkerTask, run_worker

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def group() -> None:
    """Make `worker` a subcommand, although it is the only one here."""


@app.command()
def worker() -> None:
    """Take a task as one line of JSON from standard input and do it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    run_worker(WorkerTask.from_json(sys.stdin.readline()))
