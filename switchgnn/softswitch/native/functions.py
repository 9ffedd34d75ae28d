# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Translates the functions of a generated Python module into C++."""

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from switchgnn.softswitch.codegen.layout import Layout, Slot
from switchgnn.softswitch.codegen.wire import HeaderCodec, Run, joined
from switchgnn.softswitch.hashing import ALGORITHMS
from switchgnn.softswitch.native import operators
from switchgnn.softswitch.native.expressions import Expressions, untranslatable
from switchgnn.softswitch.native.interface import TableShape, byte_size, cell_bytes
from switchgnn.softswitch.native.values import (
    Value,
    extended,
    made,
    type_of,
    variable,
    words_for,
)
from switchgnn.softswitch.program import Program

Results = Sequence[tuple[str, str | None]]

_BIG = 1 << 40
_HASH_BITS = {"crc32": 32, "identity": 64}
# The other variables of the functions, and the numbers that they can be.
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
    """The variables of a program: their types, and which hold bytes of the wire as they are.

    Args:
        layout: the variables.
        codecs: how headers are read and written.
    """

    def __init__(self, layout: Layout, codecs: Mapping[str, HeaderCodec]) -> None:
        self._ranges: dict[str, tuple[int, int]] = {}
        self._slots: dict[str, Slot] = {}
        self.raw: dict[str, int] = {}
        program = layout.program
        for name in program.headers:
            self._ranges[layout.valid(name)] = (0, 1)
            for slot in layout.fields(name):
                self._ranges[slot.variable] = (slot.low, slot.high)
                self._slots[slot.variable] = slot
        for name, stack in program.stacks.items():
            self._ranges[layout.next_index(name)] = (0, len(stack.elements))
        for codec in codecs.values():
            for run in codec.runs:
                if run.raw:
                    self.raw[run.slots[0].variable] = run.width // 8

    def slot(self, name: str) -> Slot | None:
        """Return the slot of a field's variable, or None."""
        return self._slots.get(name)

    def range(self, name: str) -> tuple[int, int]:
        """Return the numbers that a variable can be."""
        return self._ranges.get(name) or _RANGES[name]

    def type(self, name: str) -> str:
        """Return the type of a variable."""
        if name in self.raw:
            return f"Raw<{self.raw[name]}>"
        low, high = self.range(name)
        return type_of(words_for(low, high), low < 0)


class FunctionTranslator:
    """Translates the statements of one function.

    Args:
        program: the program.
        storage: its variables.
        codecs: how headers are read and written, by their names.
        shapes: its tables.
        messages: the messages for the log, to which this function's are appended.
        results: where each part of what the function returns goes, and as what: ``number``,
            ``state``, or None for nowhere.
    """

    def __init__(  # noqa: PLR0917
        self,
        program: Program,
        storage: Storage,
        codecs: Mapping[str, HeaderCodec],
        shapes: Mapping[str, TableShape],
        messages: list[str],
        results: Results,
    ) -> None:
        self.lines: list[str] = []
        self._storage = storage
        self._unpack = {codec.unpack_name: codec for codec in codecs.values()}
        self._pack = {codec.pack_name: codec for codec in codecs.values()}
        self._shapes = {f"tbl{shape.number}": shape for shape in shapes.values()}
        self._registers = {f"reg{i}": r for i, r in enumerate(program.registers.values())}
        self._expressions = Expressions(self._look_up, self._subscript, self.lines.append)
        self._shape: TableShape | None = None
        self._action: int | None = None
        self._messages = messages
        self._results = results

    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Translate statements one after another."""
        for statement in statements:
            handler = _STATEMENTS.get(type(statement))
            if handler is None:
                raise untranslatable(statement)
            handler(self, statement)

    def _line(self, text: str) -> None:
        self.lines.append(text)

    def _look_up(self, name: str) -> Value:
        return variable(name, *self._storage.range(name))

    def _subscript(self, array: str, index: Value) -> Value:
        register = self._registers.get(array)
        if register is None:
            raise untranslatable(ast.Name(array))
        size = cell_bytes(register.width)
        text = f"load_here<{size}>({self._cell(array, size, index)})"
        return made(text, -(-size // 8), 0, (1 << register.width) - 1)

    def _cell(self, array: str, size: int, index: Value) -> str:
        return f"{array} + {size} * {extended(index, 1)}"

    def _ignore(self, _node: ast.expr) -> None:
        return

    def _pass(self, _statement: ast.stmt) -> None:
        return

    def _break(self, _statement: ast.stmt) -> None:
        self._line("break;")

    def _continue(self, _statement: ast.stmt) -> None:
        self._line("continue;")

    def _while(self, statement: ast.stmt) -> None:
        if not isinstance(statement, ast.While):
            raise untranslatable(statement)
        self._line("for (;;) {")
        self.body(statement.body)
        self._line("}")

    def _if(self, statement: ast.stmt) -> None:
        if not isinstance(statement, ast.If):
            raise untranslatable(statement)
        named, shape, action = dict(self._expressions.named), self._shape, self._action
        # What the condition computes first is in a block of its own.
        self._line("{")
        self._line(f"if ({self._condition(statement.test)}) {{")
        self._action = _action_of(statement.test, action)
        self.body(statement.body)
        self._shape, self._action = shape, action
        if statement.orelse:
            self._line("} else {")
            self.body(statement.orelse)
        self._line("}")
        self._line("}")
        self._expressions.named, self._shape, self._action = named, shape, action

    def _condition(self, node: ast.expr) -> str:
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return self._is_none(node)
        return self._expressions.test(node)

    def _is_none(self, node: ast.Compare) -> str:
        if not isinstance(node.left, ast.Name):
            raise untranslatable(node.left)
        return f"{node.left.id} {'==' if isinstance(node.ops[0], ast.Is) else '!='} nullptr"

    def _augmented(self, statement: ast.stmt) -> None:
        if not isinstance(statement, ast.AugAssign):
            raise untranslatable(statement)
        target = statement.target
        if isinstance(target, ast.Subscript):
            self._count(target, statement.value)
        elif isinstance(target, ast.Name) and target.id in {"out", "_d", "_w"}:
            self._append(target.id, statement.value)
        elif isinstance(target, ast.Name):
            value = ast.BinOp(ast.Name(target.id), statement.op, statement.value)
            self._store(target.id, value)
        else:
            raise untranslatable(statement)

    def _count(self, target: ast.Subscript, value: ast.expr) -> None:
        if not isinstance(target.value, ast.Name):
            raise untranslatable(target.value)
        amount = extended(self._expressions.value(value), 1)
        if target.value.id == "_c":
            place = "bytes" if getattr(target.slice, "value", 0) else "packets"
            self._line(f"_c->{place} += {amount};")
            return
        index = extended(self._expressions.value(target.slice), 1)
        self._line(f"{target.value.id}[{index}] += {amount};")

    def _assign(self, statement: ast.stmt) -> None:
        if not isinstance(statement, ast.Assign):
            raise untranslatable(statement)
        for target in statement.targets:
            if isinstance(target, ast.Tuple):
                self._unpack_tuple(target, statement.value)
            elif isinstance(target, ast.Subscript):
                self._write_register(target, statement.value)
            elif isinstance(target, ast.Name):
                self._store(target.id, statement.value)
            else:
                raise untranslatable(statement)

    def _write_register(self, target: ast.Subscript, node: ast.expr) -> None:
        if not isinstance(target.value, ast.Name):
            raise untranslatable(target.value)
        register = self._registers[target.value.id]
        index, value = self._expressions.value(target.slice), self._expressions.value(node)
        size = cell_bytes(register.width)
        value = operators.cut(value, register.width)
        words = -(-size // 8)
        place = self._cell(target.value.id, size, index)
        self._line(f"store_here<{size}>({place}, {extended(value, words)});")

    def _store(self, name: str, node: ast.expr) -> None:
        special = self._SPECIAL.get(name)
        if special is not None:
            special(self, node)
            return
        if name in self._storage.raw:
            if not isinstance(node, ast.Constant):
                raise untranslatable(node)
            self._line(f"{name} = {{}};")
            return
        if name in {"_x", "_i", "_l", "_v", "_b"} or re.fullmatch(r"_k\d+", name):
            value = self._expressions.value(node)
            self._expressions.named[name] = self._expressions.temporary(value)
            return
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            self._line(f"{name} = {self._is_none(node)};")
            return
        value = self._expressions.value(node)
        self._expressions.named.pop(name, None)
        slot = self._storage.slot(name)
        if slot is not None:
            value = operators.cut(value, slot.width, slot.signed)
        self._line(f"{name} = {self._as(value, name)};")

    def _as(self, value: Value, name: str) -> str:
        low, high = self._storage.range(name)
        words = words_for(low, high)
        text = extended(value, words)
        return f"({type_of(words, True)})({text})" if low < 0 and words <= 2 else text

    # Tables: `_e` is an entry, `_a` its action, `_c` its counters.

    def _store_entry(self, node: ast.expr) -> None:
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            name = node.value.id.removesuffix("_default")
            self._shape = self._shapes[name]
            self._line(f"_e = {name}.fallback;")
            return
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            raise untranslatable(node)
        name = node.func.id.removesuffix("_lookup")
        shape = self._shapes[name]
        self._shape = shape
        parts = node.args[0].elts if isinstance(node.args[0], ast.Tuple) else node.args
        values = [self._expressions.value(part) for part in parts]
        key = operators.concatenated(list(zip(values, shape.widths, strict=True)))
        text = operators.full_words(key, shape.key_words)
        self._line(f"_e = {name}.lookup({text});")

    def _store_counts(self, _node: ast.expr) -> None:
        self._line("_c = _e;")

    def _store_action(self, _node: ast.expr) -> None:
        self._line("_a = _e->action;")

    def _parameters(self, names: Sequence[str]) -> None:
        if self._shape is None or self._action is None:
            raise untranslatable(ast.Name(names[0]))
        shape = self._shape
        widths = shape.parameter_widths[self._action]
        for name, width, offset in zip(names, widths, shape.offsets(self._action), strict=True):
            size = byte_size(width)
            value = made(
                f"load_here<{size}>(_e->data + {offset})", -(-size // 8), 0, (1 << width) - 1
            )
            self._expressions.named[name] = self._expressions.temporary(value)

    # Headers.

    def _unpack_tuple(self, target: ast.Tuple, node: ast.expr) -> None:
        names = [each.id for each in target.elts if isinstance(each, ast.Name)]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            self._unpack_header(self._unpack[node.func.id])
        elif isinstance(node, ast.Subscript):
            self._parameters(names)
        elif isinstance(node, ast.Name):
            for name in names:
                self._line(f"{name} = {node.id}{'->' if node.id == 'kept' else '.'}{name};")
        else:
            raise untranslatable(node)

    def _unpack_header(self, codec: HeaderCodec) -> None:
        offset = 0
        for run in codec.runs:
            size = run.width // 8
            first = run.slots[0].variable
            if run.raw:
                self._line(f"memcpy(&{first}, data + pos + {offset}, {size});")
            else:
                text = f"load_wire<{size}>(data + pos + {offset})"
                value = made(text, -(-size // 8), 0, (1 << run.width) - 1)
                if len(run.slots) == 1 and run.native and not run.slots[0].signed:
                    self._line(f"{first} = {self._as(value, first)};")
                else:
                    # The statements behind this one make the fields of it.
                    self._expressions.named[first] = self._expressions.temporary(value)
            offset += size

    def _store_out(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant):
            self._line("fate.out = -1;")
            return
        self._line("o = out;")
        if isinstance(node, ast.IfExp):
            self._line(f"if ({self._expressions.test(node.test)}) {{")
            self._append("out", node.body)
            self._line("}")
        else:
            self._append("out", node)

    def _append(self, name: str, node: ast.expr) -> None:
        if name == "_w":
            return
        if name == "_d":
            self._append_payload(node)
        elif isinstance(node, ast.Subscript):
            self._line("if (pos < size) { memcpy(o, data + pos, size - pos); o += size - pos; }")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            self._pack_header(self._pack[node.func.id])
        else:
            raise untranslatable(node)

    def _pack_header(self, codec: HeaderCodec) -> None:
        offset = 0
        for run in codec.runs:
            size = run.width // 8
            if run.raw:
                self._line(f"memcpy(o + {offset}, &{run.slots[0].variable}, {size});")
            else:
                self._line(f"store_wire<{size}>(o + {offset}, {self._whole(run)});")
            offset += size
        self._line(f"o += {offset};")

    def _whole(self, run: Run) -> str:
        value = self._expressions.value(ast.parse(joined(run.slots), mode="eval").body)
        return extended(operators.cut(value, run.width), -(-run.width // 64))

    # Hashes: `_d` is first bits, then bytes, then the result.

    def _store_digest(self, node: ast.expr) -> None:
        named = self._expressions.named
        if isinstance(node, ast.Constant):
            self._line("_d.clear();")
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            if not isinstance(node.left, ast.BinOp):
                raise untranslatable(node.left)
            self._append_pieces(node.right, _number(node.left.right))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            self._finish_bits(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            algorithm = node.func.id
            if algorithm not in ALGORITHMS:
                raise untranslatable(node)
            bits = _HASH_BITS.get(algorithm, 16)
            text = f"hash_{algorithm}(_d.begin, _d.size())"
            named["_d"] = self._expressions.temporary(made(text, 1, 0, (1 << bits) - 1))
        else:
            raise untranslatable(node)

    def _finish_bits(self, node: ast.Call) -> None:
        if not isinstance(node.func, ast.Attribute):
            raise untranslatable(node.func)
        shifted = node.func.value
        if not isinstance(shifted, ast.BinOp):
            raise untranslatable(shifted)
        if not isinstance(shifted.left, ast.Name) or shifted.left.id != "_d":
            # All is known beforehand: nothing was put together bit by bit.
            filled, total = _number(shifted.right), _number(node.args[0]) * 8
            self._line("_d.clear();")
            self._append_pieces(shifted.left, total - filled)
        self._line("_d.finish();")

    def _append_pieces(self, node: ast.expr, width: int) -> None:
        """Append pieces that are joined by their places; the first one is on top."""
        pieces = []
        while isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            pieces.append(node.right)
            node = node.left
        pieces.append(node)
        end = width
        for piece in reversed(pieces):
            place, value = 0, piece
            if isinstance(piece, ast.BinOp) and isinstance(piece.op, ast.LShift):
                place, value = _number(piece.right), piece.left
            bits = end - place
            end = place
            if bits:
                narrow = operators.cut(self._expressions.value(value), bits)
                self._line(f"Bits::append<{bits}>(_d, {extended(narrow, -(-bits // 64))});")

    def _append_payload(self, node: ast.expr) -> None:
        if not isinstance(node, ast.Subscript):
            raise untranslatable(node)
        if not isinstance(node.slice, ast.Slice):
            raise untranslatable(node.slice)
        limit = "" if node.slice.upper is None else "if (left > tr) left = tr; "
        self._line(
            f"{{ i64 left = size - (i64)pos; {limit}if (left > 0) _d.bytes(data + pos, left); }}"
        )

    # Calls that stand alone, and the ends of functions.

    def _log(self, statement: ast.stmt) -> None:
        if not isinstance(statement, ast.Expr):
            raise untranslatable(statement)
        call = statement.value
        if not isinstance(call, ast.Call) or getattr(call.func, "id", "") != "log_message":
            raise untranslatable(statement)
        template, values = call.args
        if not isinstance(template, ast.Constant) or not isinstance(values, ast.Tuple):
            raise untranslatable(statement)
        # The text stays in Python: nothing of a program is copied into the source.
        self._messages.append(str(template.value))
        self._line("{ Told told;")
        for node in values.elts:
            value = self._expressions.value(node)
            sign = "true" if value.signed else "false"
            self._line(f"Told::add<{sign}>(told, ({value.type}){value.text});")
        self._line(f"host.log({len(self._messages) - 1}, told); }}")

    # What the functions give back.

    def _return(self, statement: ast.stmt) -> None:
        if not isinstance(statement, ast.Return):
            raise untranslatable(statement)
        if not isinstance(statement.value, ast.Tuple):
            raise untranslatable(statement)
        for (place, kind), node in zip(self._results, statement.value.elts, strict=True):
            if kind == "state":
                self._fill(place, node)
            elif kind is not None:
                value = self._expressions.value(node)
                self._line(f"{place} = {extended(value, 1)};")

    def _fill(self, place: str, node: ast.expr) -> None:
        if not isinstance(node, ast.Tuple):
            raise untranslatable(node)
        for element in node.elts:
            if not isinstance(element, ast.Name):
                raise untranslatable(element)
            self._line(f"{place}.{element.id} = {element.id};")

    def _store_after(self, node: ast.expr) -> None:
        if not isinstance(node, ast.IfExp):
            raise untranslatable(node)
        self._line(f"if ({self._expressions.test(node.test)}) {{")
        self._fill("after", node.body)
        self._line("}")

    _SPECIAL: ClassVar[dict[str, Callable[["FunctionTranslator", ast.expr], None]]] = {
        "_e": _store_entry,
        "_a": _store_action,
        "_c": _store_counts,
        "_d": _store_digest,
        "_w": _ignore,
        "after": _store_after,
        "out": _store_out,
    }


def _number(node: ast.expr) -> int:
    if not isinstance(node, ast.Constant) or not isinstance(node.value, int):
        raise untranslatable(node)
    return node.value


def _action_of(test: ast.expr, outer: int | None) -> int | None:
    """Return the number of the action that a condition chooses, or what was known before."""
    if (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id == "_a"
        and isinstance(test.ops[0], ast.Eq)
    ):
        return _number(test.comparators[0])
    return outer


_STATEMENTS = {
    ast.Pass: FunctionTranslator._pass,
    ast.Break: FunctionTranslator._break,
    ast.Continue: FunctionTranslator._continue,
    ast.While: FunctionTranslator._while,
    ast.If: FunctionTranslator._if,
    ast.AugAssign: FunctionTranslator._augmented,
    ast.Assign: FunctionTranslator._assign,
    ast.Expr: FunctionTranslator._log,
    ast.Return: FunctionTranslator._return,
}
