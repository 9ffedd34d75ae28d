"""Compile programs with the system's C++ compiler, and cache the libraries."""

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial
from pathlib import Path

from switchgnn.base import native
from switchgnn.softswitch.base.errors import SoftSwitchError

RUNTIME = Path(__file__).parent / "runtime"
SOFTSWITCH = Path(__file__).parent.parent
TRANSLATOR = (
    *("base/*.py", "lowering/*.py"),
    *(f"native/{name}.py" for name in ("library", "render", "source")),
)
VARIABLE = "SWITCHGNN_BACKEND"  # environment variable, for want of an option
_FLAGS = (
    *("-std=c++17", "-O2", "-fno-gcse", "-ftree-vectorize"),
    "--param=sccvn-max-alias-queries-per-access=50",  # saves a fifth of the compiler's time
    *("-march=native", "-fPIC", "-shared", "-w"),
)
_CACHE = "softswitch"


class NoCompilerError(SoftSwitchError):
    """There is no C++ compiler, or it cannot compile a program."""


def compiled_library(document: bytes, translate: Callable[[], str]) -> Path:
    """Return the library of a program; compile it if it is not in the cache.

    Documents in the cache are not translated.
    """
    try:
        compiler = native.needed_compiler("The native switch")
    except native.CompilerError as error:
        raise NoCompilerError(f"{error}, or use --backend python.") from error
    version = subprocess.run([compiler, "--version"], capture_output=True, check=False).stdout
    made_of = (
        *(compiler, version, processor(), *_FLAGS, document),
        *(path.relative_to(SOFTSWITCH).as_posix() for path in translator_files()),
        *(path.read_bytes() for path in translator_files()),
        *(sys.version, *native.sources_in(RUNTIME)),
        (native.SHARED / "crc32.h").read_bytes(),
    )
    compile_to = partial(_compile, compiler, translate)
    try:
        return native.compiled_once(native.cache_folder(_CACHE), "program", made_of, compile_to)
    except native.CompilerError as error:
        raise NoCompilerError(str(error)) from error


def why_not_kept() -> str | None:
    """Return why compiled programs cannot be cached, or None."""
    try:
        native.cache_folder(_CACHE)
    except native.CompilerError as error:
        return str(error)
    return None


def translator_files() -> Iterator[Path]:
    """Yield the files of the translator in a fixed order."""
    for pattern in TRANSLATOR:
        yield from sorted(SOFTSWITCH.glob(pattern))


def _compile(compiler: str, translate: Callable[[], str], library: Path) -> None:
    program = library.with_suffix(".h")
    program.write_text(translate())
    unit = f'#include "{program.name}"\n#include "interface.h"\n'
    command = (compiler, *_FLAGS, "-I", str(RUNTIME), "-I", str(native.SHARED), "-x", "c++", "-")
    native.compile_unit(command, unit, "the program", library)


def processor() -> str:
    """Identify the kind of processor, as machines may share a cache."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    wanted = ("flags", "Features", "model name", "CPU part")
    return platform.machine() + "".join(sorted({x for x in lines if x.startswith(wanted)}))


class Backend(str, Enum):
    """The code generated for programs; AUTO is NATIVE if there is a compiler."""

    NATIVE = "native"
    PYTHON = "python"
    AUTO = "auto"


def backend_here(requested: Backend | None) -> Backend:
    """Return the requested back end, by default that of the environment."""
    if requested is not None:
        return requested
    name = os.environ.get(VARIABLE) or Backend.AUTO.value
    try:
        return Backend(name)
    except ValueError:
        names = ", ".join(each.value for each in Backend)
        raise SoftSwitchError(
            f"{VARIABLE} has an unknown back end, '{name}': use one of {names}."
        ) from None
