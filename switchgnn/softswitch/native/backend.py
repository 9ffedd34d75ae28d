# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Which code a program is run as."""

import os
from enum import Enum

from switchgnn.softswitch.errors import SoftSwitchError

# The variable of the environment that says it where no option does.
VARIABLE = "SWITCHGNN_BACKEND"


class Backend(str, Enum):
    """The code that a program becomes: C++, Python, or C++ where a compiler is there."""

    NATIVE = "native"
    PYTHON = "python"
    AUTO = "auto"


def backend_here(asked: Backend | None) -> Backend:
    """Return what was asked for; where nothing was, what the environment says.

    Raises:
        SoftSwitchError: the environment names no back end.
    """
    if asked is not None:
        return asked
    said = os.environ.get(VARIABLE) or Backend.AUTO.value
    try:
        return Backend(said)
    except ValueError:
        names = ", ".join(each.value for each in Backend)
        raise SoftSwitchError(
            f"{VARIABLE} says '{said}', and there is no such back end: take one of {names}."
        ) from None
