# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What is said of an error that nobody has thought of."""

import re
from pathlib import Path
from types import TracebackType

CRASH = "crash"
_PACKAGE = Path(__file__).parents[2]
# Where an object was is different each time.
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")


def what_crashed(error: BaseException) -> str:
    """Return the type, the message and the place of an error, the same in each process."""
    message = _ADDRESS.sub("0x...", str(error))
    what = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return f"{what}{_place(error.__traceback__)}"


def _place(traceback: TracebackType | None) -> str:
    """Return the last place in this package that an error has come through."""
    place = ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        path = Path(code.co_filename)
        if path.is_relative_to(_PACKAGE):
            file = path.relative_to(_PACKAGE.parent)
            place = f", in {file}, line {traceback.tb_lineno}, {code.co_name}"
        traceback = traceback.tb_next
    return place
