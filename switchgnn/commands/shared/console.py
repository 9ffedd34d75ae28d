# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The console of all commands: names from users are printed as they are, brackets included."""

from rich.console import Console


def plain_console(
    *, stderr: bool = False, highlight: bool = True, soft_wrap: bool = False
) -> Console:
    """Make the console of a command; colours of our own are `rich.text.Text`.

    Args:
        stderr: print to standard error.
        highlight: colour numbers and paths on a terminal.
        soft_wrap: leave long lines to the terminal.

    Returns:
        A console that takes no word for markup.
    """
    return Console(stderr=stderr, highlight=highlight, soft_wrap=soft_wrap, markup=False)
