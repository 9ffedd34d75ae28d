# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Loaders of other packages: what goes wrong in them becomes a sentence."""

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from switchgnn.training.errors import DatasetError

_Loaded = TypeVar("_Loaded")


def folder_of(name: str, root: Path, raw_file: str) -> Path:
    """The folder of a data set: root if it has raw/RAW_FILE, or else root/NAME.

    The case of NAME does not matter where that folder exists.
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
    """What `load` returns, which imports `package` and may download.

    Args:
        name: of the data set.
        folder: where its files are, or go.
        load: prints to standard error while it runs.
        files: what belongs into the folder.
        package: which `load` imports.
        extra: of this project, which installs the package.

    Raises:
        DatasetError: anything went wrong.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return load()
    except ImportError as error:
        raise DatasetError(
            f"data set {name} needs {package}, which cannot be imported ({_line(error)}): "
            f"pip install 'switchgnn[{extra}]'"
        ) from error
    except (Exception, SystemExit) as error:
        # Downloads and damaged files raise anything, and OGB exits where its question
        # whether to download is answered with no.
        raise DatasetError(
            f"data set {name} can neither be read from {folder} nor downloaded ({_line(error)}): "
            f"put {files} there, or try again with a network"
        ) from error


def _line(error: BaseException) -> str:
    """The first line of what an error says, and its type."""
    text = str(error).strip().partition("\n")[0][:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
