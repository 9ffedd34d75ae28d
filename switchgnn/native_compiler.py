# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The system's C++ compiler, for what is compiled on the user's machine."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from switchgnn.errors import SwitchGNNError

_NAMES = ("c++", "g++", "clang++")
_LAST_WORDS = 400


class CompilerError(SwitchGNNError):
    """There is no C++ compiler, or it fails; the sentence begins with who needs it."""


def find_compiler() -> str | None:
    """Return the path of the C++ compiler: $CXX, or one of those on the PATH; None without one."""
    return next((path for path in map(shutil.which, _wanted()) if path), None)


def needed_compiler(who: str) -> str:
    """Return the path of the C++ compiler.

    Raises:
        CompilerError: there is none; ``who`` needs it.
    """
    found = find_compiler()
    if found is None:
        raise CompilerError(
            f"{who} needs a C++ compiler, but {' or '.join(_wanted())} is not on the PATH: "
            "apt-get install g++"
        )
    return found


def compile_unit(command: Sequence[str], unit: str, what: str, folder: Path) -> None:
    """Run a compiler on a unit from its standard input.

    Args:
        command: the compiler with all its arguments, a ``-`` in place of the unit.
        unit: the text of the unit.
        what: what is compiled, for the error.
        folder: where the compiler runs: a unit from standard input includes what lies in the
            current folder before all else, so nobody else may write to it.

    Raises:
        CompilerError: the compiler fails; its last words are in the sentence.
    """
    result = subprocess.run(
        command, input=unit, cwd=folder, capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        raise CompilerError(
            f"{command[0]} cannot compile {what}: {result.stderr.strip()[-_LAST_WORDS:]}"
        )


def _wanted() -> Sequence[str]:
    return (os.environ["CXX"],) if os.environ.get("CXX") else _NAMES
