# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Translate functions of a generated Python module to C++."""

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from switchgnn.softswitch.codegen.wire import HeaderCodec, Part, Run, joined
from switchgnn.softswitch.hashing import ALGORITHMS
from switchgnn.softswitch.native.library import TableShape, byte_size, cell_bytes
from switchgnn.softswitch.native.translation import operators
from switchgnn.softswitch.native.translation.expressions import (
    Body,
    Node,
    Places,
    Results,
    Storage,
    number,
    untranslatable,
)
from switchgnn.softswitch.native.translation.operators import WORD, Value, extended, made
from switchgnn.softswitch.program import LoadedProgram


class Arrays:
    """Accesses to registers and counters."""

    def __init__(self, body: Body, program: LoadedProgram) -> None:
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

    def write(self, target: Node, node: Node) -> None:
        """Write a register's cell."""
        register = self._registers[target.value.id]
        index, value = self._body.value(target.slice), self._body.value(node)
        size = cell_bytes(register.width)
        value = operators.cut(value, register.width)
        words = -(-size // 8)
        place = _cell(target.value.id, size, index)
        self._body.line(f"store_here<{size}>({place}, {extended(value, words)});")

    def count(self, target: Node, node: Node) -> None:
        """Add to a counter, or to an entry's direct counters `_c`."""
        amount = extended(self._body.value(node), 1)
        if target.value.id == "_c":
            place = "bytes" if getattr(target.slice, "value", 0) else "packets"
            self._body.line(f"_c->{place} += {amount};")
            return
        index = extended(self._body.value(target.slice), 1)
        self._body.line(f"{target.value.id}[{index}] += {amount};")


def _cell(array: str, size: int, index: Value) -> str:
    return f"{array} + {size} * {extended(index, 1)}"


_HASH_BITS = {"crc32": 32, "identity": 64}


class Digests:
    """Hashes and checksums."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self._gathered: list[tuple[str, int]] = []
        self._gathered_bits = 0

    def store(self, node: Node) -> None:
        """Translate an assignment to ``_d``."""
        if isinstance(node, ast.Constant):
            self._body.line("_d.clear();")
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            shift: Node = node.left
            if isinstance(shift.right, ast.BinOp):
                self._append_varbit(node.right, shift.right)
            else:
                self._append_pieces(node.right, number(shift.right))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            self._finish_bits(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            algorithm = node.func.id
            if algorithm not in ALGORITHMS:
                raise untranslatable(node)
            bits = _HASH_BITS.get(algorithm, 16)
            text = f"hash_{algorithm}(_d.begin, _d.size())"
            self._body.name("_d", made(text, 1, 0, (1 << bits) - 1))
        else:
            raise untranslatable(node)

    def _append_varbit(self, node: Node, bits: Node) -> None:
        count = extended(self._body.value(bits.right), 1)
        self._body.line(f"_d.some({self._body.value(node).text}, {count});")

    def _finish_bits(self, node: Node) -> None:
        shifted = node.func.value
        if not isinstance(shifted.left, ast.Name) or shifted.left.id != "_d":
            # All bytes are constant.
            filled, total = number(shifted.right), number(node.args[0]) * 8
            self._body.line("_d.clear();")
            self._append_pieces(shifted.left, total - filled)
        self._body.line("_d.finish();")

    def _append_pieces(self, node: Node, width: int) -> None:
        """Append pieces joined by shifts, the most significant first."""
        pieces = []
        while isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            pieces.append(node.right)
            node = node.left
        pieces.append(node)
        end = width
        for piece in reversed(pieces):
            place, value = 0, piece
            if isinstance(piece, ast.BinOp) and isinstance(piece.op, ast.LShift):
                place, value = number(piece.right), piece.left
            bits = end - place
            end = place
            if bits:
                narrow = operators.cut(self._body.value(value), bits)
                self._append(extended(narrow, -(-bits // WORD)), bits)
        self._flush()

    def _append(self, text: str, bits: int) -> None:
        """Append a value, together with those before it that fit into the same word."""
        if self._gathered_bits + bits > WORD:
            self._flush()
        self._gathered.append((text, bits))
        self._gathered_bits += bits

    def _flush(self) -> None:
        left, text = self._gathered_bits, ""
        for value, bits in self._gathered:
            left -= bits
            text += f" | ({value}) << {left}" if left else f" | ({value})"
        if text:
            self._body.line(f"Bits::append<{self._gathered_bits}>(_d, {text[3:]});")
        self._gathered, self._gathered_bits = [], 0

    def append_payload(self, node: Node) -> None:
        """Append the unparsed rest of the packet."""
        limit = "" if node.slice.upper is None else "if (left > tr) left = tr; "
        self._body.line(
            f"{{ i64 left = size - (i64)pos; {limit}if (left > 0) _d.bytes(data + pos, left); }}"
        )


class Headers:
    """Reads and writes of headers."""

    def __init__(self, body: Body, codecs: Mapping[str, HeaderCodec]) -> None:
        self._body = body
        parts = [part for codec in codecs.values() for part in codec.parts]
        self._unpack = {part.unpack_name: part for part in parts}
        self._pack = {part.pack_name: part for part in parts}

    def unpack(self, call: Node) -> None:
        """Read a part of a header."""
        place = ast.unparse(call.args[1])
        if place != "pos":
            place = extended(self._body.value(call.args[1]), 1)
        offset = 0
        for run in self._unpack[call.func.id].runs:
            size = run.width // 8
            first = run.slots[0].variable
            if run.raw:
                self._body.line(f"memcpy(&{first}, data + {place} + {offset}, {size});")
            else:
                text = f"load_wire<{size}>(data + {place} + {offset})"
                value = made(text, -(-size // 8), 0, (1 << run.width) - 1)
                if len(run.slots) == 1 and run.native and not run.slots[0].signed:
                    self._body.line(f"{first} = {self._body.as_variable(value, first)};")
                else:
                    # The next statements extract its fields.
                    self._body.name(first, value)
            offset += size

    def store_out(self, node: Node) -> None:
        """Start the outgoing packet, or drop it."""
        if isinstance(node, ast.Constant):
            self._body.line("fate.out = -1;")
            return
        self._body.line("o = out;")
        if isinstance(node, ast.IfExp):
            self._body.line(f"if ({self._body.expressions.test(node.test)}) {{")
            self.append(node.body)
            self._body.line("}")
        else:
            self.append(node)

    def append(self, node: Node) -> None:
        """Append a part of a header, or the unparsed rest, to the outgoing packet."""
        if isinstance(node, ast.Subscript):
            rest = "memcpy(o, data + pos, size - pos); o += size - pos;"
            self._body.line(f"if (pos < size) {{ {rest} }}")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            self._pack_part(self._pack[node.func.id])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            self._pack_varying(node.func.value, node.args[0])
        else:
            raise untranslatable(node)

    def _pack_part(self, part: Part) -> None:
        offset = 0
        for run in part.runs:
            size = run.width // 8
            if run.raw:
                self._body.line(f"memcpy(o + {offset}, &{run.slots[0].variable}, {size});")
            else:
                self._body.line(f"store_wire<{size}>(o + {offset}, {self._whole(run)});")
            offset += size
        self._body.line(f"o += {offset};")

    def _pack_varying(self, whole: Node, size: Node) -> None:
        count = self._body.value(size)
        # Cut to the longest that the fields can be.
        value = operators.cut(self._body.value(whole), 8 * count.high)
        text = extended(value, -(-count.high // 8) or 1)
        self._body.line(f"store_some(o, {text}, {extended(count, 1)});")
        self._body.line(f"o += {extended(count, 1)};")

    def _whole(self, run: Run) -> str:
        value = self._body.value(ast.parse(joined(run.slots), mode="eval").body)
        return extended(operators.cut(value, run.width), -(-run.width // 64))


class Lookups:
    """Lookups in tables."""

    def __init__(self, body: Body, shapes: Mapping[str, TableShape]) -> None:
        self._body = body
        self._shapes = {f"tbl{shape.number}": shape for shape in shapes.values()}
        self._shape: TableShape | None = None
        self._action: int | None = None

    @contextmanager
    def branch(self, test: Node) -> Iterator[None]:
        """Remember the action chosen by a condition inside its branch."""
        shape, action = self._shape, self._action
        self._action = _action_of(test, action)
        yield
        self._shape, self._action = shape, action

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Forget lookups made within a statement after it."""
        shape, action = self._shape, self._action
        yield
        self._shape, self._action = shape, action

    def store_entry(self, node: Node) -> None:
        """Look up an entry or the default entry."""
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            name = node.value.id.removesuffix("_default")
            self._shape = self._shapes[name]
            self._body.line(f"_e = {name}.fallback;")
            return
        name = node.func.id.removesuffix("_lookup")
        shape = self._shapes[name]
        self._shape = shape
        parts = node.args[0].elts if isinstance(node.args[0], ast.Tuple) else node.args
        values = [self._body.value(part) for part in parts]
        key = operators.concatenated(list(zip(values, shape.widths, strict=True)))
        text = operators.full_words(key, shape.key_words)
        self._body.line(f"_e = {name}.lookup({text});")

    def store_counts(self, _node: Node) -> None:
        """Get the counters of the entry."""
        self._body.line("_c = _e;")

    def store_action(self, _node: Node) -> None:
        """Get the action of the entry."""
        self._body.line("_a = _e->action;")

    def parameters(self, names: Sequence[str]) -> None:
        """Get the parameters of the action."""
        if self._shape is None or self._action is None:
            raise untranslatable(ast.Name(names[0]))
        shape = self._shape
        widths = shape.parameter_widths[self._action]
        for name, width, offset in zip(names, widths, shape.offsets(self._action), strict=True):
            size = byte_size(width)
            text = f"load_here<{size}>(_e->data + {offset})"
            self._body.name(name, made(text, -(-size // 8), 0, (1 << width) - 1))


def _action_of(test: Node, outer: int | None) -> int | None:
    """Return the action chosen by a condition, or the one known before."""
    if (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id == "_a"
        and isinstance(test.ops[0], ast.Eq)
    ):
        return number(test.comparators[0])
    return outer


# Names that are assigned once.
_NAMED = re.compile(r"_[xilvb]|_k\d+")


class FunctionTranslator:
    """Translates the statements of one function."""

    def __init__(  # noqa: PLR0917
        self,
        program: LoadedProgram,
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
        # Assignments other than of numbers.
        self._special: Mapping[str, Callable[[Node], None]] = {
            "_e": self._lookups.store_entry,
            "_a": self._lookups.store_action,
            "_c": self._lookups.store_counts,
            "_d": self._digests.store,
            "_w": _ignore,
            "after": self._results.store_after,
            "out": self._headers.store_out,
        }
        # Names with appending additions.
        self._longer: Mapping[str, Callable[[Node], None]] = {
            "_d": self._digests.append_payload,
            "_w": _ignore,
            "out": self._headers.append,
        }
        self._statements: Mapping[type[ast.stmt], Callable[[Node], None]] = {
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
        """Translate statements in order."""
        for statement in statements:
            handler = self._statements.get(type(statement))
            if handler is None:
                raise untranslatable(statement)
            handler(statement)

    def _break(self, _statement: Node) -> None:
        self._body.line("break;")

    def _continue(self, _statement: Node) -> None:
        self._body.line("continue;")

    def _while(self, statement: Node) -> None:
        self._body.line("for (;;) {")
        self.body(statement.body)
        self._body.line("}")

    def _if(self, statement: Node) -> None:
        named = dict(self._body.expressions.named)
        # Hoisted parts of the condition get a block of their own.
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

    def _condition(self, node: Node) -> str:
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return _is_none(node)
        return self._body.expressions.test(node)

    def _augmented(self, statement: Node) -> None:
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

    def _assign(self, statement: Node) -> None:
        for target in statement.targets:
            if isinstance(target, ast.Tuple):
                self._unpack_tuple(target, statement.value)
            elif isinstance(target, ast.Subscript):
                self._arrays.write(target, statement.value)
            elif isinstance(target, ast.Name):
                self._store(target.id, statement.value)
            else:
                raise untranslatable(statement)

    def _unpack_tuple(self, target: Node, node: Node) -> None:
        names = [each.id for each in target.elts if isinstance(each, ast.Name)]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            self._headers.unpack(node)
        elif isinstance(node, ast.Subscript):
            self._lookups.parameters(names)
        elif isinstance(node, ast.Tuple):
            # A swap of two variables.
            self._body.line(f"std::swap({', '.join(names)});")
        elif isinstance(node, ast.Name):
            for name in names:
                member = f"{node.id}{'->' if node.id == 'kept' else '.'}{name}"
                self._body.line(f"{name} = {member};")
        else:
            raise untranslatable(node)

    def _store(self, name: str, node: Node) -> None:
        special = self._special.get(name)
        if special is not None:
            special(node)
        elif name in self._body.storage.raw:
            self._body.line(f"{name} = {{}};")
        elif _NAMED.fullmatch(name):
            self._body.name(name, self._body.value(node))
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            self._body.line(f"{name} = {_is_none(node)};")
        else:
            self._store_number(name, node)

    def _store_number(self, name: str, node: Node) -> None:
        value = self._body.value(node)
        self._body.expressions.named.pop(name, None)
        slot = self._body.storage.slot(name)
        if slot is not None:
            value = operators.cut(value, slot.width, slot.signed)
        self._body.line(f"{name} = {self._body.as_variable(value, name)};")


def _nothing(_statement: Node) -> None:
    return


def _ignore(_node: Node) -> None:
    return


def _is_none(node: Node) -> str:
    return f"{node.left.id} {'==' if isinstance(node.ops[0], ast.Is) else '!='} nullptr"
