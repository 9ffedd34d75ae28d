# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Puts one folder in the place of another in one step."""

import ctypes
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
