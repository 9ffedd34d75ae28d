# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Calls the loaders of other packages and turns their errors into sentences."""

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from switchgnn.base.machine import how_to_install
from switchgnn.training.errors import DatasetError

_Loaded = TypeVar("_Loaded")


def folder_of(name: str, root: Path, raw_file: str) -> Path:
    """Return the folder of a data set: root if it has raw/RAW_FILE, or else root/NAME.

    If a folder with this name exists in upper or mixed case, it is taken.

    Args:
        name: the name of the data set, in lower case.
        root: the folder that the user gave.
        raw_file: the name of a file that the data set has in its folder raw/.

    Returns:
        The folder, which may not exist yet.
    """
    if (root / "raw" / raw_file).is_file():
        return root
    named = [path for path in root.glob("*") if path.name.lower() == name]
    return min(named, default=root / name)


def load_outside(
    name: str,
    folder: Path,
    load: Callable[[], _Loaded],
    *,
    files: str,
    package: str,
    extra: str,
) -> _Loaded:
    """Call a loader that imports another package and may download files.

    Args:
        name: the name of the data set.
        folder: the folder of its files.
        load: the loader; what it prints goes to standard error.
        files: the files that belong into the folder, for the error's message.
        package: the package that `load` imports.
        extra: the extra of this project that installs the package.

    Returns:
        What `load` returns.

    Raises:
        DatasetError: `load` raised any error.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return load()
    except ImportError as error:
        raise DatasetError(
            f"data set {name} needs {package}, which cannot be imported ({_line(error)}): "
            f"{how_to_install(extra)}"
        ) from error
    except (Exception, SystemExit) as error:
        # Downloads and damaged files can raise any error, and OGB exits when the user
        # declines the download.
        raise DatasetError(
            f"data set {name} can neither be read from {folder} nor downloaded ({_line(error)}): "
            f"put {files} there, or try again with a network"
        ) from error


def _line(error: BaseException) -> str:
    """Return the type of an error and the first line of its message."""
    text = str(error).strip().partition("\n")[0][:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
