# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Files that are compiled on the user's machine when they are first needed, and kept there."""

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from switchgnn.errors import SwitchGNNError
from switchgnn.ownership import reason_to_distrust_place

_DIGITS = 16
_OWNER_ONLY = 0o700


class ForeignCacheError(SwitchGNNError):
    """Others could have put a program into the cache, or change one there."""


def cache_folder(part: str) -> Path:
    """Return the folder of a part of this project in the user's cache.

    A relative path in XDG_CACHE_HOME is ignored: https://specifications.freedesktop.org/basedir-spec/
    """
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (caches if caches.is_absolute() else Path.home() / ".cache") / "switchgnn" / part


def compiled_once(
    folder: Path, name: str, made_of: Iterable[str | bytes], compile_to: Callable[[Path], None]
) -> Path:
    """Return a compiled file, and compile it if it is not in the folder yet.

    Its name has a digest of everything that it is made of, so the file is never out of date. One
    process compiles at a time, and others see no file or all of it.

    Args:
        folder: where it is kept, as `cache_folder` returns it.
        name: the beginning of its name.
        made_of: what tells one result from another: sources, compiler, flags, versions.
        compile_to: writes the file to the path that it is given.

    Returns:
        The path of the file.

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
    """Return why nothing is compiled into a folder and run from there; None: it may be."""
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
    """Make a folder, and those above that are missing, for their owner alone."""
    for each in (*reversed(folder.parents), folder):
        each.mkdir(_OWNER_ONLY, exist_ok=True)


def _check(folder: Path) -> None:
    reason = reason_to_distrust_place(folder)
    if reason is not None:
        raise ForeignCacheError(
            f"Nothing is compiled in {folder}, nor run from there: {reason}. Set XDG_CACHE_HOME to "
            "a folder that nobody else may write to."
        )


def _digest(made_of: Iterable[str | bytes]) -> str:
    total = hashlib.sha256()
    for each in made_of:
        words = each.encode() if isinstance(each, str) else each
        total.update(hashlib.sha256(words).digest())
    return total.hexdigest()[:_DIGITS]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let in one process at a time; the lock goes with the process that holds it."""
    with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o600)) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
