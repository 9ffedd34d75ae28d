# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a command of the docs as a reader would, after `. .venv/bin/activate`."""

import os
import subprocess
import sys
from pathlib import Path

ENVIRONMENT = {
    **os.environ,
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    # Root may start ranks of Open MPI only if it says so twice.
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


def run_command(command, folder):
    """Run it with bash in the folder; it must succeed within 100 s."""
    result = subprocess.run(
        ["bash", "-euc", command],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert result.returncode == 0, result.stdout + result.stderr
