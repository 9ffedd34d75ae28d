# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Render functions as C++."""

from collections.abc import Iterator, Sequence

from switchgnn.softswitch import ir
from switchgnn.softswitch.lowering import variables as var
from switchgnn.softswitch.lowering.arithmetic import bit_or, constant, shift_left, wrap
from switchgnn.softswitch.native.render import WORD, Renderer, flag, is_wide
from switchgnn.softswitch.program import LoadedProgram

_REST = "if (pos < size) { memcpy(o, data + pos, size - pos); o += size - pos; }"
_PAYLOAD = (
    "{ i64 left = size - (i64)pos; if (left > tr) left = tr; "
    "if (left > 0) input.bytes(data + pos, left); }"
)


class FunctionRenderer:
    """Renders the statements of one function.

    Args:
        kept: the variables in field lists.
        headers: the variables whose changes are noted.
        messages: the log messages of the program so far, by number.
    """

    def __init__(
        self,
        program: LoadedProgram,
        renderer: Renderer,
        kept: Sequence[ir.Variable],
        headers: frozenset[ir.Variable],
        messages: list[str],
    ) -> None:
        self._renderer = renderer
        self._counters = {name: number for number, name in enumerate(program.counters)}
        self._kept = kept
        self._messages = messages
        self._headers = headers

    def block(self, block: ir.Block) -> Iterator[str]:
        """Yield the lines of a block."""
        for statement in block:
            yield from self._statement(statement)

    def _statement(self, statement: ir.Statement) -> Iterator[str]:  # noqa: PLR0912, PLR0915  each case
        render = self._renderer
        match statement:
            case ir.Assign(variable=variable, value=value):
                changed = self._changed(variable)
                if is_wide(variable) and value.constant == 0:
                    yield f"{variable.name}.set = false;{changed}"
                else:
                    yield f"{variable.name} = {render.as_variable(value, variable)};{changed}"
            case ir.Let(variable=variable, value=value):
                code = render.value(value)
                yield f"const {code.type} {variable.name} = {code.text};"
            case ir.If():
                yield from self._if(statement)
            case ir.Repeat(body=body):
                yield "for (;;) {"
                yield from self.block(body)
                yield "}"
            case ir.Break():
                yield "break;"
            case ir.Continue():
                yield "continue;"
            case ir.Exchange(one=one, other=other):
                yield f"{{ const auto held = {one.name}; {one.name} = {other.name};"
                yield f"{other.name} = held; }}{self._changed(one)}{self._changed(other)}"
            case ir.Parse(body=body):
                yield "if (parsed < 0) {"
                headers, self._headers = self._headers, frozenset()
                yield from self.block(body)
                self._headers = headers
                yield f"state.changed = {var.PARSER_ERROR.name} != 0;"
                yield f"}} else {{ {var.POSITION.name} = parsed; }}"
            case ir.Deparse(body=body):
                yield "fate.stays = Program::stays_parsed && rc && !state.changed && tr >= size;"
                yield "if (!fate.stays) {"
                yield from self.block(body)
                yield "}"
            case ir.WriteCell(register=name, index=index, value=value):
                number, size = render.registers[name]
                cell = f"reg{number} + {size} * {render.index(index)}"
                yield f"store_here<{size}>({cell}, {render.unsigned(value, -(-size // 8))});"
            case ir.Count(counter=name, index=index):
                counter, at = f"ctr{self._counters[name]}", render.index(index)
                yield f"{counter}_packets[{at}] += 1; {counter}_bytes[{at}] += n;"
            case ir.Lookup():
                yield from self._lookup(statement)
            case ir.ReadRaw(variable=variable, offset=offset):
                size = variable.raw_bytes
                yield f"memcpy(&{variable.name}, data + {render.index(offset)}, {size});"
            case ir.Emit(value=value, size=size):
                yield self._emit(value, size)
            case ir.EmitRest():
                yield _REST
            case ir.Drop():
                yield "o = nullptr;"
            case ir.Digest():
                yield from self._digest(statement)
            case ir.Log(text=text, values=values):
                yield from self._log(text, values)
            case ir.RestoreKept():
                restored = " ".join(f"{v.name} = kept->{v.name};" for v in self._kept)
                yield f"if (kept) {{ {restored} }}"

    def _changed(self, variable: ir.Variable) -> str:
        return " state.changed = true;" if variable in self._headers else ""

    def _if(self, statement: ir.If) -> Iterator[str]:
        keyword = "if"
        for condition, block in statement.branches:
            yield f"{keyword} ({self._renderer.test(condition)}) {{"
            yield from self.block(block)
            keyword = "} else if"
        if statement.otherwise:
            yield "} else {"
            yield from self.block(statement.otherwise)
        yield "}"

    def _lookup(self, statement: ir.Lookup) -> Iterator[str]:
        shape, hit = self._renderer.shapes[statement.table], statement.hit.name
        table = f"tbl{shape.number}"
        if not statement.key:
            yield f"entry = {table}.fallback; {hit} = 0;"
            return
        key = constant(0)
        for value, width in zip(statement.key, shape.widths, strict=True):
            key = bit_or(shift_left(key, constant(width)), wrap(value, width))
        yield f"entry = {table}.lookup({self._renderer.unsigned(key, shape.key_words)});"
        yield f"{hit} = entry != nullptr;"
        counted = ""
        if shape.table.with_counters:
            counted = " else { counts = entry; counts->packets += 1; counts->bytes += n; }"
        yield f"if (!entry) entry = {table}.fallback;{counted}"

    def _emit(self, value: ir.Expr, size: ir.Expr) -> str:
        render, known = self._renderer, size.constant
        if value.variable is not None and value.variable.raw_bytes:
            return f"memcpy(o, &{value.variable.name}, {known}); o += {known};"
        if known is not None:
            text = render.unsigned(value, -(-known // 8) or 1, 8 * known)
            return f"store_wire<{known}>(o, {text}); o += {known};"
        number, count = render.value(value).text, render.index(size)
        return f"store_some(o, {number}, {count}); o += {count};"

    def _digest(self, statement: ir.Digest) -> Iterator[str]:
        yield "input.clear();"
        gathered: list[ir.Piece] = []
        for piece in statement.pieces:
            if gathered and not _same_word([*gathered, piece]):
                yield self._append(gathered)
                gathered = []
            gathered.append(piece)
        if gathered:
            yield self._append(gathered)
        yield "input.finish();"
        if statement.payload:
            yield _PAYLOAD
        yield f"digest = hash_{statement.algorithm}(input.begin, input.size());"

    def _append(self, pieces: Sequence[ir.Piece]) -> str:
        """Append pieces that are valid together."""
        render, first = self._renderer, pieces[0]
        bits = first.bits.constant
        if bits is None:
            size = f"{render.index(first.bits)} / 8"
            line = f"input.some({render.value(first.value).text}, {size});"
        else:
            whole, total = constant(0), 0
            for piece in pieces:
                width = piece.bits.low
                whole, total = (
                    bit_or(shift_left(whole, constant(width)), piece.value),
                    total + width,
                )
            text = render.unsigned(whole, -(-total // WORD) or 1)
            line = f"Bits::append<{total}>(input, {text});"
        return f"if ({render.test(first.valid)}) {{ {line} }}"

    def _log(self, text: str, values: Sequence[ir.Expr]) -> Iterator[str]:
        # The text is in source.py, by number.
        self._messages.append(text)
        yield "{ LogValues logged;"
        for each in values:
            value = self._renderer.value(each)
            sign = flag(value.signed)
            yield f"LogValues::add<{sign}>(logged, ({value.type}){value.text});"
        yield f"host.log({len(self._messages) - 1}, logged); }}"


def _same_word(pieces: Sequence[ir.Piece]) -> bool:
    """Return whether pieces are valid together and fit into one word."""
    valid = {(piece.valid.constant, piece.valid.variable) for piece in pieces}
    bits = [piece.bits.constant for piece in pieces]
    return len(valid) == 1 and None not in bits and sum(filter(None, bits)) <= WORD
