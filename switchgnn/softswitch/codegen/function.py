# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""State shared by the generators that write into one Python function."""

from collections.abc import Sequence

from switchgnn.softswitch.codegen import arithmetic
from switchgnn.softswitch.codegen.expressions import ExpressionCompiler
from switchgnn.softswitch.codegen.layout import Layout, Slot
from switchgnn.softswitch.codegen.names import GlobalNames
from switchgnn.softswitch.codegen.source import SourceWriter
from switchgnn.softswitch.codegen.terms import Term
from switchgnn.softswitch.errors import UnsupportedProgramError
from switchgnn.softswitch.program import Json

INGRESS = "ingress"
EGRESS = "egress"


class FunctionContext:
    """One function that is being generated: its lines and the variables it reads and writes.

    Args:
        layout: the variables of the program.
        names: the names of tables and arrays in the generated code.
        stage: INGRESS or EGRESS.
    """

    def __init__(self, layout: Layout, names: GlobalNames, stage: str) -> None:
        self.layout = layout
        self.names = names
        self.stage = stage
        self.writer = SourceWriter(1)
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        self.expressions = ExpressionCompiler(layout, stage, self.reads)
        self.uses_exit = False
        self.uses_truncate = False
        self.uses_clone = False

    def line(self, text: str) -> None:
        """Append one line."""
        self.writer.line(text)

    def at(self, where: str, parameters: Sequence[Term] = ()) -> None:
        """Set the object whose code follows, and its action parameters."""
        self.expressions = self.expressions.at(where, parameters)

    def refuse(self, feature: str, hint: str) -> UnsupportedProgramError:
        """Return the error that names a feature in the current object."""
        return self.expressions.refuse(feature, hint)

    def term(self, node: Json) -> Term:
        """Return the value of a type-value object."""
        return self.expressions.value(node)

    def set_valid(self, header: str) -> None:
        """Mark a header valid, and the other members of its union invalid."""
        self.set_variable(self.layout.valid(header), "1")
        for other in self.layout.others(header):
            self.set_variable(other, "0")

    def copy_slot(self, slot: Slot, origin: Slot) -> None:
        """Assign one field to another, with its length if packets bring that."""
        if slot.length or origin.length:
            if not (slot.length and origin.length) or slot.width != origin.width:
                raise self.refuse(
                    "assigning a varbit to a field of another type", "assign to one as long"
                )
            self.reads.add(origin.length)
            self.set_variable(slot.length, origin.length)
        self.set_slot(slot, self.expressions.load(origin))

    def set_slot(self, slot: Slot, term: Term) -> None:
        """Assign a value to a field, reduced to the field's width."""
        wrap = arithmetic.wrap_signed if slot.signed else arithmetic.wrap_unsigned
        self.writes.add(slot.variable)
        self.line(f"{slot.variable} = {wrap(term, slot.width).text}")

    def set_variable(self, variable: str, text: str) -> None:
        """Assign to a validity bit or stack index."""
        self.writes.add(variable)
        self.line(f"{variable} = {text}")

    def set_standard(self, name: str, text: str) -> None:
        """Assign to a standard metadata field if the program has it."""
        slot = self.layout.standard(name)
        if slot is not None:
            self.writes.add(slot.variable)
            self.line(f"{slot.variable} = {text}")
