"""Programs compiled by the system's C++ compiler, and kept: bindings, and layouts of tables."""

import ctypes
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

from switchgnn.base import native
from switchgnn.softswitch.base.errors import SoftSwitchError
from switchgnn.softswitch.base.program import LoadedProgram, TableSpec

RUNTIME = Path(__file__).parent / "runtime"
SOFTSWITCH = Path(__file__).parent.parent
TRANSLATOR = (
    *("base/*.py", "lowering/*.py"),
    *(f"native/{name}.py" for name in ("build", "render", "source")),
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


_INTERFACE = RUNTIME / "interface.h"
_FUNCTION = re.compile(r"^(?:const )?(\w+\*?) (\w+)\(([^)]*)\) \{", re.MULTILINE)
_TYPES: dict[str, Any] = {
    "void": None,
    "int": ctypes.c_int,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64,
    "double": ctypes.c_double,
}


def _type(text: str) -> Any:  # noqa: ANN401  ctypes types
    return ctypes.c_void_p if "*" in text else _TYPES[text.split(maxsplit=1)[0]]


class Library:
    """A compiled program."""

    def __init__(self, path: Path) -> None:
        # PyDLL keeps the GIL, for short calls; CDLL releases it, for calls that may wait.
        self.short, self.waiting = ctypes.PyDLL(str(path)), ctypes.CDLL(str(path))
        for result, name, arguments in _FUNCTION.findall(_INTERFACE.read_text()):
            for library in (self.short, self.waiting):
                function = getattr(library, name)
                function.restype = _type(result)
                function.argtypes = [_type(each.strip()) for each in arguments.split(",") if each]


class Switch:
    """A switch in native memory, which runs the program of a library."""

    def __init__(self, library: Library) -> None:
        self._short, self._waiting = library.short, library.waiting
        self._pointer = self._short.switch_new()

    def call(self, name: str, *arguments: object) -> Any:  # noqa: ANN401  as declared
        """Call a function that does not wait."""
        return getattr(self._short, name)(self._pointer, *arguments)

    def wait(self, name: str, *arguments: object) -> Any:  # noqa: ANN401  as declared
        """Call a function that may wait."""
        return getattr(self._waiting, name)(self._pointer, *arguments)

    def array(self, kind: Any, length: int, address: int) -> Any:  # noqa: ANN401  ctypes arrays
        """Return native memory as an array, which keeps the switch alive."""
        array = (kind * length).from_address(address)
        array.owner = self
        return array

    def __del__(self) -> None:
        self._short.switch_free(self._pointer)


@dataclass(frozen=True)
class TableShape:
    """The memory layout of a table."""

    table: TableSpec
    number: int  # its place in the program
    widths: tuple[int, ...]  # bits of each key field
    key_words: int  # 64-bit words of a key
    # bits of each parameter, by the action's place in the table
    parameter_widths: tuple[tuple[int, ...], ...]

    @property
    def exact(self) -> bool:
        """Whether all fields of its key match exactly."""
        return self.table.match_type == "exact"

    def offsets(self, action: int) -> tuple[int, ...]:
        """Return the byte offsets of an action's parameters."""
        sizes = [byte_size(width) for width in self.parameter_widths[action]]
        return tuple(sum(sizes[:index]) for index in range(len(sizes)))

    @property
    def entry_bytes(self) -> int:
        """Bytes of the longest parameters of an action."""
        return max((sum(map(byte_size, widths)) for widths in self.parameter_widths), default=0)

    def shift(self, field: int) -> int:
        """Return the number of key bits below a field."""
        return sum(self.widths[field + 1 :])


def byte_size(width: int) -> int:
    """Return the bytes of a number of ``width`` bits."""
    return (width + 7) // 8


def table_shapes(program: LoadedProgram) -> Mapping[str, TableShape]:
    """Return the layouts of all tables by name."""
    shapes = {}
    for number, (name, table) in enumerate(program.tables.items()):
        widths = tuple(field.width for field in table.key)
        parameters = tuple(program.actions[i].parameter_widths for i in table.actions.values())
        words = max(1, -(-sum(widths) // 64))
        shapes[name] = TableShape(table, number, widths, words, parameters)
    return shapes


def cell_bytes(width: int) -> int:
    """Return the bytes of a register cell: 1, 2, 4 or whole words."""
    return next((size for size in (1, 2, 4) if width <= 8 * size), -(-width // 64) * 8)
