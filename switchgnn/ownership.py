# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Whether anybody else could have made a folder, or changed it."""

import grp
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

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
