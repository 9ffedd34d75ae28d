# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A program as a controller gives it; what it becomes is made when it is first needed."""

from functools import cached_property

from switchgnn.softswitch.codegen.compiler import CompiledProgram, compile_program
from switchgnn.softswitch.loader import load_program
from switchgnn.softswitch.program import Program


class GivenProgram:
    """A program, from its document.

    Where an earlier run has kept the native code of a document, nothing asks for its Python.

    Args:
        document: the BMv2 JSON document.
    """

    def __init__(self, document: bytes) -> None:
        self.document = document

    @cached_property
    def program(self) -> Program:
        """What the document says.

        Raises:
            MalformedProgramError: the document cannot be read.
            UnsupportedProgramError: the program uses a feature that the switch refuses.
        """
        return load_program(self.document)

    @cached_property
    def compiled(self) -> CompiledProgram:
        """The program as Python.

        Raises:
            MalformedProgramError: the program does not fit together.
            UnsupportedProgramError: the program uses a feature that the switch refuses.
        """
        return compile_program(self.program)

    def check(self) -> None:
        """See to it that the switch can run the program.

        Raises:
            MalformedProgramError: it is no program.
            UnsupportedProgramError: the program uses a feature that the switch refuses.
        """
        _ = self.compiled
