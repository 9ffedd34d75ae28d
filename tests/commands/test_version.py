# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn --version` tells the version of the code that runs, installed or not."""

import re
import subprocess
import sys

from typer.testing import CliRunner

from switchgnn import __version__
from switchgnn.commands.application import app


def test_the_version_is_printed():
    shown = CliRunner().invoke(app, ["--version"])
    assert shown.exit_code == 0
    assert shown.output == f"switchgnn {__version__}\n"


def test_the_program_takes_it_too():
    command = [sys.executable, "-m", "switchgnn.commands", "--version"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(r"switchgnn \d+\.\d+\.\d+\S*\n", told)
