# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Translates what functions give back, and what they write to the log."""

import ast
from collections.abc import Sequence

from switchgnn.softswitch.native.translation.body import Body
from switchgnn.softswitch.native.translation.expressions import untranslatable
from switchgnn.softswitch.native.translation.values import extended

# Where each part of what a function returns goes, and as what: `number`, `state`, or None for
# nowhere.
Places = Sequence[tuple[str, str | None]]


class Results:
    """What one function gives back.

    Args:
        body: the function.
        places: where each part of what it returns goes.
        messages: the messages for the log, to which this function's are appended.
    """

    def __init__(self, body: Body, places: Places, messages: list[str]) -> None:
        self._body = body
        self._places = places
        self._messages = messages

    def give_back(self, statement: ast.stmt) -> None:
        """Translate a return."""
        if not isinstance(statement, ast.Return):
            raise untranslatable(statement)
        if not isinstance(statement.value, ast.Tuple):
            raise untranslatable(statement)
        for (place, kind), node in zip(self._places, statement.value.elts, strict=True):
            if kind == "state":
                self._fill(place, node)
            elif kind is not None:
                self._body.line(f"{place} = {extended(self._body.value(node), 1)};")

    def _fill(self, place: str, node: ast.expr) -> None:
        if not isinstance(node, ast.Tuple):
            raise untranslatable(node)
        for element in node.elts:
            if not isinstance(element, ast.Name):
                raise untranslatable(element)
            self._body.line(f"{place}.{element.id} = {element.id};")

    def store_after(self, node: ast.expr) -> None:
        """Keep the variables behind egress where a copy of the packet needs them."""
        if not isinstance(node, ast.IfExp):
            raise untranslatable(node)
        self._body.line(f"if ({self._body.expressions.test(node.test)}) {{")
        self._fill("after", node.body)
        self._body.line("}")

    def log(self, statement: ast.stmt) -> None:
        """Translate a message to the log."""
        if not isinstance(statement, ast.Expr):
            raise untranslatable(statement)
        call = statement.value
        if not isinstance(call, ast.Call) or getattr(call.func, "id", "") != "log_message":
            raise untranslatable(statement)
        template, values = call.args
        if not isinstance(template, ast.Constant) or not isinstance(values, ast.Tuple):
            raise untranslatable(statement)
        # Here is its number only; program_source.py has the text.
        self._messages.append(str(template.value))
        self._body.line("{ Told told;")
        for node in values.elts:
            value = self._body.value(node)
            sign = "true" if value.signed else "false"
            self._body.line(f"Told::add<{sign}>(told, ({value.type}){value.text});")
        self._body.line(f"host.log({len(self._messages) - 1}, told); }}")
