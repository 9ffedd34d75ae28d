# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Compiles the C++ of a program with the system's compiler, once."""

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial
from pathlib import Path

from switchgnn.base import native as native_cache
from switchgnn.base.native import (
    CompilerError,
    ForeignCacheError,
    cache_folder,
    compile_unit,
    compiled_once,
    needed_compiler,
    sources_in,
)
from switchgnn.softswitch.errors import SoftSwitchError

RUNTIME = Path(__file__).parent / "runtime"
SOFTSWITCH = Path(__file__).parent.parent
# All that has a say in what becomes of a program's document.
TRANSLATOR = (
    *("document.py", "loader.py", "program.py", "codegen/*.py", "errors.py", "hashing.py"),
    *("native/library.py", "native/translation/*.py"),
)
_FLAGS = ("-std=c++17", "-O2", "-ftree-vectorize", "-march=native", "-fPIC", "-shared", "-w")
_CACHE = "softswitch"


class NoCompilerError(SoftSwitchError):
    """There is no C++ compiler, or it cannot compile a program."""


def compiled_library(document: bytes, translate: Callable[[], str]) -> Path:
    """Return the library of a program, compiled if need be.

    A document is known by itself: only one that was not compiled here yet is translated.

    Args:
        document: the BMv2 JSON document of the program.
        translate: returns the C++ of the program.

    Returns:
        The path of the library.

    Raises:
        NoCompilerError: there is no compiler, or it fails, or the library cannot be kept.
        SoftSwitchError: what the translation raises.
    """
    try:
        compiler = needed_compiler("The native switch")
    except CompilerError as error:
        raise NoCompilerError(f"{error}, or take --backend python.") from error
    folder = cache_folder(_CACHE)
    made_of = (
        *(compiler, _version(compiler), _processor(), *_FLAGS, document),
        *(sys.version, *_translator(), *sources_in(RUNTIME)),
    )
    try:
        return compiled_once(folder, "program", made_of, partial(_compile, compiler, translate))
    except CompilerError as error:
        raise NoCompilerError(str(error)) from error
    except (OSError, ForeignCacheError) as error:
        raise NoCompilerError(f"Cannot keep the compiled program in {folder}: {error}") from error


def why_not_kept() -> str | None:
    """Return why compiled programs cannot be kept here; None: they can."""
    return native_cache.why_not_kept(cache_folder(_CACHE))


def translator_files() -> Iterator[Path]:
    """Yield the files of the translator in a fixed order."""
    for pattern in TRANSLATOR:
        yield from sorted(SOFTSWITCH.glob(pattern))


def _translator() -> Iterator[str | bytes]:
    for path in translator_files():
        yield path.relative_to(SOFTSWITCH).as_posix()
        yield path.read_bytes()


def _compile(compiler: str, translate: Callable[[], str], library: Path) -> None:
    program = library.with_suffix(".h")
    program.write_text(translate())
    unit = f'#include "{program.name}"\n#include "interface.h"\n'
    output = ("-o", str(library.absolute()))
    command = (compiler, *_FLAGS, "-I", str(RUNTIME), "-x", "c++", "-", *output)
    compile_unit(command, unit, "the program", library.absolute().parent)


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


# The variable of the environment that says it where no option does.
VARIABLE = "SWITCHGNN_BACKEND"


class Backend(str, Enum):
    """The code that a program becomes: C++, Python, or C++ where a compiler is there."""

    NATIVE = "native"
    PYTHON = "python"
    AUTO = "auto"


def backend_here(asked: Backend | None) -> Backend:
    """Return what was asked for; where nothing was, what the environment says.

    Raises:
        SoftSwitchError: the environment names no back end.
    """
    if asked is not None:
        return asked
    said = os.environ.get(VARIABLE) or Backend.AUTO.value
    try:
        return Backend(said)
    except ValueError:
        names = ", ".join(each.value for each in Backend)
        raise SoftSwitchError(
            f"{VARIABLE} says '{said}', and there is no such back end: take one of {names}."
        ) from None
