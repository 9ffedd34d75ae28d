# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Looks whether what a command is to write can be written, before it works for an hour."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from switchgnn.base.full_disk import WriteError, why_not_written


def check_outputs(
    folders: Mapping[str, Path | None] | None = None,
    files: Mapping[str, Path | None] | None = None,
    replaced: Mapping[str, Path | None] | None = None,
) -> None:
    """Check that folders and files that a command was told to write can be written.

    Nothing stays of the trial. A folder may be missing, but not the one that it is to be in: a
    misspelled path would be made, and nobody would find what was written there.

    Args:
        folders: by the option that names them; None: the option was not given.
        files: the same.
        replaced: the same, of folders that are put into place as a whole.

    Raises:
        WriteError: one cannot be written.
    """
    for option, folder in (folders or {}).items():
        if folder is not None:
            _check_folder(option, folder)
    for option, file in (files or {}).items():
        if file is not None:
            _check_file(option, file)
    for option, folder in (replaced or {}).items():
        if folder is not None:
            _check_replaced(option, folder)


def _check_folder(option: str, folder: Path) -> None:
    if not os.path.lexists(folder):
        _check_parent(option, folder)
        _try(option, folder, _parent(folder))
        return
    _require_folder(option, folder)
    _try(option, folder, folder)


def _check_replaced(option: str, folder: Path) -> None:
    if os.path.lexists(folder):
        _require_folder(option, folder)
    _check_parent(option, folder)
    _try(option, folder, _parent(folder))


def _require_folder(option: str, path: Path) -> None:
    if not path.is_dir():
        raise WriteError(f"{option}: cannot write {path}: it is no folder; name another.")


def _check_file(option: str, file: Path) -> None:
    if file.is_dir():
        raise WriteError(f"{option}: cannot write {file}: it is a folder; name a file in it.")
    _check_parent(option, file)
    _try(option, file, _parent(file))


def _check_parent(option: str, path: Path) -> None:
    if not _parent(path).is_dir():
        raise WriteError(
            f"{option}: cannot write {path}: there is no folder {_parent(path)}; make it, or name "
            "another."
        )


def _parent(path: Path) -> Path:
    # What `..` is in depends on where it is.
    return path.absolute().parent


def _try(option: str, path: Path, place: Path) -> None:
    """Make a folder for a moment, because permissions alone do not tell."""
    try:
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=place):
            pass
    except OSError as error:
        # Of a place like /proc the system says that the new folder does not exist.
        why = (
            f"{place} takes no new files"
            if isinstance(error, FileNotFoundError)
            else why_not_written(error, path)
        )
        raise WriteError(f"{option}: cannot write {path}: {why}.") from error
