"""Render a program as C++: its statements, functions, tables and arrays."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from switchgnn.softswitch.base import ir
from switchgnn.softswitch.base.program import LoadedProgram
from switchgnn.softswitch.lowering import arithmetic
from switchgnn.softswitch.lowering import variables as var
from switchgnn.softswitch.lowering.arithmetic import bit_or, constant, shift_left, wrap
from switchgnn.softswitch.lowering.program import LoweredProgram
from switchgnn.softswitch.native import render
from switchgnn.softswitch.native.build import TableShape, cell_bytes, table_shapes
from switchgnn.softswitch.native.render import WORD, Renderer, flag, is_wide

_REST = "if (pos < size) { memcpy(o, data + pos, size - pos); o += size - pos; }"
_PAYLOAD = (
    "{ i64 left = size - (i64)pos; if (left > tr) left = tr; "
    "if (left > 0) input.bytes(data + pos, left); }"
)


class FunctionRenderer(Renderer):
    """Renders the statements of functions.

    ``kept`` are the variables in field lists; changes of ``headers`` are noted.
    """

    def __init__(
        self, program: LoadedProgram, kept: Sequence[ir.Variable], headers: frozenset[ir.Variable]
    ) -> None:
        super().__init__(program, table_shapes(program))
        self._counters = {name: number for number, name in enumerate(program.counters)}
        self._kept = kept
        self._headers = headers
        self._apart = False

    def block(self, block: ir.Block) -> Iterator[str]:
        """Yield the lines of a block."""
        for statement in block:
            yield from self._statement(statement)

    def _statement(self, statement: ir.Statement) -> Iterator[str]:  # noqa: PLR0912, PLR0915  each case
        match statement:
            case ir.Assign(variable=variable, value=value):
                changed = " state.changed = true;" if variable in self._headers else ""
                if is_wide(variable) and value.constant == 0:
                    yield f"{variable.name}.set = false;{changed}"
                else:
                    yield f"{variable.name} = {self.as_variable(value, variable)};{changed}"
            case ir.Let(variable=variable, value=value):
                code = self.value(value)
                yield f"const {code.type} {variable.name} = {code.text};"
            case ir.If():
                yield from self._if(statement)
            case ir.Repeat(body=body):
                yield "for (;;) {"
                yield from self.block(body)
                yield "}"
            case ir.Simple.BREAK:
                yield "break;"
            case ir.Simple.CONTINUE:
                yield "continue;"
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
                number, size = self.registers[name]
                cell = f"reg{number} + {size} * {self.index(index)}"
                yield f"store_here<{size}>({cell}, {self.unsigned(value, -(-size // 8))});"
            case ir.Count(counter=name, index=index):
                counter, at = f"ctr{self._counters[name]}", self.index(index)
                yield f"{counter}_packets[{at}] += 1; {counter}_bytes[{at}] += n;"
            case ir.Lookup():
                yield from self._lookup(statement)
            case ir.ReadRaw(variable=variable, offset=offset):
                size = variable.raw_bytes
                yield f"memcpy(&{variable.name}, data + {self.index(offset)}, {size});"
            case ir.Emit(value=value, size=size):
                yield self._emit(value, size)
            case ir.Simple.EMIT_REST:
                yield _REST
            case ir.Simple.DROP:
                yield "o = nullptr;"
            case ir.Digest():
                yield from self._digest(statement)
            case ir.Simple.RESTORE_KEPT:
                restored = " ".join(f"{v.name} = kept->{v.name};" for v in self._kept)
                yield f"if (kept) {{ {restored} }}"

    def _if(self, statement: ir.If) -> Iterator[str]:
        keyword = "if"
        for condition, block in statement.branches:
            yield f"{keyword} ({self.test(condition)}) {{"
            yield from self._branch(block)
            keyword = "} else if"
        if statement.otherwise:
            yield "} else {"
            yield from self.block(statement.otherwise)
        yield "}"

    def _branch(self, block: ir.Block) -> Iterator[str]:
        """Yield the lines of a branch; a function of its own if compilers take long over it."""
        if self._apart or not _compiles_slowly(block):
            yield from self.block(block)
            return
        self._apart = True
        yield "[&]() __attribute__((noinline)) {"
        yield from self.block(block)
        yield "}();"
        self._apart = False

    def _lookup(self, statement: ir.Lookup) -> Iterator[str]:
        shape, hit = self.shapes[statement.table], statement.hit.name
        table = f"tbl{shape.number}"
        if not statement.key:
            yield f"entry = {table}.fallback; {hit} = 0;"
            return
        key = constant(0)
        for value, width in zip(statement.key, shape.widths, strict=True):
            key = bit_or(shift_left(key, constant(width)), wrap(value, width))
        yield f"entry = {table}.lookup({self.unsigned(key, shape.key_words)});"
        yield f"{hit} = entry != nullptr;"
        counted = ""
        if shape.table.with_counters:
            counted = " else { counts = entry; counts->packets += 1; counts->bytes += n; }"
        yield f"if (!entry) entry = {table}.fallback;{counted}"

    def _emit(self, value: ir.Expr, size: int) -> str:
        if value.variable is not None and value.variable.raw_bytes:
            return f"memcpy(o, &{value.variable.name}, {size}); o += {size};"
        text = self.unsigned(value, -(-size // 8) or 1, 8 * size)
        return f"store_wire<{size}>(o, {text}); o += {size};"

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
        whole, total = constant(0), 0
        for piece in pieces:
            whole = bit_or(shift_left(whole, constant(piece.bits)), piece.value)
            total += piece.bits
        text = self.unsigned(whole, -(-total // WORD) or 1)
        return f"if ({self.test(pieces[0].valid)}) {{ Bits::append<{total}>(input, {text}); }}"


def _compiles_slowly(block: ir.Block) -> bool:
    """Return whether a block only computes, and with numbers of more than 1,024 bits."""
    inside = ir.statements_in(block)
    widest = max((each.high.bit_length() for each in ir.variables_set(block)), default=0)
    return widest > 1024 and all(isinstance(s, (ir.Assign, ir.Let, ir.If)) for s in inside)


def _same_word(pieces: Sequence[ir.Piece]) -> bool:
    """Return whether pieces are valid together and fit into one word."""
    valid = {(piece.valid.constant, piece.valid.variable) for piece in pieces}
    return len(valid) == 1 and sum(piece.bits for piece in pieces) <= WORD


_INGRESS = (
    "void ingress(const u8* data, u64 n, u64 port, u64 itype, u64 now, const Kept* kept, "
    "Fate& fate, State& __restrict state, i64 parsed)"
)
_EGRESS = (
    "void egress(State& __restrict state, const u8* data, i64 size, u64 pos, u64 port, i64 rid, "
    "u64 itype, i64 pl, i64 tr, u64 n, u64 now, u64 enq_time, u64 enq_depth, u64 deq_depth, "
    "u8* out, Fate& fate)"
)
_REPARSE = "void reparse(const u8* data, u64 n, u64 port, Fate& fate, State& __restrict state)"


_GIVEN = {
    "ingress": "n port itype now",
    "egress": "pos port rid itype pl tr n now enq_time enq_depth deq_depth",
    "reparse": "n port",
}


def program_source(lowered: LoweredProgram) -> str:
    """Render a program as C++, without the runtime."""
    return _Writer(lowered).source()


class _Writer:
    def __init__(self, lowered: LoweredProgram) -> None:
        self._lowered = lowered
        self._program = lowered.program
        changeable = set(lowered.state) - lowered.metadata
        headers = frozenset(changeable if lowered.stays_parsed else ())
        self._renderer = FunctionRenderer(lowered.program, lowered.kept, headers)

    def source(self) -> str:
        lowered, shapes = self._lowered, self._renderer.shapes
        reparsed = ["fate.pos = pos;"] if lowered.reparse else []
        lines = [
            *self._structures(),
            *_tables(shapes),
            *_arrays(self._program, shapes),
            *self._function("ingress", _INGRESS, lowered.ingress, self._after_ingress()),
            *self._function("egress", _EGRESS, lowered.egress, self._after_egress()),
            *self._function("reparse", _REPARSE, lowered.reparse or (), reparsed),
            *self._field_lists(),
            "};",
        ]
        ranges = list(_ranges(self._renderer))
        head = ("#pragma once", '#include "host.h"', *self._renderer.literals())
        return "\n".join([*head, *ranges, *lines, ""])

    def _structures(self) -> Iterator[str]:
        program, lowered = self._program, self._lowered
        bits = sum(header.width for header in program.headers.values())
        yield "struct Program {"
        yield "Host& host;"
        yield f"static constexpr bool uses_time = {flag(lowered.uses_time)};"
        yield f"static constexpr bool stays_parsed = {flag(lowered.stays_parsed)};"
        yield f"static constexpr bool has_reparse = {flag(lowered.reparse is not None)};"
        yield f"static constexpr size_t header_bytes = {lowered.header_bytes + 64};"
        # A calculation may have a header more than once.
        inputs = max((len(c.inputs) for c in program.calculations.values()), default=0) + 1
        yield f"static constexpr size_t hash_bytes = {(bits + 64) * inputs // 8 + 64};"
        for name, variables in (("State", lowered.state), ("Kept", lowered.kept)):
            yield f"struct {name} {{"
            for each in variables:
                yield f"{render.type_in_packet(each)} {each.name}{{}};"
            yield "bool changed = false; };" if name == "State" else "};"

    def _function(
        self, name: str, signature: str, block: ir.Block, results: Iterable[str]
    ) -> Iterator[str]:
        lines = list(self._renderer.block(block))
        yield f"{signature} {{"
        yield from self._variables(block, _GIVEN[name].split())
        if name == "egress":
            yield "u8* o = out;"
        else:
            yield "const i64 size = n; (void)size;"
        yield "Entry* entry = nullptr; CountsOf counts; u64 digest = 0; Bits input(host.scratch);"
        yield "(void)entry; (void)counts; (void)digest; (void)input;"
        yield from lines
        yield from results
        yield "}"

    def _variables(self, block: ir.Block, given: Sequence[str]) -> Iterator[str]:
        lets = {each.variable for each in ir.statements_in(block) if isinstance(each, ir.Let)}
        hits = {each.hit for each in ir.statements_in(block) if isinstance(each, ir.Lookup)}
        results = {each.variable for each in self._lowered.results if each.variable}
        restored = set(self._lowered.kept if ir.Simple.RESTORE_KEPT in block else ())
        used = ir.variables_read(block) | ir.variables_set(block) | hits | results | restored
        in_state = used & set(self._lowered.state)
        for each in sorted(in_state, key=lambda each: each.name):
            yield f"auto& {each.name} = state.{each.name};"
        for each in sorted(used - in_state - lets, key=lambda each: each.name):
            if each.name not in given:
                yield f"{render.type_of_variable(each)} {each.name}{{}};"

    def _after_ingress(self) -> Iterator[str]:
        for name, value in zip(("spec", "group", "priority"), self._lowered.results, strict=True):
            yield f"fate.{name} = {self._renderer.index(value)};"
        yield "fate.session = cs; fate.clone_list = cl; fate.again = rs;"
        yield "fate.length = pl; fate.cut = tr; fate.pos = pos;"

    def _after_egress(self) -> Iterator[str]:
        yield "fate.session = cs; fate.clone_list = cl; fate.again = rc;"
        yield "fate.length = pl; fate.cut = tr; fate.out = o ? o - out : -1;"

    def _field_lists(self) -> Iterator[str]:
        lowered = self._lowered
        yield "static void keep(i64 list, const State& state, Kept& kept) {"
        yield "switch (list) {"
        for ident, listed in lowered.lists.items():
            held = {v.name: f"state.{v.name}" for v in lowered.kept if v in listed}
            assigned = " ".join(
                f"kept.{v.name} = {held.get(v.name, f'{render.type_of_variable(v)}{{}}')};"
                for v in lowered.kept
            )
            yield f"case {ident}: {assigned} break;"
        yield "}}"
        yield "static void renew(State& state) {"
        metadata = (each for each in lowered.state if each in lowered.metadata)
        yield " ".join(f"state.{v.name} = {render.type_in_packet(v)}{{}};" for v in metadata)
        yield "}"
        yield "static void clone(i64 list, const State& original, State& state) {"
        yield "switch (list) {"
        for ident, listed in lowered.lists.items():
            yield f"case {ident}:"
            for each in lowered.state:
                if each in listed:
                    yield f"state.{each.name} = original.{each.name};"
                elif each in lowered.metadata:
                    yield f"state.{each.name} = {render.type_of_variable(each)}{{}};"
            yield "break;"
        yield "}}"


def _tables(shapes: Mapping[str, TableShape]) -> Iterator[str]:
    for shape in shapes.values():
        name, words = f"tbl{shape.number}", shape.key_words
        if shape.exact:
            yield f"ExactTable<{words}> {name};"
        else:
            yield f"PriorityTable<{words}, Ranges{shape.number}> {name};"
    yield _pointers("Table", "tables", [f"&tbl{shape.number}" for shape in shapes.values()])


def _ranges(renderer: Renderer) -> Iterator[str]:
    for shape in renderer.shapes.values():
        if not shape.exact:
            key = render.type_of(shape.key_words)
            test = renderer.test(arithmetic.all_of(list(_inside_ranges(shape))))
            yield f"struct Ranges{shape.number} {{"
            yield f"INLINE bool side(const {key}& key, const {key}& low, const {key}& high) {{"
            yield f"(void)key; (void)low; (void)high; return {test}; }} }};"


def _inside_ranges(shape: TableShape) -> Iterator[ir.Expr]:
    most = (1 << (64 * shape.key_words)) - 1
    whole = [arithmetic.variable(ir.Variable(name, 0, most)) for name in ("low", "key", "high")]
    for field, match in enumerate(shape.table.key):
        if match.match_type == "range":
            shifted = (arithmetic.shift_right(each, constant(shape.shift(field))) for each in whole)
            low, value, high = (wrap(each, shape.widths[field]) for each in shifted)
            yield arithmetic.compare("<=", low, value)
            yield arithmetic.compare("<=", value, high)


def _arrays(program: LoadedProgram, shapes: Mapping[str, TableShape]) -> Iterator[str]:
    sizes = [(array.size, cell_bytes(array.width)) for array in program.registers.values()]
    counters = [a.size for a in program.counters.values()]
    lengths = [
        *(size * cell for size, cell in sizes),
        *(8 * size for size in (*counters, *counters)),
    ]
    total = " + ".join(["0ull", *(f"Cells::rounded({length}ull)" for length in lengths)])
    yield f"Cells all_cells{{{total}}};"
    for number, (size, cell) in enumerate(sizes):
        yield f"u8* const reg{number} = all_cells.take({size * cell}ull);"
    names = [f"reg{number}" for number in range(len(sizes))]
    for number, size in enumerate(counters):
        for kind in ("packets", "bytes"):
            name = f"ctr{number}_{kind}"
            names.append(f"(u8*){name}")
            yield f"u64* const {name} = (u64*)all_cells.take({8 * size}ull);"
    yield _pointers("u8", "arrays", names)
    yield "explicit Program(Host& h) : host(h) {"
    for shape in shapes.values():
        yield f"tbl{shape.number}.layout({shape.entry_bytes}, {flag(shape.table.with_counters)});"
    yield "}"


def _pointers(kind: str, name: str, values: Sequence[str]) -> str:
    return f"{kind}* const {name}[{len(values) + 1}] = {{{', '.join(values)}}};"
