# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Reads arrays, tables and lines; errors name the file and the line."""

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.arrays import ArrayKind, ArraysError, read_npy
from switchgnn.base.files import read_regular_text
from switchgnn.training.errors import DatasetError

_INTEGER = re.compile(r"[+-]?\d{1,18}")
# A first line that does not start like a number is a header.
_NUMBER_START = re.compile(r"\s*[\d+\-.]")


@dataclass(frozen=True, eq=False)
class Table:
    """A .csv file whose first column is the id of a vertex.

    Attributes:
        header: the names of the other columns, or None.
        ids: int64[N], the first column.
        cells: N rows of text, all of the same length; without the ids.
        lines: the line of each row in the file.
    """

    header: list[str] | None
    ids: NDArray[np.int64]
    cells: list[list[str]]
    lines: list[int]


def read_array(path: Path, kind: ArrayKind) -> NDArray[Any]:
    """Read the array of a .npy file.

    Raises:
        DatasetError: the file is unreadable, or not such an array.
    """
    try:
        return read_npy(path, kind, remedy="save one array with numpy.save")
    except ArraysError as error:
        raise DatasetError(str(error)) from error


def read_lines(path: Path) -> list[str]:
    """Read the lines of a text file without spaces around them; empty ones at the end are dropped.

    Raises:
        DatasetError: the file is unreadable or not a text file.
    """
    return [line.strip() for line in read_text(path).rstrip().splitlines()]


def read_table(path: Path) -> Table:
    """Read a .csv file: the id first, then other columns; a header line is allowed.

    Raises:
        DatasetError: unreadable file, no rows, rows of different length, or ids that are not
            whole numbers.
    """
    reader = csv.reader(io.StringIO(read_text(path), newline=""), skipinitialspace=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        for row in reader:
            if row:
                rows.append(row)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise DatasetError(f"{path}, line {reader.line_num}: {error}") from error
    header = None
    if rows and not _NUMBER_START.match(rows[0][0]):
        header = [name.strip() for name in rows.pop(0)]
        lines.pop(0)
    if not rows:
        raise DatasetError(f"{path} holds no rows")
    columns = len(rows[0] if header is None else header)
    for row, line in zip(rows, lines, strict=True):
        if len(row) != columns or columns < 2:
            raise DatasetError(
                f"{path}, line {line}: has {len(row)} columns; expected "
                f"{max(columns, 2)}, the first of which is the id of a vertex"
            )
        if not _INTEGER.fullmatch(row[0].strip()):
            raise DatasetError(f"{path}, line {line}: {row[0][:40]!r} is not the id of a vertex")
    return Table(
        header=None if header is None else header[1:],
        ids=np.array([int(row[0]) for row in rows], dtype=np.int64),
        cells=[row[1:] for row in rows],
        lines=lines,
    )


def read_text(path: Path) -> str:
    """Read the content of a text file.

    Raises:
        DatasetError: the file is unreadable or not a text file.
    """
    try:
        return read_regular_text(path, "utf-8-sig")
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path} is not a text file (byte {error.start})") from error
    except OSError as error:
        raise DatasetError(f"cannot read {path}: {error.strerror}") from error
