# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Translate expressions of generated Python to C++.

Generated Python is a small language of unbounded integers (see check_generated). The type of each
expression follows from its range, so that nothing overflows that does not overflow in Python.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from switchgnn.softswitch.codegen.layout import FieldLayout, Slot
from switchgnn.softswitch.codegen.wire import HeaderCodec
from switchgnn.softswitch.errors import UnsupportedProgramError
from switchgnn.softswitch.native.translation import operators
from switchgnn.softswitch.native.translation.operators import (
    Value,
    constant,
    extended,
    made,
    reduced,
    type_of,
    variable,
    words_for,
)

# A node of generated code, whose form follows from the generators.
Node = Any

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.BitOr: "|",
    ast.BitXor: "^",
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


class Expressions:
    """Translates expressions of one function.

    Attributes:
        named: values of names other than variables.
        subscript: translates the element of an array of the program.
    """

    def __init__(self, look_up: Callable[[str], Value], hoist: Callable[[str], None]) -> None:
        self._look_up = look_up
        self._hoist = hoist
        self.subscript: Callable[[str, Value], Value] = _no_array
        self.named: dict[str, Value] = {}
        self._number = 0

    def value(self, node: Node, need: int | None = None) -> Value:
        """Translate an expression of which the ``need`` lowest bits matter (None: all)."""
        return reduced(self._value(node, need), need)

    def _value(self, node: Node, need: int | None) -> Value:
        handler = _VALUES.get(type(node))
        if handler is None:
            raise untranslatable(node)
        return handler(self, node, need)

    def test(self, node: Node) -> str:
        """Translate a condition."""
        if isinstance(node, ast.BoolOp):
            operator = " && " if isinstance(node.op, ast.And) else " || "
            return "(" + operator.join(self.test(each) for each in node.values) + ")"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return f"!{self.test(node.operand)}"
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        value = self.value(node)
        if value.constant is not None:
            return "true" if value.constant else "false"
        return f"nonzero({value.text})"

    def temporary(self, value: Value) -> Value:
        """Compute a value once, before the current statement."""
        if value.constant is not None:
            return value
        self._number += 1
        name = f"t{self._number}"
        self._hoist(f"const {value.type} {name} = {value.text};")
        return Value(name, value.low, value.high, value.ones)

    def _constant(self, node: Node, _need: int | None) -> Value:
        return constant(int(node.value))

    def _name(self, node: Node, _need: int | None) -> Value:
        known = self.named.get(node.id)
        return self._look_up(node.id) if known is None else known

    def _named_expression(self, node: Node, _need: int | None) -> Value:
        value = self.temporary(self.value(node.value))
        self.named[node.target.id] = value
        return value

    def _binary(self, node: Node, need: int | None) -> Value:
        operator = type(node.op)
        if operator is ast.BitAnd:
            return self._and(node, need)
        if operator is ast.LShift:
            left, right = self.value(node.left, need), self.value(node.right)
            return operators.shift_left(left, right, need)
        if operator is ast.RShift:
            return operators.shift_right(self.value(node.left), self.value(node.right))
        if operator in {ast.FloorDiv, ast.Mod}:
            part = "quotient" if operator is ast.FloorDiv else "remainder"
            return operators.divide(self.value(node.left), self.value(node.right), part)
        sign = _OPERATORS.get(operator)
        if sign is None:
            raise untranslatable(node)
        left, right = self.value(node.left, need), self.value(node.right, need)
        return operators.combine(sign, left, right, need)

    def _and(self, node: Node, need: int | None) -> Value:
        for one, other in ((node.left, node.right), (node.right, node.left)):
            mask = other.value if isinstance(other, ast.Constant) else None
            if isinstance(mask, int) and mask >= 0:
                # Of the other operand, only the bits of the mask matter.
                width = max(mask.bit_length(), 1)
                inner = self.value(one, width if need is None else min(width, need))
                return operators.combine("&", inner, constant(int(mask)), need)
        left, right = self.value(node.left, need), self.value(node.right, need)
        return operators.combine("&", left, right, need)

    def _unary(self, node: Node, need: int | None) -> Value:
        if isinstance(node.op, ast.Not):
            return operators.truth(self.test(node))
        inner = self.value(node.operand, need)
        if isinstance(node.op, ast.Invert):
            return operators.complement(inner, need)
        return operators.combine("-", constant(0), inner, need)

    def _logic(self, node: Node, _need: int | None) -> Value:
        last = node.values[-1]
        if isinstance(node.op, ast.Or) and isinstance(last, ast.Constant) and last.value == 1:
            # The size of a hash, at least one.
            size = self.temporary(self.value(node.values[0]))
            return operators.if_else(f"nonzero({size.text})", size, constant(1))
        return operators.truth(self.test(node))

    def _comparison_value(self, node: Node, _need: int | None) -> Value:
        return operators.truth(self.test(node))

    def _comparison(self, node: Node) -> str:
        left = self.value(node.left)
        parts = []
        for operator, right_node in zip(node.ops, node.comparators, strict=True):
            sign = _COMPARISONS.get(type(operator))
            if sign is None:
                raise untranslatable(node)
            right = self.value(right_node)
            parts.append(operators.compare(sign, left, right))
            left = right
        return "(" + " && ".join(parts) + ")"

    def _choice(self, node: Node, need: int | None) -> Value:
        condition = self.test(node.test)
        return operators.if_else(
            condition, self.value(node.body, need), self.value(node.orelse, need)
        )

    def _subscript(self, node: Node, _need: int | None) -> Value:
        index = self.value(node.slice)
        if isinstance(node.value, ast.Tuple):
            elements = [self.value(element) for element in node.value.elts]
            picked = elements[-1]
            for number in reversed(range(len(elements) - 1)):
                is_this = operators.compare("==", index, constant(number))
                picked = operators.if_else(is_this, elements[number], picked)
            return picked
        return self.subscript(node.value.id, index)

    def _call(self, node: Node, _need: int | None) -> Value:
        function = node.func.id if isinstance(node.func, ast.Name) else ""
        if function in {"min", "max"}:
            operator = "<" if function == "min" else ">"
            one, other = (self.temporary(self.value(each)) for each in node.args)
            chosen = operators.if_else(operators.compare(operator, one, other), one, other)
            pick = min if function == "min" else max
            return _narrowed(chosen, pick(one.low, other.low), pick(one.high, other.high))
        if function == "len":
            return Value("(u64)size", 0, 1 << 31)
        if function == "from_bytes":
            return self._from_bytes(node.args[0])
        if function == "randint":
            return self._random(*(self.value(each) for each in node.args))
        raise untranslatable(node)

    def _from_bytes(self, node: Node) -> Value:
        if isinstance(node, ast.Name):
            return self.value(node)
        begin = _offset(node.slice.lower)
        if _is_sum(node.slice.upper) and _is_sum(node.slice.upper.left):
            return self._bytes_of_some_length(begin, node.slice.upper)
        size = _offset(node.slice.upper) - begin
        if size == 0:
            return constant(0)
        text = f"load_wire<{size}>(data + pos + {begin})"
        return made(text, -(-size // 8), 0, (1 << (8 * size)) - 1)

    def _bytes_of_some_length(self, begin: int, end: Node) -> Value:
        count = self.value(end.right)
        fixed = _offset(end.left) - begin
        most = fixed + count.high
        words = max(1, -(-most // 8))
        size = f"{fixed} + {extended(count, 1)}"
        text = f"load_some<{words}>(data + pos + {begin}, {size})"
        return made(text, words, 0, (1 << (8 * most)) - 1)

    def _random(self, low: Value, high: Value) -> Value:
        if high.words > 1 or low.words > 1 or low.signed or high.signed:
            raise UnsupportedProgramError(
                "random numbers of more than 64 bits", "an action", "use --backend python"
            )
        text = f"{low.text} + random_up_to({high.text} - {low.text})"
        return made(text, 1, 0, high.high)


def _no_array(array: str, _index: Value) -> Value:
    raise untranslatable(ast.Name(array))


def _narrowed(value: Value, low: int, high: int) -> Value:
    """Return a value with a known range."""
    return made(extended(value, value.words), value.words, low, high)


def _is_sum(node: Node) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)


def _offset(node: Node) -> int:
    """Return the offset from ``pos`` in a slice of the packet."""
    if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant):
        return number(node.right)
    raise UnsupportedProgramError("this lookahead", "the parser", "use --backend python")


def untranslatable(node: Node) -> UnsupportedProgramError:
    """Return the error for code that no generator emits."""
    return UnsupportedProgramError(
        f"a {type(node).__name__} like '{ast.unparse(node)[:60]}'",
        "the native back end",
        "use --backend python, and report this",
    )


_VALUES: dict[type[ast.expr], Callable[[Expressions, Node, int | None], Value]] = {
    ast.Constant: Expressions._constant,
    ast.Name: Expressions._name,
    ast.NamedExpr: Expressions._named_expression,
    ast.BinOp: Expressions._binary,
    ast.UnaryOp: Expressions._unary,
    ast.BoolOp: Expressions._logic,
    ast.Compare: Expressions._comparison_value,
    ast.IfExp: Expressions._choice,
    ast.Subscript: Expressions._subscript,
    ast.Call: Expressions._call,
}


_BIG = 1 << 40
# Ranges of the variables that are not fields.
_RANGES = {
    "pos": (0, _BIG),
    "pl": (-_BIG, _BIG),
    "n": (0, 1 << 31),
    "cs": (-1, 1 << 16),
    "cl": (0, 1 << 32),
    "rs": (0, 1 << 32),
    "rc": (0, 1 << 32),
    "tr": (-_BIG, _BIG),
    "perr": (0, (1 << 32) - 1),
    "ex": (0, 1),
    "_bad": (0, 1),
    "_h": (0, 1),
    "_s": (0, 1 << 30),
    "_j": (0, 1 << 30),
    "_sn": (0, 1 << 30),
    "_jn": (0, 1 << 30),
    "_a": (-1, 1 << 30),
    "itype": (0, 7),
    "port": (0, 511),
    "rid": (-1, (1 << 32) - 1),
    "now": (0, 1 << 62),
    "enq_time": (0, 1 << 62),
    "enq_depth": (0, 1 << 40),
    "deq_depth": (0, 1 << 40),
}


class Storage:
    """The variables of a program and their types; ``raw`` ones hold undecoded bytes."""

    def __init__(self, layout: FieldLayout, codecs: Mapping[str, HeaderCodec]) -> None:
        self._ranges: dict[str, tuple[int, int]] = {}
        self._slots: dict[str, Slot] = {}
        self.raw: dict[str, int] = {}
        program = layout.program
        for name in program.headers:
            self._ranges[layout.valid(name)] = (0, 1)
            for slot in layout.fields(name):
                self._ranges[slot.variable] = (slot.low, slot.high)
                self._slots[slot.variable] = slot
                if slot.length:
                    self._ranges[slot.length] = (0, slot.width // 8)
        for name in (*program.stacks, *program.union_stacks):
            self._ranges[layout.next_index(name)] = (0, program.stack_size(name))
        for codec in codecs.values():
            for run in (run for part in codec.parts for run in part.runs):
                if run.raw:
                    self.raw[run.slots[0].variable] = run.width // 8

    def slot(self, name: str) -> Slot | None:
        """Return the slot of a field's variable, or None."""
        return self._slots.get(name)

    def range(self, name: str) -> tuple[int, int]:
        """Return the range of a variable."""
        return self._ranges.get(name) or _RANGES[name]

    def type(self, name: str) -> str:
        """Return the type of a variable."""
        if name in self.raw:
            return f"Raw<{self.raw[name]}>"
        low, high = self.range(name)
        return type_of(words_for(low, high), low < 0)


class Body:
    """The lines of one function in C++, shared by the translators of its statements."""

    def __init__(self, storage: Storage) -> None:
        self.lines: list[str] = []
        self.storage = storage
        self.expressions = Expressions(self._look_up, self.lines.append)

    def line(self, text: str) -> None:
        """Append a line."""
        self.lines.append(text)

    def _look_up(self, name: str) -> Value:
        return variable(name, *self.storage.range(name))

    def value(self, node: Node) -> Value:
        """Translate an expression."""
        return self.expressions.value(node)

    def name(self, name: str, value: Value) -> None:
        """Compute a value here and give it a name."""
        self.expressions.named[name] = self.expressions.temporary(value)

    def as_variable(self, value: Value, name: str) -> str:
        """Convert a value to the type of a variable."""
        low, high = self.storage.range(name)
        words = words_for(low, high)
        text = extended(value, words)
        return f"({type_of(words, True)})({text})" if low < 0 and words <= 2 else text


def number(node: Node) -> int:
    """Return the value of a constant expression."""
    return int(node.value)


# Destination and kind (`number`, `state`, or None: nowhere) of each returned value.
Places = Sequence[tuple[str, str | None]]


class Results:
    """The results and log messages of one function."""

    def __init__(self, body: Body, places: Places, messages: list[str]) -> None:
        self._body = body
        self._places = places
        self._messages = messages

    def give_back(self, statement: Node) -> None:
        """Translate a return."""
        for (place, kind), node in zip(self._places, statement.value.elts, strict=True):
            if kind == "state":
                self._fill(place, node)
            elif kind is not None:
                self._body.line(f"{place} = {extended(self._body.value(node), 1)};")

    def _fill(self, place: str, node: Node) -> None:
        for element in node.elts:
            self._body.line(f"{place}.{element.id} = {element.id};")

    def store_after(self, node: Node) -> None:
        """Keep the variables after egress if a copy of the packet needs them."""
        self._body.line(f"if ({self._body.expressions.test(node.test)}) {{")
        self._fill("after", node.body)
        self._body.line("}")

    def log(self, statement: Node) -> None:
        """Translate a log message."""
        call = statement.value
        template, values = call.args
        # The text is in program_source.py, by number.
        self._messages.append(str(template.value))
        self._body.line("{ LogValues logged;")
        for node in values.elts:
            value = self._body.value(node)
            sign = "true" if value.signed else "false"
            self._body.line(f"LogValues::add<{sign}>(logged, ({value.type}){value.text});")
        self._body.line(f"host.log({len(self._messages) - 1}, logged); }}")
