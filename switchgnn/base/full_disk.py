"""Error messages of failed writes."""

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from switchgnn.base.errors import SwitchGNNError

_FULL = (errno.ENOSPC, errno.EDQUOT)


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
