"""Runs a command of the docs as a reader would, after `. .venv/bin/activate`."""

import os
import re
import shlex
import sys
from pathlib import Path

from tests.support.commands import switchgnn
from tests.support.processes import run_program

ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


# A command with none of these means the same without a shell.
SHELL = re.compile(r"[|&;<>$`*?~(){}\\]")


def run_command(command, folder):
    """Run a command with bash in the folder, which must succeed within 100 s; return its output."""
    program, *arguments = shlex.split(command, comments=True)
    if program == "switchgnn" and not SHELL.search(command):
        result = switchgnn(*arguments, folder=folder)
    else:
        result = run_program(["bash", "-euc", command], cwd=folder, env=ENVIRONMENT)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout
