# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Which code a program is run as."""

from enum import Enum

# The variable of the environment that says it where no option does.
VARIABLE = "SWITCHGNN_BACKEND"


class Backend(str, Enum):
    """The code that a program becomes: C++, Python, or C++ where a compiler is there."""

    NATIVE = "native"
    PYTHON = "python"
    AUTO = "auto"
