# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn train-worker`: one worker process, started by `switchgnn train`."""

import signal
import sys

import typer

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def group() -> None:
    """Make `train-worker` a subcommand, although it is the only one here."""


@app.command()
def train_worker() -> None:
    """Take a task as one line of JSON from standard input and do it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    from switchgnn.training.worker import TrainTask, run_train_worker  # noqa: PLC0415

    run_train_worker(TrainTask.from_json(sys.stdin.readline()))
