# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.planted.table`: the table of planted mistakes for docs/testing.md."""

import sys
from itertools import groupby

from tests.planted.mistakes import MISTAKES

HEAD = (
    "| group | planted mistake | noticed in `make test` by |",
    "|---|---|---|",
)


def table():
    """Return the lines of the table, group by group."""
    lines = [*HEAD]
    for group, mistakes in groupby(MISTAKES, key=lambda mistake: mistake.group):
        for number, mistake in enumerate(mistakes):
            noticed = "; ".join(map(_cell, mistake.noticed_by))
            first = f"`{group.removeprefix('tests/')}`" if number == 0 else ""
            lines.append(f"| {first} | {mistake.what} | {noticed} |")
    return lines


def _cell(node):
    """A test as the table names it: its file, its name and its parameters."""
    file, _, test = node.removeprefix("tests/").partition("::")
    return f"`{file}`: `{test}`" if test else f"`{file}`"


if __name__ == "__main__":
    sys.stdout.write("\n".join(table()) + "\n")
