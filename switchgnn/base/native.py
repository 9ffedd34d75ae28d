# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Compilation of C++ on first use, cached in the user's cache folder."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.files import reason_to_distrust_place

_DIGITS = 16
_OWNER_ONLY = 0o700


class ForeignCacheError(SwitchGNNError):
    """Other users could have changed programs in the cache."""


def cache_folder(part: str) -> Path:
    """Return the cache folder of a part of this project.

    A relative path in XDG_CACHE_HOME is ignored: https://specifications.freedesktop.org/basedir-spec/
    """
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (caches if caches.is_absolute() else Path.home() / ".cache") / "switchgnn" / part


def compiled_once(
    folder: Path, name: str, made_of: Iterable[str | bytes], compile_to: Callable[[Path], None]
) -> Path:
    """Return the path of a compiled file, compiling it unless it is cached.

    Its name has a digest of its inputs. One process compiles at a time.

    Args:
        folder: of the cache.
        name: the beginning of the file's name.
        made_of: all inputs: sources, compiler, flags, versions.
        compile_to: compiles to a path.

    Raises:
        OSError: the folder cannot be written.
        ForeignCacheError: others may write to it, or to a folder above.
    """
    _make(folder)
    folder = folder.resolve()
    _check(folder)
    file = folder / f"{name}-{_digest(made_of)}"
    with _locked(file.with_suffix(".lock")):
        if not file.exists():
            with tempfile.TemporaryDirectory(dir=folder) as unfinished:
                output = Path(unfinished) / file.name
                compile_to(output)
                output.chmod(_OWNER_ONLY)
                output.replace(file)
    return file


def why_not_kept(folder: Path) -> str | None:
    """Return why a folder cannot be used as a cache; None if it can."""
    try:
        _make(folder)
        _check(folder.resolve())
    except (OSError, ForeignCacheError) as error:
        return str(error)
    return None


def sources_in(folder: Path) -> Iterator[str | bytes]:
    """Yield the name and the content of all files in a folder, for `made_of`."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        yield path.relative_to(folder).as_posix()
        yield path.read_bytes()


def _make(folder: Path) -> None:
    """Make a folder and its missing parents for their owner alone."""
    for each in (*reversed(folder.parents), folder):
        each.mkdir(_OWNER_ONLY, exist_ok=True)


def _check(folder: Path) -> None:
    reason = reason_to_distrust_place(folder)
    if reason is not None:
        raise ForeignCacheError(
            f"The cache {folder} is not used: {reason}. Set XDG_CACHE_HOME to "
            "a folder that no other user may write to."
        )


def _digest(made_of: Iterable[str | bytes]) -> str:
    total = hashlib.sha256()
    for each in made_of:
        words = each.encode() if isinstance(each, str) else each
        total.update(hashlib.sha256(words).digest())
    return total.hexdigest()[:_DIGITS]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock of processes, which ends with its holder."""
    with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o600)) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


_NAMES = ("c++", "g++", "clang++")
_LAST_WORDS = 400


class CompilerError(SwitchGNNError):
    """There is no C++ compiler, or it fails."""


def find_compiler() -> str | None:
    """Return the path of the C++ compiler, $CXX or one on the PATH, or None."""
    return next((path for path in map(shutil.which, _wanted()) if path), None)


def needed_compiler(who: str) -> str:
    """Return the path of the C++ compiler; CompilerError names `who` needs it."""
    found = find_compiler()
    if found is None:
        raise CompilerError(
            f"{who} needs a C++ compiler, but {' or '.join(_wanted())} is not on the PATH: "
            "apt-get install g++"
        )
    return found


def compile_unit(command: Sequence[str], unit: str, what: str, folder: Path) -> None:
    """Compile a unit from standard input.

    Args:
        command: the compiler with its arguments, ``-`` for the unit.
        unit: its source.
        what: its name in errors.
        folder: the working directory, whose headers are included first; other users must not
            be able to write there.

    Raises:
        CompilerError: the compiler fails; the message ends with its output.
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


_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-shared", "-w")


@dataclass(frozen=True)
class LibrarySource:
    """The inputs of a library.

    Attributes:
        part: the argument of `cache_folder`.
        name: the beginning of its file name.
        who: its user, for errors.
        unit: C++, which may include `files` of `folder`.
    """

    part: str
    name: str
    who: str
    unit: str
    folder: Path
    files: tuple[str, ...]


def compiled_library(source: LibrarySource) -> Path:
    """Return the path of a library, compiling it unless it is cached."""
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
