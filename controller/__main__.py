# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the controller's commands by themselves: ``python -m switchgnn.controller``."""

import sys

import typer

from switchgnn.base.errors import SwitchGNNError
from switchgnn.controller.cli import app


def main() -> None:
    """Run a command; a failure is one sentence and exit code 2."""
    try:
        app(prog_name="python -m switchgnn.controller")
    except SwitchGNNError as error:
        typer.echo(str(error), err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
