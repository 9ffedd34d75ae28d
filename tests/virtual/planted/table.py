# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.virtual.planted.table`: the table of mistakes for docs/reliability-evidence.md.

`--measure TRIES MOST [NAME ...]` plants them and prints how many seeds each try took, of MOST at
most, and which checks have found it.
"""

import sys
from statistics import median

from tests.virtual.planted.mistakes import MISTAKES
from tests.virtual.planted.seeds import FOUND

HEAD = ("| where | mistake | seeds | within | found by |", "|---|---|---|---|---|")
# The tries begin this far apart.
_APART = 10_000


def table():
    """Return the lines of the table."""
    lines = [*HEAD]
    for mistake in MISTAKES:
        if mistake.name in FOUND:
            within, took, by = FOUND[mistake.name]
            mark = "" if mistake.new else " *"
            lines.append(f"| {mistake.part} | {mistake.what}{mark} | {took:g} | {within} | {by} |")
    return lines


def measure(tries, most, names):
    """Yield mistakes with the seeds that each try took, and the checks that have found it."""
    for mistake in MISTAKES:
        if not names or mistake.name in names:
            found = [mistake.seeds_until_found(_APART * each, most) for each in range(tries)]
            yield mistake, [seeds or float("inf") for seeds, _ in found], [by for _, by in found]


def main(arguments):
    """Print the table, or what is measured."""
    if not arguments:
        sys.stdout.write("\n".join(table()) + "\n")
        return
    _, tries, most, *names = arguments
    for mistake, taken, by in measure(int(tries), int(most), names):
        seeds = ", ".join(f"{each:g}" for each in taken)
        sys.stdout.write(f"{mistake.name}: {median(taken):g} ({seeds}) {by}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
