# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Modules of this project as programs that import nothing from the folder they are started in.

``python -m`` looks for modules in the current folder first, before its own. Who works in a folder
that belongs to somebody else, or in /tmp, would run what lies there under the name of any module.
``python -P`` is the same, but not in Python 3.10: https://docs.python.org/3/using/cmdline.html#cmdoption-P
"""

import sys
from collections.abc import Sequence

# The empty word stands for the current folder. Nothing but `sys`, which is built in, is imported
# before it is gone.
_START = (
    "import sys; sys.path[:] = filter(None, sys.path); del sys.argv[0]; "
    "import runpy; runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)
_OURS = (sys.executable, "-c", _START)
_USUAL = (sys.executable, "-m")


def python_program(module: str, *arguments: str) -> tuple[str, ...]:
    """Return the command that runs a module with arguments."""
    return (*_OURS, module, *arguments)


def module_of(command: Sequence[str]) -> list[str] | None:
    """Return the module that a command runs, and its arguments; None: it is another program."""
    for start in (_OURS, _USUAL):
        if tuple(command[: len(start)]) == start:
            return list(command[len(start) :])
    return None
