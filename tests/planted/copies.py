# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A copy of the checkout in which tests run by themselves, with a mistake or without."""

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.planted.planting import ROOT

# The environment variable that marks processes of a copy.
_MARK = "SWITCHGNN_PLANTED"
# Leftovers are reported at teardown.
_FAILED = re.compile(r"^FAILED |ERROR at teardown of ", re.MULTILINE)
_BROKEN = re.compile(r"ERROR at setup of |ERROR collecting ")
# Pytest's folder for its own temporary files.
_OF_PYTEST = "PYTEST_DEBUG_TEMPROOT"
_NOTHING_RAN = 5
_PYTEST = ("-m", "pytest", "--level", "test", "-x", "-p", "no:cacheprovider", "--timeout", "100")


@dataclass(frozen=True)
class Verdict:
    """What a run of pytest came to.

    Attributes:
        code: its exit code.
        output: what it printed.
    """

    code: int
    output: str

    @property
    def failed(self) -> bool:
        """Whether a test failed; a test that could not begin is no proof of anything."""
        return self.code == 1 and bool(_FAILED.search(self.output)) and not self.broken

    @property
    def broken(self) -> bool:
        """Whether a test could not even begin."""
        return bool(_BROKEN.search(self.output))

    @property
    def all_skipped(self) -> bool:
        """Whether the machine lacks what every one of them needs."""
        return self.code == _NOTHING_RAN or (self.code == 0 and " passed" not in self.output)


def copy_of_the_tree(folder):
    """Copy what git knows of, with links as links."""
    named = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, named.stdout.decode().split("\0")):
        if os.path.lexists(ROOT / name):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    return folder


def run_tests(folder, nodes, *options):
    """Run pytest in a copy; whatever it leaves behind is ended."""
    inherited = {
        name: it
        for name, it in os.environ.items()
        if not name.startswith("PYTEST_") or name == _OF_PYTEST
    }
    try:
        done = subprocess.run(
            [sys.executable, *_PYTEST, *options, *nodes],
            cwd=folder,
            env={**inherited, "PYTHONPATH": str(folder), _MARK: str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    finally:
        _end_what_is_left(f"{_MARK}={folder}".encode())
    return Verdict(done.returncode, done.stdout)


def _end_what_is_left(mark):
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)
