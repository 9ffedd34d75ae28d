# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Compiles the C++ of a program with the system's compiler, once."""

import os
import platform
import shutil
import subprocess
from functools import partial
from pathlib import Path

from switchgnn.native_cache import ForeignCacheError, cache_folder, compiled_once, sources_in
from switchgnn.softswitch.errors import SoftSwitchError

RUNTIME = Path(__file__).parent / "runtime"
_COMPILERS = ("c++", "g++", "clang++")
_FLAGS = ("-std=c++17", "-O2", "-ftree-vectorize", "-march=native", "-fPIC", "-shared", "-w")
_LAST_WORDS = 400
_CACHE = "softswitch"


class NoCompilerError(SoftSwitchError):
    """There is no C++ compiler, or it cannot compile a program."""


def find_compiler() -> str | None:
    """Return the path of the C++ compiler: $CXX, or one of those on the PATH; None without one."""
    names = (os.environ["CXX"],) if os.environ.get("CXX") else _COMPILERS
    return next((path for path in map(shutil.which, names) if path), None)


def compiled_library(source: str) -> Path:
    """Return the library of a program, compiled if need be.

    Args:
        source: the C++ of the program.

    Returns:
        The path of the library.

    Raises:
        NoCompilerError: there is no compiler, or it fails, or the library cannot be kept.
    """
    compiler = find_compiler()
    if compiler is None:
        raise NoCompilerError(
            f"The native switch needs a C++ compiler, but {' or '.join(_COMPILERS)} is not on the "
            "PATH: apt-get install g++, or take --backend python."
        )
    folder = cache_folder(_CACHE)
    made_of = (compiler, _version(compiler), _processor(), *_FLAGS, source, *sources_in(RUNTIME))
    try:
        return compiled_once(folder, "program", made_of, partial(_compile, compiler, source))
    except (OSError, ForeignCacheError) as error:
        raise NoCompilerError(f"Cannot keep the compiled program in {folder}: {error}") from error


def _compile(compiler: str, source: str, library: Path) -> None:
    program = library.with_suffix(".h")
    program.write_text(source)
    unit = f'#include "{program.name}"\n#include "interface.h"\n'
    places = ("-I", str(RUNTIME))
    result = subprocess.run(
        [compiler, *_FLAGS, *places, "-x", "c++", "-", "-o", str(library.absolute())],
        input=unit,
        # A unit from standard input includes what lies in the current folder before all else.
        cwd=library.absolute().parent,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        raise NoCompilerError(
            f"{compiler} cannot compile the program: {result.stderr.strip()[:_LAST_WORDS]}"
        )


def _version(compiler: str) -> str:
    result = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    return result.stdout


def _processor() -> str:
    """Return what tells one kind of processor from another: a home may be shared by machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    wanted = ("flags", "Features", "model name", "CPU part")
    return platform.machine() + "".join(sorted({x for x in lines if x.startswith(wanted)}))
