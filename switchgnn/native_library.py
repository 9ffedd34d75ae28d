# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""C++ of this project that becomes a library on the user's machine when it is first needed."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from switchgnn.native_cache import ForeignCacheError, cache_folder, compiled_once
from switchgnn.native_compiler import CompilerError, compile_unit, needed_compiler

_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-shared", "-w")


@dataclass(frozen=True)
class LibrarySource:
    """What a library is made of.

    Attributes:
        part: the part of the user's cache where it is kept.
        name: the beginning of its name there.
        who: who needs it, for errors.
        unit: the C++, which may include files of the folder.
        folder: where these are.
        files: their names.
    """

    part: str
    name: str
    who: str
    unit: str
    folder: Path
    files: tuple[str, ...]


def compiled_library(source: LibrarySource) -> Path:
    """Return the path of a library, compiled if need be.

    Raises:
        CompilerError: there is no compiler, or it fails, or the library cannot be kept.
    """
    compiler = needed_compiler(source.who)
    folder = cache_folder(source.part)
    contents = [(source.folder / name).read_bytes() for name in source.files]
    made_of: tuple[str | bytes, ...] = (compiler, *_FLAGS, source.unit, *contents)
    try:
        return compiled_once(folder, source.name, made_of, partial(_compile, compiler, source))
    except (OSError, ForeignCacheError) as error:
        raise CompilerError(f"{source.who} cannot be kept in {folder}: {error}") from error


def _compile(compiler: str, source: LibrarySource, library: Path) -> None:
    output = ("-o", str(library.absolute()))
    command = (compiler, *_FLAGS, "-I", str(source.folder), "-x", "c++", "-", *output)
    compile_unit(command, source.unit, source.who, library.absolute().parent)
