# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Translates look-ups: `_e` is an entry, `_a` its action, `_c` its counters."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from switchgnn.softswitch.native.interface import TableShape, byte_size
from switchgnn.softswitch.native.translation import operators
from switchgnn.softswitch.native.translation.body import Body, number
from switchgnn.softswitch.native.translation.expressions import untranslatable
from switchgnn.softswitch.native.translation.values import made


class Lookups:
    """The tables of a program, in one function.

    Args:
        body: the function.
        shapes: the tables.
    """

    def __init__(self, body: Body, shapes: Mapping[str, TableShape]) -> None:
        self._body = body
        self._shapes = {f"tbl{shape.number}": shape for shape in shapes.values()}
        self._shape: TableShape | None = None
        self._action: int | None = None

    @contextmanager
    def branch(self, test: ast.expr) -> Iterator[None]:
        """Know in one branch of a condition which action it chooses.

        Args:
            test: the condition.

        Yields:
            While the statements of the branch are translated.
        """
        shape, action = self._shape, self._action
        self._action = _action_of(test, action)
        yield
        self._shape, self._action = shape, action

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Forget behind a statement what was looked up within it.

        Yields:
            While the statement is translated.
        """
        shape, action = self._shape, self._action
        yield
        self._shape, self._action = shape, action

    def store_entry(self, node: ast.expr) -> None:
        """Look up an entry, or take the default one."""
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            name = node.value.id.removesuffix("_default")
            self._shape = self._shapes[name]
            self._body.line(f"_e = {name}.fallback;")
            return
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            raise untranslatable(node)
        name = node.func.id.removesuffix("_lookup")
        shape = self._shapes[name]
        self._shape = shape
        parts = node.args[0].elts if isinstance(node.args[0], ast.Tuple) else node.args
        values = [self._body.value(part) for part in parts]
        key = operators.concatenated(list(zip(values, shape.widths, strict=True)))
        text = operators.full_words(key, shape.key_words)
        self._body.line(f"_e = {name}.lookup({text});")

    def store_counts(self, _node: ast.expr) -> None:
        """Take the counters of the entry."""
        self._body.line("_c = _e;")

    def store_action(self, _node: ast.expr) -> None:
        """Take the action of the entry."""
        self._body.line("_a = _e->action;")

    def parameters(self, names: Sequence[str]) -> None:
        """Take the parameters of the action."""
        if self._shape is None or self._action is None:
            raise untranslatable(ast.Name(names[0]))
        shape = self._shape
        widths = shape.parameter_widths[self._action]
        for name, width, offset in zip(names, widths, shape.offsets(self._action), strict=True):
            size = byte_size(width)
            text = f"load_here<{size}>(_e->data + {offset})"
            self._body.name(name, made(text, -(-size // 8), 0, (1 << width) - 1))


def _action_of(test: ast.expr, outer: int | None) -> int | None:
    """Return the number of the action that a condition chooses, or what was known before."""
    if (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id == "_a"
        and isinstance(test.ops[0], ast.Eq)
    ):
        return number(test.comparators[0])
    return outer
