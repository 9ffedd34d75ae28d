"""Files: only regular ones are read, writes replace them as a whole, and errors say why."""

import errno
import fcntl
import gzip
import io
import os
import pwd
import shutil
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

from switchgnn.base.errors import SwitchGNNError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_GZIP = b"\x1f\x8b"
# The mode of a temporary folder on which its owner holds a lock, marked by the sticky bit.
_OWNED = stat.S_ISVTX | stat.S_IRWXU


class WriteError(SwitchGNNError):
    """A file could not be written."""


def is_full(error: OSError) -> bool:
    """Return whether a disk or the quota of its user is full."""
    return error.errno in _FULL


def why_not_written(error: OSError, path: Path) -> str:
    """Return why `path` cannot be written, and for a full disk what to do; no full stop."""
    if error.errno is None:  # NumPy reports short writes without one
        return f"the disk took only a part of it ({error}); {_remedy(path)}"
    reason = error.strerror or str(error)
    return f"{reason}; {_remedy(path)}" if is_full(error) else reason


@contextmanager
def writing(
    path: Path, what: str = "", refuse: Callable[[str], Exception] = WriteError
) -> Iterator[None]:
    """Turn an OSError of the block, which writes `what` to a path, into an error of ours."""
    try:
        yield
    except OSError as error:
        why = why_not_written(error, path)
        raise refuse(f"Cannot write {what}{path}: {why}.") from error


def _remedy(path: Path) -> str:
    # Python uses another folder where the one of TMPDIR is full.
    folders = {Path(os.environ.get("TMPDIR") or "/tmp"), Path(tempfile.gettempdir())}  # noqa: S108
    above = {path.absolute(), *path.absolute().parents}
    if above & {folder.absolute() for folder in folders}:
        return "make room there, or set TMPDIR to a folder on another disk"
    return "make room there, or choose another folder"


@dataclass(frozen=True)
class UnpackLimit:
    """The bytes that a packed file may unpack to: the larger of the two."""

    allowance: int  # bytes that any file may unpack to
    ratio: int  # multiple of the file's own size

    def bytes_of(self, size: int) -> int:
        """Return the limit of a file of `size` bytes."""
        return max(self.allowance, self.ratio * size)


# Deflate reaches 1,000:1 at most, and about 20:1 on tables of words; tables of zeros and ones,
# which compress best, fit into the allowance.
PACKED = UnpackLimit(allowance=256 << 20, ratio=50)


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; raise OSError for others, such as pipes and devices."""
    # Without O_NONBLOCK a pipe would block; without O_NOCTTY a terminal would become ours.
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return os.fdopen(number, "rb")


def open_unpacked(path: Path, limit: UnpackLimit = PACKED) -> BinaryIO:
    """Open a file as open_regular does, or in memory what gzip has packed, whatever its name is."""
    file = open_regular(path)
    packed = file.read(len(_GZIP)) == _GZIP
    file.seek(0)
    if not packed:
        return file
    with file:
        most = limit.bytes_of(os.fstat(file.fileno()).st_size)
        try:
            content = gzip.GzipFile(fileobj=file).read(most + 1)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise OSError(errno.EINVAL, f"gzip cannot unpack it ({error})", str(path)) from error
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it would unpack to more than {most:,} bytes", str(path))
    return io.BytesIO(content)


def format_of(path: Path) -> str:
    """Return the suffix that names the format of a file in lower case, not that of gzip."""
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix == ".gz" else suffix


def read_regular(path: Path) -> bytes:
    """Return the content of a file; errors as open_regular."""
    with open_regular(path) as file:
        return file.read()


def read_bounded(path: Path, most_bytes: int) -> bytes:
    """Return the content of a file; errors as open_regular, or OSError if it is longer."""
    with open_regular(path) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {most_bytes >> 10:,} kB", str(path))
    return content


def read_regular_text(path: Path, encoding: str) -> str:
    """Return the text of a file, unpacked, with newlines normalized; errors as open_unpacked."""
    with io.TextIOWrapper(open_unpacked(path), encoding=encoding) as file:
        return file.read()


def reason_to_distrust(folder: Path) -> str | None:
    """Return how another user could have made or changed a folder of files; None if none could.

    Everything in it and every folder above must belong to this user or root, and be writable by
    its owner (and group) alone.
    """
    return reason_to_distrust_path(folder.resolve(strict=True))


def reason_to_distrust_path(target: Path) -> str | None:
    """Return `reason_to_distrust` of a resolved path, whose links can no longer change."""
    above = (_reason(path, path.lstat(), is_above=True) for path in reversed(target.parents))
    inside = (_reason_inside(path) for path in sorted(target.iterdir()))
    reasons = (*above, _reason(target, target.lstat()), *inside)
    return next((reason for reason in reasons if reason), None)


def _reason_inside(path: Path) -> str | None:
    try:
        return _reason(path, path.lstat())
    except FileNotFoundError:  # another process has removed its temporary folder meanwhile
        return None


def _reason(path: Path, found: os.stat_result, *, is_above: bool = False) -> str | None:
    if stat.S_ISLNK(found.st_mode):
        return f"{path} is a link"
    if found.st_uid not in (os.geteuid(), 0):
        return f"{path} belongs to user {user_name(found.st_uid)}"
    # The sticky bit keeps others from replacing files that are not theirs.
    sticky = is_above and found.st_mode & stat.S_ISVTX
    return f"others may write to {path}" if found.st_mode & stat.S_IWOTH and not sticky else None


def user_name(user: int) -> str:
    """Return the name of a user, or the number of one without."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


@contextmanager
def private_folder(prefix: str, inside: str | None = None) -> Iterator[Path]:
    """Make a folder for this user alone in `inside`, or else in that for temporary files.

    It is removed after the block. If this process and its forks are killed before, the next call
    with that parent removes it. WriteError if it cannot be made.
    """
    try:
        _remove_abandoned(Path(inside or tempfile.gettempdir()))
        made = tempfile.TemporaryDirectory(prefix=prefix, dir=inside)
    except FileNotFoundError as error:  # Python found no folder for temporary files
        raise WriteError(
            f"Cannot make a folder for temporary files: {error.strerror or error}. Make room in "
            "one, or set TMPDIR to a folder that can be written."
        ) from error
    except OSError as error:
        parent = Path(error.filename or inside or ".").parent
        why = why_not_written(error, parent)
        raise WriteError(f"Cannot make a folder for temporary files in {parent}: {why}.") from error
    with made as name, _opened(Path(name)) as opened:
        with suppress(OSError):  # some file systems have no locks
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.fchmod(opened, _OWNED)
        yield Path(name).resolve()


def _remove_abandoned(parent: Path) -> None:
    for folder in parent.glob("switchgnn-*"):
        with suppress(OSError), _opened(folder) as opened:
            found = os.fstat(opened)
            if (found.st_uid, stat.S_IMODE(found.st_mode)) == (os.geteuid(), _OWNED):
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield opened
    finally:
        os.close(opened)


@contextmanager
def whole_file(path: Path, older: Path | None = None) -> Iterator[IO[bytes]]:
    """Yield a file to write, which replaces a path if the block succeeds.

    An earlier file is kept as `older`, if that is given. A killed process leaves
    ``.NAME.XXXX.part`` behind, which can be deleted.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    here, file = Path(name), os.fdopen(handle, "wb")
    try:
        here.chmod(0o644)
        yield file
        file.flush()
        # Only now may the disk report that it is full.
        os.fsync(file.fileno())
        if older is not None:
            with suppress(FileNotFoundError):
                path.replace(older)
        here.replace(path)
    finally:
        with suppress(OSError):
            file.close()
        here.unlink(missing_ok=True)


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield an empty folder next to `target`, which replaces it if the block succeeds.

    Readers never see an unfinished folder. A killed process leaves a folder `.NAME.XXXX` next to
    the old one, which can be deleted.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    # After the swap this is the old folder, after a failure the unfinished new one.
    with tempfile.TemporaryDirectory(
        prefix=f".{target.name}.", dir=target.parent, ignore_cleanup_errors=True
    ) as name:
        temporary = Path(name)
        # Workers may run as other users.
        temporary.chmod(0o755)
        yield temporary
        swap_into_place(temporary, target)


def swap_into_place(new: Path, target: Path) -> None:
    """Swap two folders; a process killed between the renames leaves `NEW-NAME.old`."""
    if not target.exists():
        new.rename(target)
        return
    old = new.with_name(new.name + ".old")
    target.rename(old)
    try:
        new.rename(target)
    except OSError:
        old.rename(target)
        raise
    old.rename(new)


def reason_to_keep(target: Path, what: str, ours: Callable[[str], bool]) -> str | None:
    """Return why a folder for `what` must not be replaced; None: all files in it are ours."""
    if not target.exists():
        return None
    if not target.is_dir():
        return f"{target} is a file; give the name of a folder for {what}."
    return next(
        (
            f"{target} holds {path.name}, which is not part of {what}, so it is not overwritten; "
            "choose another name."
            for path in sorted(target.iterdir())
            if not ours(path.name)
        ),
        None,
    )
