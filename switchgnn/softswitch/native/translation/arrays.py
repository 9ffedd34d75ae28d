# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Translates what is done with registers and counters."""

import ast

from switchgnn.softswitch.native.interface import cell_bytes
from switchgnn.softswitch.native.translation import operators
from switchgnn.softswitch.native.translation.body import Body
from switchgnn.softswitch.native.translation.expressions import untranslatable
from switchgnn.softswitch.native.translation.values import Value, extended, made
from switchgnn.softswitch.program import Program


class Arrays:
    """The registers and counters of a program, in one function.

    Args:
        body: the function.
        program: the program.
    """

    def __init__(self, body: Body, program: Program) -> None:
        self._body = body
        self._registers = {f"reg{i}": r for i, r in enumerate(program.registers.values())}
        body.expressions.subscript = self._read

    def _read(self, array: str, index: Value) -> Value:
        register = self._registers.get(array)
        if register is None:
            raise untranslatable(ast.Name(array))
        size = cell_bytes(register.width)
        text = f"load_here<{size}>({_cell(array, size, index)})"
        return made(text, -(-size // 8), 0, (1 << register.width) - 1)

    def write(self, target: ast.Subscript, node: ast.expr) -> None:
        """Write a register's cell."""
        if not isinstance(target.value, ast.Name):
            raise untranslatable(target.value)
        register = self._registers[target.value.id]
        index, value = self._body.value(target.slice), self._body.value(node)
        size = cell_bytes(register.width)
        value = operators.cut(value, register.width)
        words = -(-size // 8)
        place = _cell(target.value.id, size, index)
        self._body.line(f"store_here<{size}>({place}, {extended(value, words)});")

    def count(self, target: ast.Subscript, node: ast.expr) -> None:
        """Add to a counter; `_c` are the counters of an entry."""
        if not isinstance(target.value, ast.Name):
            raise untranslatable(target.value)
        amount = extended(self._body.value(node), 1)
        if target.value.id == "_c":
            place = "bytes" if getattr(target.slice, "value", 0) else "packets"
            self._body.line(f"_c->{place} += {amount};")
            return
        index = extended(self._body.value(target.slice), 1)
        self._body.line(f"{target.value.id}[{index}] += {amount};")


def _cell(array: str, size: int, index: Value) -> str:
    return f"{array} + {size} * {extended(index, 1)}"
