# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Assemble the C++ of a program."""

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from switchgnn.softswitch.codegen.compiler import CompiledProgram
from switchgnn.softswitch.codegen.layout import FieldLayout
from switchgnn.softswitch.errors import UnsupportedProgramError
from switchgnn.softswitch.native.library import TableShape, cell_bytes, table_shapes
from switchgnn.softswitch.native.translation import operators
from switchgnn.softswitch.native.translation.expressions import Node, Places, Storage
from switchgnn.softswitch.native.translation.functions import FunctionTranslator
from switchgnn.softswitch.native.translation.operators import constant, type_of, variable
from switchgnn.softswitch.program import LoadedProgram

_VARIABLE = re.compile(r"h\d+_\d+|(ok|next|vl)\d+")
_LOCALS = ("cs", "cl", "rs", "rc", "perr", "ex", "_bad", "_h", "_s", "_sn", "_j", "_jn", "_a")
_INGRESS_RESULTS: Places = (
    ("fate.spec", "number"),
    ("fate.group", "number"),
    ("fate.priority", "number"),
    ("fate.session", "number"),
    ("fate.clone_list", "number"),
    ("fate.again", "number"),
    ("fate.pos", "number"),
    ("fate.length", "number"),
    ("fate.cut", "number"),
    ("state", "state"),
)
_EGRESS_RESULTS: Places = (
    ("", None),
    ("fate.session", "number"),
    ("fate.clone_list", "number"),
    ("fate.again", "number"),
    ("fate.length", "number"),
    ("fate.cut", "number"),
    ("", None),
)
_REPARSE_RESULTS: Places = (("fate.pos", "number"), ("state", "state"))
_INGRESS = (
    "void ingress(const u8* data, u64 n, u64 port, u64 itype, u64 now, const Kept* kept, "
    "Fate& fate, State& state)"
)
_EGRESS = (
    "void egress(const State& state, const u8* data, i64 size, u64 pos, u64 port, i64 rid, "
    "u64 itype, i64 pl, i64 tr, u64 n, u64 now, u64 enq_time, u64 enq_depth, u64 deq_depth, "
    "u8* out, Fate& fate, State& after)"
)
_REPARSE = "void reparse(const u8* data, u64 n, u64 port, Fate& fate, State& state)"


@dataclass(frozen=True)
class ProgramSource:
    """The C++ of a program, without the runtime, and the layouts of its tables."""

    text: str
    shapes: Mapping[str, TableShape]


def program_source(compiled: CompiledProgram) -> ProgramSource:
    """Translate a program into C++."""
    try:
        return _Writer(compiled).source()
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise UnsupportedProgramError(
            f"code in which {type(error).__name__} {error}",
            "the native back end",
            "use --backend python, and report this",
        ) from error


class _Writer:
    def __init__(self, compiled: CompiledProgram) -> None:
        self._compiled = compiled
        self._program = compiled.program
        self._layout = FieldLayout(compiled.program)
        self._storage = Storage(self._layout, compiled.codecs)
        self._shapes = table_shapes(compiled.program)
        self._messages: list[str] = []
        module = ast.parse(compiled.source)
        self._functions = {f.name: f for f in module.body if isinstance(f, ast.FunctionDef)}
        self._kept = sorted(
            {
                self._layout.slot(header, field, "field list").variable
                for fields in self._program.field_lists.values()
                for header, field in fields
            }
        )

    def source(self) -> ProgramSource:
        lines = [
            *self._structures(),
            *_tables(self._shapes),
            *_arrays(self._program, self._shapes),
            *self._function("ingress", _INGRESS, _INGRESS_RESULTS),
            *self._function("egress", _EGRESS, _EGRESS_RESULTS),
            *self._function("reparse", _REPARSE, _REPARSE_RESULTS),
            *self._field_lists(),
            "};",
            _message_array(self._messages),
        ]
        text = "\n".join(["#pragma once", '#include "host.h"', *_ranges(self._shapes), *lines, ""])
        return ProgramSource(text, self._shapes)

    def _structures(self) -> Iterator[str]:
        program, storage = self._program, self._storage
        codecs = self._compiled.codecs
        # A packet may have a header more than once.
        emitted = [codecs[name] for name in program.deparse_order if name in codecs]
        wire = sum(codec.most_bytes for codec in emitted)
        bits = sum(header.width for header in program.headers.values())
        yield "struct Program {"
        yield "Host& host;"
        yield f"static constexpr bool uses_time = {_flag(self._compiled.uses_time)};"
        yield f"static constexpr bool has_reparse = {_flag('reparse' in self._functions)};"
        yield f"static constexpr size_t header_bytes = {wire + 64};"
        # A calculation may have a header more than once.
        inputs = max((len(c.inputs) for c in program.calculations.values()), default=0) + 1
        yield f"static constexpr size_t hash_bytes = {(bits + 64) * inputs // 8 + 64};"
        for name, variables in (
            ("State", self._compiled.state_variables),
            ("Kept", tuple(self._kept)),
        ):
            yield f"struct {name} {{"
            for each in variables:
                yield f"{storage.type(each)} {each};"
            yield "};"

    def _function(self, name: str, signature: str, results: Places) -> Iterator[str]:
        function = self._functions.get(name)
        if function is None:
            yield f"{signature} {{}}"
            return
        translator = FunctionTranslator(
            self._program,
            self._storage,
            self._compiled.codecs,
            self._shapes,
            self._messages,
            results,
        )
        translator.body(function.body)
        yield f"{signature} {{"
        names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        for each in sorted(_used(translator.lines) | {n for n in names if _VARIABLE.fullmatch(n)}):
            yield f"{self._storage.type(each)} {each}{{}};"
        for each in _LOCALS:
            yield f"{self._storage.type(each)} {each} = 0;"
        if name != "egress":
            yield "const i64 size = n; u64 pos = 0; i64 pl = n; i64 tr = 0;"
        yield "Entry* _e = nullptr; CountsOf _c; u8* o = nullptr; Bits _d(host.scratch);"
        yield "(void)size; (void)pl; (void)tr; (void)_c; (void)_d; (void)o;"
        yield from translator.lines
        if name == "egress":
            yield "if (o) fate.out = o - out;"
        yield "}"

    def _field_lists(self) -> Iterator[str]:
        lists = self._program.field_lists
        yield "static void keep(i64 list, const State& state, Kept& kept) {"
        yield "switch (list) {"
        for ident in lists:
            yield f"case {ident}:"
            for name, node in zip(self._kept, self._returned("keeper", ident), strict=True):
                yield f"kept.{name} = {self._element(node)};"
            yield "break;"
        yield "}}"
        yield "static void clone(i64 list, const State& original, State& state) {"
        yield "switch (list) {"
        for ident in lists:
            yield f"case {ident}:"
            variables = self._compiled.state_variables
            for name, node in zip(variables, self._returned("cloner", ident), strict=True):
                yield f"state.{name} = {self._element(node)};"
            yield "break;"
        yield "}}"

    def _returned(self, kind: str, ident: int) -> Sequence[Node]:
        names = self._compiled.names
        name = names.keeper[ident] if kind == "keeper" else names.cloner[ident]
        statement: Node = self._functions[name].body[0]
        elements: Sequence[Node] = statement.value.elts
        return elements

    def _element(self, node: Node) -> str:
        if isinstance(node, ast.Constant):
            return "{}"
        return f"{node.value.id}.{self._compiled.state_variables[int(node.slice.value)]}"


def _used(lines: Sequence[str]) -> set[str]:
    """Return the variables that occur in C++ lines."""
    return {name for line in lines for name in re.findall(r"(?<![\w.])h\d+_\d+\b", line)}


def _tables(shapes: Mapping[str, TableShape]) -> Iterator[str]:
    for shape in shapes.values():
        name, words = f"tbl{shape.number}", shape.key_words
        if shape.kind == "exact":
            yield f"ExactTable<{words}> {name};"
        elif shape.kind == "lpm":
            yield f"PrefixTable<{words}> {name};"
        else:
            yield f"PriorityTable<{words}, Ranges{shape.number}> {name};"
    yield "Table* table(int number) {"
    yield "switch (number) {"
    for shape in shapes.values():
        yield f"case {shape.number}: return &tbl{shape.number};"
    yield "} return nullptr; }"


def _ranges(shapes: Mapping[str, TableShape]) -> Iterator[str]:
    """Yield the comparison of a key with ranges."""
    for shape in shapes.values():
        if shape.kind != "priority":
            continue
        key = type_of(shape.key_words)
        most = (1 << (64 * shape.key_words)) - 1
        tests = ["true"]
        for field, match in enumerate(shape.table.key):
            if match.match_type == "range":
                low, value, high = (
                    operators.cut(
                        operators.shift_right(
                            variable(name, 0, most), constant(shape.shift(field))
                        ),
                        shape.widths[field],
                    )
                    for name in ("low", "key", "high")
                )
                tests.append(operators.compare("<=", low, value))
                tests.append(operators.compare("<=", value, high))
        yield f"struct Ranges{shape.number} {{"
        yield f"INLINE bool side(const {key}& key, const {key}& low, const {key}& high) {{"
        yield f"(void)key; (void)low; (void)high; return {' && '.join(tests)}; }} }};"


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
    for number, size in enumerate(counters):
        for kind in ("packets", "bytes"):
            yield f"u64* const ctr{number}_{kind} = (u64*)all_cells.take({8 * size}ull);"
    yield "explicit Program(Host& h) : host(h) {"
    for shape in shapes.values():
        counted = _flag(shape.table.with_counters)
        yield f"tbl{shape.number}.layout({shape.entry_bytes}, {counted});"
    yield "}"
    yield from _accessor("u8* cells", [f"reg{i}" for i in range(len(sizes))])
    yield from _accessor("u64* packets", [f"ctr{i}_packets" for i in range(len(counters))])
    yield from _accessor("u64* bytes", [f"ctr{i}_bytes" for i in range(len(counters))])


def _accessor(name: str, cases: Sequence[str]) -> Iterator[str]:
    yield f"{name}(int number) {{ switch (number) {{"
    for number, each in enumerate(cases):
        yield f"case {number}: return {each};"
    yield "} return nullptr; }"


def _message_array(messages: Sequence[str]) -> str:
    """Return the log messages as JSON in character codes, so that no text is parsed as C++.

    The array is at file scope: elsewhere all libraries of a process would share the first one, see
    STB_GNU_UNIQUE in https://gcc.gnu.org/onlinedocs/gcc/Code-Gen-Options.html
    """
    characters = ",".join(map(str, (*json.dumps(messages).encode("ascii"), 0)))
    return f"static const char program_text[] = {{{characters}}};"


def _flag(condition: bool) -> str:
    return "true" if condition else "false"
