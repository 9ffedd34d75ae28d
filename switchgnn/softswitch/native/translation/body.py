# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The function that is being translated: its lines so far, its variables, its expressions."""

import ast

from switchgnn.softswitch.native.translation.expressions import Expressions, untranslatable
from switchgnn.softswitch.native.translation.storage import Storage
from switchgnn.softswitch.native.translation.values import (
    Value,
    extended,
    type_of,
    variable,
    words_for,
)


class Body:
    """One function in C++; what translates its statements shares it.

    Args:
        storage: the variables of the program.
    """

    def __init__(self, storage: Storage) -> None:
        self.lines: list[str] = []
        self.storage = storage
        self.expressions = Expressions(self._look_up, self.lines.append)

    def line(self, text: str) -> None:
        """Append a line."""
        self.lines.append(text)

    def _look_up(self, name: str) -> Value:
        return variable(name, *self.storage.range(name))

    def value(self, node: ast.expr) -> Value:
        """Return an expression as a value."""
        return self.expressions.value(node)

    def name(self, name: str, value: Value) -> None:
        """Compute a value here, and call it by a name from now on."""
        self.expressions.named[name] = self.expressions.temporary(value)

    def as_variable(self, value: Value, name: str) -> str:
        """Return a value in the type of a variable."""
        low, high = self.storage.range(name)
        words = words_for(low, high)
        text = extended(value, words)
        return f"({type_of(words, True)})({text})" if low < 0 and words <= 2 else text


def number(node: ast.expr) -> int:
    """Return the number that an expression is.

    Raises:
        UnsupportedProgramError: it is none.
    """
    if not isinstance(node, ast.Constant) or not isinstance(node.value, int):
        raise untranslatable(node)
    return node.value
