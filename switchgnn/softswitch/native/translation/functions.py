# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Translates the functions of a generated Python module into C++."""

import ast
import re
from collections.abc import Callable, Mapping, Sequence

from switchgnn.softswitch.codegen.wire import HeaderCodec
from switchgnn.softswitch.native.interface import TableShape
from switchgnn.softswitch.native.translation import operators
from switchgnn.softswitch.native.translation.arrays import Arrays
from switchgnn.softswitch.native.translation.body import Body
from switchgnn.softswitch.native.translation.digests import Digests
from switchgnn.softswitch.native.translation.expressions import untranslatable
from switchgnn.softswitch.native.translation.headers import Headers
from switchgnn.softswitch.native.translation.lookups import Lookups
from switchgnn.softswitch.native.translation.results import Places, Results
from switchgnn.softswitch.native.translation.storage import Storage
from switchgnn.softswitch.program import Program

# Names of values that are computed once and not changed.
_NAMED = re.compile(r"_[xilvb]|_k\d+")


class FunctionTranslator:
    """Translates the statements of one function.

    Args:
        program: the program.
        storage: its variables.
        codecs: how headers are read and written, by their names.
        shapes: its tables.
        messages: the messages for the log, to which this function's are appended.
        results: where each part of what the function returns goes.
    """

    def __init__(  # noqa: PLR0917
        self,
        program: Program,
        storage: Storage,
        codecs: Mapping[str, HeaderCodec],
        shapes: Mapping[str, TableShape],
        messages: list[str],
        results: Places,
    ) -> None:
        self._body = Body(storage)
        self._arrays = Arrays(self._body, program)
        self._lookups = Lookups(self._body, shapes)
        self._headers = Headers(self._body, codecs)
        self._digests = Digests(self._body)
        self._results = Results(self._body, results, messages)
        # What is assigned to these names is no number.
        self._special: Mapping[str, Callable[[ast.expr], None]] = {
            "_e": self._lookups.store_entry,
            "_a": self._lookups.store_action,
            "_c": self._lookups.store_counts,
            "_d": self._digests.store,
            "_w": _ignore,
            "after": self._results.store_after,
            "out": self._headers.store_out,
        }
        # What is added to these is appended.
        self._longer: Mapping[str, Callable[[ast.expr], None]] = {
            "_d": self._digests.append_payload,
            "_w": _ignore,
            "out": self._headers.append,
        }
        self._statements: Mapping[type[ast.stmt], Callable[[ast.stmt], None]] = {
            ast.Pass: _nothing,
            ast.Break: self._break,
            ast.Continue: self._continue,
            ast.While: self._while,
            ast.If: self._if,
            ast.AugAssign: self._augmented,
            ast.Assign: self._assign,
            ast.Expr: self._results.log,
            ast.Return: self._results.give_back,
        }

    @property
    def lines(self) -> Sequence[str]:
        """The C++ so far."""
        return self._body.lines

    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Translate statements one after another."""
        for statement in statements:
            handler = self._statements.get(type(statement))
            if handler is None:
                raise untranslatable(statement)
            handler(statement)

    def _break(self, _statement: ast.stmt) -> None:
        self._body.line("break;")

    def _continue(self, _statement: ast.stmt) -> None:
        self._body.line("continue;")

    def _while(self, statement: ast.stmt) -> None:
        if not isinstance(statement, ast.While):
            raise untranslatable(statement)
        self._body.line("for (;;) {")
        self.body(statement.body)
        self._body.line("}")

    def _if(self, statement: ast.stmt) -> None:
        if not isinstance(statement, ast.If):
            raise untranslatable(statement)
        named = dict(self._body.expressions.named)
        # What the condition computes first is in a block of its own.
        self._body.line("{")
        with self._lookups.inside():
            self._body.line(f"if ({self._condition(statement.test)}) {{")
            with self._lookups.branch(statement.test):
                self.body(statement.body)
            if statement.orelse:
                self._body.line("} else {")
                self.body(statement.orelse)
        self._body.line("}")
        self._body.line("}")
        self._body.expressions.named = named

    def _condition(self, node: ast.expr) -> str:
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return _is_none(node)
        return self._body.expressions.test(node)

    def _augmented(self, statement: ast.stmt) -> None:
        if not isinstance(statement, ast.AugAssign):
            raise untranslatable(statement)
        target = statement.target
        if isinstance(target, ast.Subscript):
            self._arrays.count(target, statement.value)
        elif isinstance(target, ast.Name) and target.id in self._longer:
            self._longer[target.id](statement.value)
        elif isinstance(target, ast.Name):
            value = ast.BinOp(ast.Name(target.id), statement.op, statement.value)
            self._store(target.id, value)
        else:
            raise untranslatable(statement)

    def _assign(self, statement: ast.stmt) -> None:
        if not isinstance(statement, ast.Assign):
            raise untranslatable(statement)
        for target in statement.targets:
            if isinstance(target, ast.Tuple):
                self._unpack_tuple(target, statement.value)
            elif isinstance(target, ast.Subscript):
                self._arrays.write(target, statement.value)
            elif isinstance(target, ast.Name):
                self._store(target.id, statement.value)
            else:
                raise untranslatable(statement)

    def _unpack_tuple(self, target: ast.Tuple, node: ast.expr) -> None:
        names = [each.id for each in target.elts if isinstance(each, ast.Name)]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            self._headers.unpack(node)
        elif isinstance(node, ast.Subscript):
            self._lookups.parameters(names)
        elif isinstance(node, ast.Tuple):
            # Two variables are exchanged.
            self._body.line(f"std::swap({', '.join(names)});")
        elif isinstance(node, ast.Name):
            for name in names:
                member = f"{node.id}{'->' if node.id == 'kept' else '.'}{name}"
                self._body.line(f"{name} = {member};")
        else:
            raise untranslatable(node)

    def _store(self, name: str, node: ast.expr) -> None:
        special = self._special.get(name)
        if special is not None:
            special(node)
        elif name in self._body.storage.raw:
            if not isinstance(node, ast.Constant):
                raise untranslatable(node)
            self._body.line(f"{name} = {{}};")
        elif _NAMED.fullmatch(name):
            self._body.name(name, self._body.value(node))
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            self._body.line(f"{name} = {_is_none(node)};")
        else:
            self._store_number(name, node)

    def _store_number(self, name: str, node: ast.expr) -> None:
        value = self._body.value(node)
        self._body.expressions.named.pop(name, None)
        slot = self._body.storage.slot(name)
        if slot is not None:
            value = operators.cut(value, slot.width, slot.signed)
        self._body.line(f"{name} = {self._body.as_variable(value, name)};")


def _nothing(_statement: ast.stmt) -> None:
    return


def _ignore(_node: ast.expr) -> None:
    return


def _is_none(node: ast.Compare) -> str:
    if not isinstance(node.left, ast.Name):
        raise untranslatable(node.left)
    return f"{node.left.id} {'==' if isinstance(node.ops[0], ast.Is) else '!='} nullptr"
