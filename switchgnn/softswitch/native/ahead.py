# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Compiles a program before a switch needs it, so that nothing that has a deadline waits for it."""

import logging
import time
from dataclasses import dataclass

from switchgnn.base.native import find_compiler
from switchgnn.softswitch.errors import UnsupportedProgramError
from switchgnn.softswitch.given_program import GivenProgram
from switchgnn.softswitch.native.backend import Backend, backend_here
from switchgnn.softswitch.native.build import NoCompilerError
from switchgnn.softswitch.native.engine import native_library

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ahead:
    """What switches will run a program as, and how long its compilation took.

    Attributes:
        backend: the code.
        seconds: the time; next to nothing where an earlier run has compiled it.
        reason: why it is Python where native code might have been; None elsewhere.
    """

    backend: Backend
    seconds: float
    reason: str | None = None


def compile_ahead(config: bytes, asked: Backend | None = None) -> Ahead:
    """Compile a program as the embedded switches will, and keep it for them.

    Args:
        config: the BMv2 JSON document.
        asked: which code it is to become; None: what the environment says.

    Returns:
        What they will run, and the time.

    Raises:
        SoftSwitchError: the environment names no back end.
        NoCompilerError: the back end has to be native, and there is no compiler.
        UnsupportedProgramError: no switch runs the program.
        MalformedProgramError: it is no program.
    """
    chosen = backend_here(asked)
    begin = time.monotonic()
    if chosen is Backend.PYTHON:
        return Ahead(Backend.PYTHON, 0.0)
    if chosen is Backend.AUTO and find_compiler() is None:
        return Ahead(Backend.PYTHON, 0.0, "There is no C++ compiler")
    given = GivenProgram(config)
    try:
        native_library(given)
    except (NoCompilerError, UnsupportedProgramError) as error:
        if chosen is Backend.NATIVE:
            raise
        given.check()
        # A user who has a compiler would not guess why everything is slow.
        _LOG.warning("The program runs as Python: %s", error)
        return Ahead(Backend.PYTHON, time.monotonic() - begin, str(error))
    return Ahead(Backend.NATIVE, time.monotonic() - begin)
