# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Assemble the C++ of a program."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from switchgnn.softswitch import ir
from switchgnn.softswitch.lowering.arithmetic import (
    all_of,
    compare,
    constant,
    shift_right,
    variable,
    wrap,
)
from switchgnn.softswitch.lowering.program import LoweredProgram
from switchgnn.softswitch.native.functions import FunctionRenderer
from switchgnn.softswitch.native.library import TableShape, cell_bytes, table_shapes
from switchgnn.softswitch.native.render import (
    Renderer,
    flag,
    type_in_packet,
    type_of,
    type_of_variable,
)
from switchgnn.softswitch.program import LoadedProgram

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


# The parameters of each function.
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
        self._messages: list[str] = []
        self._renderer = Renderer(lowered.program, table_shapes(lowered.program))
        self._functions = FunctionRenderer(
            lowered.program, self._renderer, lowered.kept, self._headers(), self._messages
        )

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
            _message_array(self._messages),
        ]
        ranges = list(_ranges(self._renderer))
        head = ("#pragma once", '#include "host.h"', *self._renderer.literals())
        return "\n".join([*head, *ranges, *lines, ""])

    def _headers(self) -> frozenset[ir.Variable]:
        """Return the variables of headers, if packets stay parsed until one changes."""
        changeable = set(self._lowered.state) - self._lowered.metadata
        return frozenset(changeable if self._lowered.stays_parsed else ())

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
                yield f"{type_in_packet(each)} {each.name}{{}};"
            yield "bool changed = false; };" if name == "State" else "};"

    def _function(
        self, name: str, signature: str, block: ir.Block, results: Iterable[str]
    ) -> Iterator[str]:
        lines = list(self._functions.block(block))
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
        """Yield the declarations of all variables but the function's parameters and Lets."""
        lets = {each.variable for each in ir.statements_in(block) if isinstance(each, ir.Let)}
        hits = {each.hit for each in ir.statements_in(block) if isinstance(each, ir.Lookup)}
        results = {each.variable for each in self._lowered.results if each.variable}
        used = ir.variables_read(block) | ir.variables_set(block) | hits | results
        in_state = used & set(self._lowered.state)
        for each in sorted(in_state, key=lambda each: each.name):
            yield f"auto& {each.name} = state.{each.name};"
        for each in sorted(used - in_state - lets, key=lambda each: each.name):
            if each.name not in given:
                yield f"{type_of_variable(each)} {each.name}{{}};"

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
                f"kept.{v.name} = {held.get(v.name, f'{type_of_variable(v)}{{}}')};"
                for v in lowered.kept
            )
            yield f"case {ident}: {assigned} break;"
        yield "}}"
        yield "static void renew(State& state) {"
        metadata = (each for each in lowered.state if each in lowered.metadata)
        yield " ".join(f"state.{v.name} = {type_in_packet(v)}{{}};" for v in metadata)
        yield "}"
        yield "static void clone(i64 list, const State& original, State& state) {"
        yield "switch (list) {"
        for ident, listed in lowered.lists.items():
            yield f"case {ident}:"
            for each in lowered.state:
                if each in listed:
                    yield f"state.{each.name} = original.{each.name};"
                elif each in lowered.metadata:
                    yield f"state.{each.name} = {type_of_variable(each)}{{}};"
            yield "break;"
        yield "}}"


def _tables(shapes: Mapping[str, TableShape]) -> Iterator[str]:
    for shape in shapes.values():
        name, words = f"tbl{shape.number}", shape.key_words
        if shape.kind == "exact":
            yield f"ExactTable<{words}> {name};"
        elif shape.kind == "lpm":
            yield f"PrefixTable<{words}> {name};"
        else:
            yield f"PriorityTable<{words}, Ranges{shape.number}> {name};"
    yield _pointers("Table", "tables", [f"&tbl{shape.number}" for shape in shapes.values()])


def _ranges(renderer: Renderer) -> Iterator[str]:
    """Yield the comparison of a key with ranges."""
    for shape in renderer.shapes.values():
        if shape.kind == "priority":
            key = type_of(shape.key_words)
            test = renderer.test(all_of(list(_inside_ranges(shape))))
            yield f"struct Ranges{shape.number} {{"
            yield f"INLINE bool side(const {key}& key, const {key}& low, const {key}& high) {{"
            yield f"(void)key; (void)low; (void)high; return {test}; }} }};"


def _inside_ranges(shape: TableShape) -> Iterator[ir.Expr]:
    most = (1 << (64 * shape.key_words)) - 1
    for field, match in enumerate(shape.table.key):
        if match.match_type == "range":
            low, value, high = (
                wrap(
                    shift_right(variable(ir.Variable(name, 0, most)), constant(shape.shift(field))),
                    shape.widths[field],
                )
                for name in ("low", "key", "high")
            )
            yield compare("<=", low, value)
            yield compare("<=", value, high)


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


def _message_array(messages: Sequence[str]) -> str:
    """Return the log messages as JSON in character codes, so that no text is parsed as C++.

    The array is at file scope: elsewhere all libraries of a process would share the first one, see
    STB_GNU_UNIQUE in https://gcc.gnu.org/onlinedocs/gcc/Code-Gen-Options.html
    """
    characters = ",".join(map(str, (*json.dumps(messages).encode("ascii"), 0)))
    return f"static const char program_text[] = {{{characters}}};"
