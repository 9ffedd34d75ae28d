# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Files from elsewhere, which may turn out to be pipes or devices that never end."""

import ctypes
import errno
import grp
import io
import os
import pwd
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.full_disk import WriteError, why_not_written


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading, without waiting for anybody to write it.

    What is looked at is what was opened: another file may take the place of a name at any moment.

    Raises:
        OSError: it cannot be opened, or it is no regular file.
    """
    # A pipe would otherwise be waited for; a terminal would become that of this process.
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return os.fdopen(number, "rb")


def read_regular(path: Path) -> bytes:
    """Return the content of a file; errors as open_regular."""
    with open_regular(path) as file:
        return file.read()


def read_bounded(path: Path, most_bytes: int) -> bytes:
    """Return the content of a file that people write.

    Raises:
        OSError: as open_regular, or it is longer than that.
    """
    with open_regular(path) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {most_bytes >> 10:,} kB", str(path))
    return content


def read_regular_text(path: Path, encoding: str) -> str:
    """Return the text of a file, lines ending in a newline alone.

    Raises:
        OSError: as open_regular.
        UnicodeDecodeError: it is no text in this encoding.
    """
    with io.TextIOWrapper(open_regular(path), encoding=encoding) as file:
        return file.read()


_ACCESS_LIST = "system.posix_acl_access"


def reason_to_distrust(folder: Path) -> str | None:
    """Return how another user could have made or changed a folder of files; None: nobody could.

    That is so if all of it, and every folder that it is in, belongs to this user or to root,
    and nobody else may write there.

    Raises:
        OSError: there is no such folder, or it cannot be read.
    """
    return reason_to_distrust_place(folder.resolve(strict=True))


def reason_to_distrust_place(target: Path) -> str | None:
    """Return how another user could have made or changed a folder whose path has no links left.

    A link can be turned elsewhere behind the question by those who may write to where it is.

    Raises:
        OSError: there is no such folder, or it cannot be read.
    """
    reasons = (_reason(path, is_above=path in target.parents) for path in _chain(target))
    return next((reason for reason in reasons if reason), None)


def _chain(target: Path) -> Iterator[Path]:
    yield from reversed(target.parents)
    yield target
    yield from sorted(target.iterdir())


def _reason(path: Path, *, is_above: bool) -> str | None:
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        return f"{path} is a link"
    if found.st_uid not in (os.geteuid(), 0):
        return f"{path} belongs to user {user_name(found.st_uid)}"
    if is_above and found.st_mode & stat.S_ISVTX:
        # In such a folder nobody can replace what belongs to somebody else.
        return None
    if found.st_mode & stat.S_IWOTH or (
        found.st_mode & stat.S_IWGRP and not _is_private(path, found)
    ):
        return f"others may write to {path}"
    return None


def _is_private(path: Path, found: os.stat_result) -> bool:
    """Return whether the group is that of its owner alone, as many systems give to each user."""
    try:
        user, group = pwd.getpwuid(found.st_uid), grp.getgrgid(found.st_gid)
        listed = _ACCESS_LIST in os.listxattr(path)
    except (KeyError, OSError):
        return False
    own = (group.gr_gid, group.gr_name) == (user.pw_gid, user.pw_name)
    return own and set(group.gr_mem) <= {user.pw_name} and not listed


def user_name(user: int) -> str:
    """Return the name of a user, or the number of one without."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


class ForeignFolderError(SwitchGNNError):
    """Others could put another folder in the place of a temporary one."""


@contextmanager
def private_folder(prefix: str, inside: str | None = None) -> Iterator[Path]:
    """Make a folder that only this user may enter; it is gone behind the block.

    Its mode alone does not protect it: who may write to a folder above can rename it.

    Args:
        prefix: of its name.
        inside: the folder to make it in; None: that for temporary files.

    Yields:
        The folder.

    Raises:
        ForeignFolderError: others may write to a folder above, and it has no sticky bit.
        WriteError: it cannot be made.
    """
    with _made(prefix, inside) as name:
        folder = Path(name).resolve()
        reason = reason_to_distrust_place(folder)
        if reason is not None:
            raise ForeignFolderError(
                f"Temporary files are not safe in {folder.parent}: {reason}. Set TMPDIR to a "
                "folder that nobody else may write to, or that has the sticky bit."
            )
        yield folder


def _made(prefix: str, inside: str | None) -> "tempfile.TemporaryDirectory[str]":
    try:
        return tempfile.TemporaryDirectory(prefix=prefix, dir=inside)
    except FileNotFoundError as error:
        # Python has tried to write to each of several; its sentence lists them.
        raise WriteError(
            f"Cannot make a folder for temporary files: {error.strerror or error}. Make room in "
            "one, or set TMPDIR to a folder that can be written."
        ) from error
    except OSError as error:
        place = Path(error.filename or inside or ".").parent
        raise WriteError(
            f"Cannot make a folder for temporary files in {place}: {why_not_written(error, place)}."
        ) from error


_FOR_ALL_TO_READ = 0o644


@dataclass(frozen=True)
class UnfinishedFile:
    """A file that may take the place of another.

    Attributes:
        file: to write to.
        here: where it is.
        there: the place that is meant for it.
    """

    file: IO[bytes]
    here: Path
    there: Path

    def settle(self) -> None:
        """Wait until the disk has all of it; some find out only then that they are full.

        Raises:
            OSError: the disk does not take it.
        """
        self.file.flush()
        os.fsync(self.file.fileno())

    def put(self) -> None:
        """Let what has settled take its place, in one step.

        Raises:
            OSError: it cannot.
        """
        self.here.replace(self.there)


@contextmanager
def unfinished_file(path: Path) -> Iterator[UnfinishedFile]:
    """Yield a file beside a path, which is gone behind the block unless it was put there.

    A process that is killed leaves it, as ``.NAME.XXXX.part``; it can be deleted.

    Raises:
        OSError: it cannot be made.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    here, file = Path(name), os.fdopen(handle, "wb")
    try:
        # `mkstemp` makes files for their owner alone.
        here.chmod(_FOR_ALL_TO_READ)
        yield UnfinishedFile(file, here, path)
    finally:
        # What was put there is on the disk, and the rest is not wanted.
        with suppress(OSError):
            file.close()
        here.unlink(missing_ok=True)


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file to write, which takes the place of a path if the block succeeds.

    Raises:
        OSError: it cannot be made, or not be written; what was at the path stays.
    """
    with unfinished_file(path) as unfinished:
        yield unfinished.file
        unfinished.settle()
        unfinished.put()


_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield an empty folder beside `target`, which takes its place if the block succeeds.

    Readers of `target` see the old folder as a whole or the new one. A process that is killed
    leaves the old one, and beside it a folder `.NAME.XXXX` that can be deleted.

    Raises:
        OSError: a folder cannot be made, or not take its place.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    # After the swap this is the old folder, after a failure the unfinished new one.
    with tempfile.TemporaryDirectory(
        prefix=f".{target.name}.", dir=target.parent, ignore_cleanup_errors=True
    ) as name:
        temporary = Path(name)
        # Only its owner may enter it; workers may run as others.
        temporary.chmod(0o755)
        yield temporary
        swap_into_place(temporary, target)


def swap_into_place(new: Path, target: Path) -> None:
    """Make `new` available as `target`; what was at `target` is then at `new`.

    On Linux the two change places in one step. Elsewhere there are two renames, undone if
    the second one fails; a process killed between them leaves the old folder as
    `NEW-NAME.old`.

    Raises:
        OSError: neither worked; `target` is as before.
    """
    if not target.exists():
        new.rename(target)
    elif not _exchange(new, target):
        old = new.with_name(new.name + ".old")
        target.rename(old)
        try:
            new.rename(target)
        except OSError:
            old.rename(target)
            raise
        old.rename(new)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step; False where the system cannot."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    names = os.fsencode(one), os.fsencode(other)
    done: int = renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE)
    return done == 0
