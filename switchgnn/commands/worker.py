# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn worker` and its like: the worker processes that `run`, `train` and `allreduce` start.

Each imports only what it needs, as many start at once.
"""

import signal
import sys

import typer

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def worker() -> None:
    """Take a task as one line of JSON from standard input and do it."""
    from switchgnn.host.worker import WorkerTask, run_worker  # noqa: PLC0415

    run_worker(WorkerTask.from_json(_task()))


@app.command()
def train_worker() -> None:
    """Take a task as one line of JSON from standard input and do it."""
    line = _task()
    from switchgnn.training.worker import TrainTask, run_train_worker  # noqa: PLC0415

    run_train_worker(TrainTask.from_json(line))


@app.command()
def reduce_worker() -> None:
    """Take a task as one line of JSON from standard input and do it."""
    from switchgnn.host.reduce.worker import ReduceTask, run_reduce_worker  # noqa: PLC0415

    run_reduce_worker(ReduceTask.from_json(_task()))


@app.command()
def gloo_worker() -> None:
    """Take a task as one line of JSON from standard input and do it."""
    line = _task()
    from switchgnn.training.allreduce import GlooTask, run_gloo_worker  # noqa: PLC0415

    run_gloo_worker(GlooTask.from_json(line))


def _task() -> str:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    return sys.stdin.readline()
