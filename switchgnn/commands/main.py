# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the subcommands and turns errors into a sentence and exit code 2."""

import os
import sys
from typing import TYPE_CHECKING

from switchgnn.errors import SwitchGNNError
from switchgnn.full_disk import WriteError, is_full

if TYPE_CHECKING:
    import typer

# Also where it is `python -m switchgnn`; what shells complete goes by it.
_NAME = "switchgnn"
_FAILED = 2
_INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it


def main() -> None:
    """Run the program with the arguments of the process.

    Typer itself reports wrong usage, also with exit code 2. An exit code of 1 says that sums are
    wrong, so a full disk must not end in a traceback.
    """
    # Importing takes most of a second: Ctrl-C meanwhile is no error to be traced.
    try:
        _application()(prog_name=_NAME)
    except SwitchGNNError as error:
        _print_error(error)
        sys.exit(_FAILED)
    except OSError as error:
        if not is_full(error):
            raise
        _forget_output()
        what = error.filename or "what is printed"
        _print_error(WriteError(f"Cannot write {what}: {error.strerror}; make room there."))
        sys.exit(_FAILED)
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


def _forget_output() -> None:
    """Keep Python from trying once more at its end, which would change the exit code."""
    try:
        sys.stdout.flush()
    except OSError:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)


def _print_error(error: SwitchGNNError) -> None:
    from rich.console import Console  # noqa: PLC0415

    console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    # A sentence may quote a file from elsewhere, and a terminal obeys what is no letter.
    sentence = "".join(each if each.isprintable() or each == "\n" else "?" for each in str(error))
    console.print(f"Error: {sentence}")


def _application() -> "typer.Typer":
    # Many worker processes start at a time; the imports here load only what each one needs.
    if sys.argv[1:2] == ["worker"]:
        from switchgnn.commands.worker.command import app as worker_app  # noqa: PLC0415

        return worker_app
    if sys.argv[1:2] == ["train-worker"]:
        from switchgnn.commands.train_worker.command import app as train_worker_app  # noqa: PLC0415

        return train_worker_app
    from switchgnn.commands.application import app  # noqa: PLC0415

    return app
