"""Compilation of C++ on first use, cached in the user's cache folder."""

import fcntl
import hashlib
import logging
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.files import reason_to_distrust_path

_DIGITS = 16
_OWNER_ONLY = 0o700
_CURE = (
    "Set XDG_CACHE_HOME to a folder that you, and no other user, may write to and run programs from"
)


SHARED = Path(__file__).parent
_LOG = logging.getLogger(__name__)


class CompilerError(SwitchGNNError):
    """There is no C++ compiler, or it fails, or its output cannot be kept."""


class CacheError(CompilerError):
    """A cache cannot be written, other users could have changed it, or its programs cannot run."""


def cache_folder(part: str) -> Path:
    """Return the cache folder of a part of this project, made if need be.

    It is in the user's cache, or else in the folder for temporary files, with a warning: the user
    may have no home, and its file system may be read-only or mounted ``noexec``. CacheError if
    neither can be used.
    """
    reasons: list[str] = []
    for find in (_user_cache, _temporary_cache):
        try:
            folder = find() / part
            reason = _why_not_used(folder)
        except (OSError, RuntimeError) as error:
            reasons.append(str(error).rstrip("."))
            continue
        if reason is None:
            if reasons:
                _warn_once(f"Compiled programs are kept in {folder.parent}: {reasons[0]}. {_CURE}.")
            return folder
        reasons.append(f"the cache {folder} is not used: {reason}")
    raise CacheError(f"Compiled programs cannot be kept: {'; '.join(reasons)}. {_CURE}.")


def _user_cache() -> Path:
    """Return the folder in the user's cache; RuntimeError without a home.

    A relative path in XDG_CACHE_HOME is ignored: https://specifications.freedesktop.org/basedir-spec/
    """
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (caches if caches.is_absolute() else Path.home() / ".cache") / "switchgnn"


def _temporary_cache() -> Path:
    return Path(tempfile.gettempdir()) / f"switchgnn-cache-{os.geteuid()}"


def _why_not_used(folder: Path) -> str | None:
    """Return why programs cannot be written to a folder, safely, and run from there."""
    _make(folder)
    if (reason := reason_to_distrust_path(folder.resolve())) is not None:
        return reason
    if os.statvfs(folder).f_flag & os.ST_NOEXEC:
        return "its file system is mounted noexec"
    return None if os.access(folder, os.W_OK | os.X_OK) else "it cannot be written"


@cache
def _warn_once(sentence: str) -> None:
    _LOG.warning("%s", sentence)


def compiled_once(
    folder: Path, name: str, made_of: Iterable[str | bytes], compile_to: Callable[[Path], None]
) -> Path:
    """Return the path of a compiled file in a cache, compiling it to a path unless it is there.

    After `name` it is called by a digest of `made_of`, all inputs: sources, compiler, flags,
    versions. One process compiles at a time. CompilerError if that fails, the folder cannot be
    written, or others may write to it or to a folder above.
    """
    try:
        _make(folder)
        inside = folder.resolve()
        if (reason := reason_to_distrust_path(inside)) is not None:
            raise CacheError(f"The cache {inside} is not used: {reason}. {_CURE}.")
        file = inside / f"{name}-{_digest(made_of)}"
        with _locked(file.with_suffix(".lock")):
            if not file.exists():
                with tempfile.TemporaryDirectory(dir=inside) as unfinished:
                    output = Path(unfinished) / file.name
                    compile_to(output)
                    output.chmod(_OWNER_ONLY)
                    output.replace(file)
    except OSError as error:
        raise CacheError(f"Compiled programs cannot be kept in {folder}: {error}.") from error
    return file


def sources_in(folder: Path) -> Iterator[str | bytes]:
    """Yield the name and the content of all files in a folder, for `made_of`."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        yield path.relative_to(folder).as_posix()
        yield path.read_bytes()


def _make(folder: Path) -> None:
    for each in (*reversed(folder.parents), folder):
        each.mkdir(_OWNER_ONLY, exist_ok=True)


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


def compile_unit(command: Sequence[str], unit: str, what: str, output: Path) -> None:
    """Compile a unit, called `what` in errors, from the standard input of a compiler (``-``).

    The folder of `output` has temporary files, and headers that are included first; other users
    must not be able to write there. If the compiler fails, CompilerError ends with its output.
    """
    folder, command = output.absolute().parent, (*command, "-o", str(output.absolute()))
    own = {**os.environ, "TMPDIR": str(folder)}
    result = subprocess.run(
        command, input=unit, cwd=folder, env=own, capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        raise CompilerError(
            f"{command[0]} cannot compile {what}: {result.stderr.strip()[-_LAST_WORDS:]}"
        )


def _wanted() -> Sequence[str]:
    return (os.environ["CXX"],) if os.environ.get("CXX") else _NAMES


_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-shared", "-w")


def compiled_library(
    part: str, name: str, who: str, *, unit: str, folder: Path, files: Iterable[str]
) -> Path:
    """Return the path of a library, compiling it unless `cache_folder(part)` has it.

    `name` begins its file name, errors name its user, `who`, and the C++ of `unit` may include
    `files` of `folder`, and those of SHARED.
    """
    compiler = needed_compiler(who)
    contents = [path.read_bytes() for path in (*(folder / it for it in files), SHARED / "crc32.h")]
    command = (compiler, *_FLAGS, "-I", str(folder), "-I", str(SHARED), "-x", "c++", "-")
    return compiled_once(
        cache_folder(part),
        name,
        (compiler, *_FLAGS, unit, *contents),
        lambda library: compile_unit(command, unit, who, library),
    )
