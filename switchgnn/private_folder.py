# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Folders for files that nobody else may change while they are needed."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from switchgnn.errors import SwitchGNNError
from switchgnn.full_disk import WriteError, why_not_written
from switchgnn.ownership import reason_to_distrust_place


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
