# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Assemble the generated functions of a program to a Python module."""

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

from switchgnn.softswitch.codegen.arithmetic import Term, unsigned, wrap_unsigned
from switchgnn.softswitch.codegen.expressions import EGRESS, INGRESS, FunctionContext
from switchgnn.softswitch.codegen.inputs import write_calculation
from switchgnn.softswitch.codegen.layout import FieldLayout, GlobalNames, Slot, SourceWriter
from switchgnn.softswitch.codegen.parser import ParserWriter
from switchgnn.softswitch.codegen.pipeline import PipelineWriter
from switchgnn.softswitch.codegen.wire import HeaderCodec, header_codecs
from switchgnn.softswitch.errors import MalformedProgramError, UnsupportedProgramError, inconsistent
from switchgnn.softswitch.hashing import ALGORITHMS
from switchgnn.softswitch.program import DROP_PORT, PORT_BITS, Checksum, LoadedProgram


def write_verification(ctx: FunctionContext) -> None:
    """Set ``standard_metadata.checksum_error`` if any verified checksum is wrong."""
    checksums = [c for c in ctx.layout.program.checksums if c.verify]
    if not checksums:
        return
    ctx.line("_bad = 0")
    for checksum in checksums:
        ctx.at(f"checksum '{checksum.name}'")
        header, field = checksum.target
        conditions = [] if ctx.layout.program.headers[header].metadata else [_valid(ctx, header)]
        with ctx.writer.block(f"if {_all(ctx, checksum, conditions)}:"):
            write_calculation(ctx, checksum.calculation)
            with ctx.writer.block(f"if {ctx.expressions.field(header, field).text} != _d:"):
                ctx.line("_bad = 1")
    ctx.set_standard("standard_metadata.checksum_error", unsigned("_bad", 1))


def write_updates(ctx: FunctionContext) -> None:
    """Write every updated checksum into its field."""
    for checksum in ctx.layout.program.checksums:
        if not checksum.update:
            continue
        ctx.at(f"checksum '{checksum.name}'")
        header, field = checksum.target
        slot = ctx.layout.slot(header, field, ctx.expressions.where)
        ctx.reads.add(slot.variable)  # the update is conditional: the old value can survive
        with ctx.writer.block(f"if {_all(ctx, checksum, [])}:"):
            write_calculation(ctx, checksum.calculation)
            ctx.set_slot(slot, Term("_d", 0, None))


def _valid(ctx: FunctionContext, header: str) -> str:
    return ctx.expressions.valid(header).text


def _all(ctx: FunctionContext, checksum: Checksum, conditions: list[str]) -> str:
    if checksum.condition is not None:
        conditions = [*conditions, ctx.term(checksum.condition).inner]
    return " and ".join(conditions) or "True"


_NODES = (
    *(ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.AugAssign),
    *(ast.Expr, ast.If, ast.While, ast.Break, ast.Continue, ast.Pass, ast.Load, ast.Store),
    *(ast.Name, ast.Constant, ast.Tuple, ast.Subscript, ast.Slice, ast.Call, ast.Attribute),
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.NamedExpr),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
)
_METHOD = "to_bytes"
# Numbered names of variables, arrays, tables and functions.
_NUMBERED = re.compile(
    r"(h\d+_\d+|(ok|next|vl|unpack|pack|keep|clone|reg|_k|_p)\d+|tbl\d+_(lookup|default)"
    r"|ctr\d+_(packets|bytes))"
)
_CALLED = frozenset(("from_bytes", "len", "log_message", "max", "min", "randint", *ALGORITHMS))
_FUNCTIONS = frozenset(("ingress", "egress", "reparse"))
_VARIABLES = frozenset(
    (
        *("after", "cl", "cs", "data", "deq_depth", "enq_depth", "enq_time", "ex"),
        *("itype", "kept", "n", "now", "original", "out", "perr", "pl", "port", "pos"),
        *("rc", "rid", "rs", "state", "tr", "_a", "_b", "_bad", "_c", "_d", "_e", "_h"),
        *("_i", "_j", "_jn", "_l", "_s", "_sn", "_v", "_w", "_x"),
    )
)
_KNOWN = _CALLED | _FUNCTIONS | _VARIABLES


def check_generated(tree: ast.Module) -> None:
    """Refuse code with any node or name that the generators do not emit."""
    for node in ast.walk(tree):
        if not _is_ours(node):
            line = getattr(node, "lineno", 0)
            raise MalformedProgramError(
                f"The code for this program has an unexpected {type(node).__name__} in line "
                f"{line}; nothing of it is run."
            )


def _is_ours(node: ast.AST) -> bool:
    if not isinstance(node, _NODES):
        return False
    if isinstance(node, ast.Call):
        return isinstance(node.func, (ast.Name, ast.Attribute)) and not node.keywords
    if isinstance(node, ast.FunctionDef) and node.decorator_list:
        return False
    return all(map(_is_known, _names(node)))


def _names(node: ast.AST) -> list[str]:
    """Return the names in a node itself."""
    match node:
        case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name):
            return [name]
        case ast.Attribute(attr=name):
            return [] if name == _METHOD else [f".{name}"]
    return []


def _is_known(name: str) -> bool:
    return name in _KNOWN or _NUMBERED.fullmatch(name) is not None


def write_deparser(ctx: FunctionContext, codecs: Mapping[str, HeaderCodec]) -> None:
    """Assign the packet to ``out``: the valid headers in order, then the unparsed rest."""
    first = True
    for header in ctx.layout.program.deparse_order:
        codec = codecs.get(header)
        if codec is None:
            continue
        ctx.reads.update(codec.carried())
        calls = list(codec.pack_calls())
        if first:
            call = calls.pop(0)
            ctx.line(f"out = {call} if {ctx.expressions.valid(header).text} else b''")
            first = False
        if calls:
            with ctx.writer.block(f"if {ctx.expressions.valid(header).text}:"):
                for call in calls:
                    ctx.line(f"out += {call}")
    ctx.line("out = data[pos:]" if first else "if pos < len(data): out += data[pos:]")


NEVER_TRUNCATED = 1 << 31

_TIMES = (
    "intrinsic_metadata.ingress_global_timestamp",
    "intrinsic_metadata.egress_global_timestamp",
    "queueing_metadata.enq_timestamp",
    "queueing_metadata.deq_timedelta",
)


@dataclass(frozen=True)
class CompiledProgram:
    """A program as Python.

    Attributes:
        source: the generated module, for debugging.
        code: the compiled module.
        names: the module's names of tables and arrays.
        codecs: header codecs by header name.
        state_variables: the variables passed from ingress to egress, in order.
        uses_time: whether the program reads a timestamp.
    """

    program: LoadedProgram
    source: str
    code: CodeType
    names: GlobalNames
    codecs: Mapping[str, HeaderCodec]
    state_variables: tuple[str, ...]
    uses_time: bool


@dataclass(frozen=True)
class Functions:
    """The callables of a bound program; field lists are keyed by id."""

    ingress: Callable[..., Any]
    egress: Callable[..., Any]
    reparse: Callable[..., Any] | None
    keepers: Mapping[int, Callable[[tuple[Any, ...]], tuple[Any, ...]]]
    cloners: Mapping[int, Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Any, ...]]]


class _Bodies:
    """The function bodies generated with one choice of codecs."""

    def __init__(
        self, layout: FieldLayout, names: GlobalNames, codecs: Mapping[str, HeaderCodec]
    ) -> None:
        program = layout.program
        self.parser = FunctionContext(layout, names, INGRESS)
        ParserWriter(self.parser, codecs).write()
        self.ingress = FunctionContext(layout, names, INGRESS)
        self._write_ingress(program, codecs)
        self.egress = FunctionContext(layout, names, EGRESS)
        PipelineWriter(self.egress, program.egress).write()
        self.deparser = FunctionContext(layout, names, EGRESS)
        self.deparser.uses_truncate = self.egress.uses_truncate or self.ingress.uses_truncate
        self.deparser.writer = SourceWriter(2)
        write_updates(self.deparser)
        write_deparser(self.deparser, codecs)

    def _write_ingress(self, program: LoadedProgram, codecs: Mapping[str, HeaderCodec]) -> None:
        ctx = self.ingress
        ParserWriter(ctx, codecs).write()
        ctx.set_standard("standard_metadata.parser_error", unsigned("perr", 32))
        write_verification(ctx)
        PipelineWriter(ctx, program.ingress).write()

    def touched(self) -> frozenset[str]:
        """Return the variables that any body uses."""
        contexts = (self.parser, self.ingress, self.egress, self.deparser)
        return frozenset().union(*(ctx.reads | ctx.writes for ctx in contexts))

    def egress_reads(self) -> set[str]:
        """Return the variables whose values egress needs from ingress."""
        return self.egress.reads | self.deparser.reads


def compile_program(program: LoadedProgram) -> CompiledProgram:
    """Generate and compile the Python of a program."""
    try:
        return _generate(program)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise inconsistent(error) from error


def _generate(program: LoadedProgram) -> CompiledProgram:
    layout = FieldLayout(program)
    names = GlobalNames(program)
    # The first round finds the header fields that are used in computations; the
    # others then stay undecoded between parser and deparser.
    touched = _Bodies(layout, names, {}).touched() | _kept(layout)
    codecs = header_codecs(layout, touched | _standard_variables(layout))
    bodies = _Bodies(layout, names, codecs)
    return _assemble(layout, names, codecs, bodies, touched)


def _assemble(
    layout: FieldLayout,
    names: GlobalNames,
    codecs: Mapping[str, HeaderCodec],
    bodies: _Bodies,
    touched: frozenset[str],
) -> CompiledProgram:
    kept = tuple(sorted(_kept(layout)))
    state = tuple(sorted((bodies.egress_reads() | set(kept)) - {"1"}))
    parts = [
        _ingress_source(layout, bodies, state, kept),
        _egress_source(layout, bodies, state),
        _reparse_source(layout, bodies, state) if bodies.ingress.uses_clone else "",
        *_field_list_sources(layout, names, state, kept),
    ]
    source = "\n\n".join(part for part in parts if part)
    times = {slot.variable for name in _TIMES if (slot := layout.standard(name)) is not None}
    return CompiledProgram(
        layout.program,
        source,
        _compile(source),
        names,
        codecs,
        state,
        bool(times & touched),
    )


def _compile(source: str) -> CodeType:
    try:
        tree = ast.parse(source, "<p4 program>")
        check_generated(tree)
        return compile(tree, "<p4 program>", "exec")
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise UnsupportedProgramError(
            "control flow or expressions nested this deep",
            "the program",
            f"split it into more steps ({error})",
        ) from error


def _kept(layout: FieldLayout) -> frozenset[str]:
    slots = [
        layout.slot(header, field, "field list")
        for fields in layout.program.field_lists.values()
        for header, field in fields
    ]
    if any(slot.length for slot in slots):
        raise UnsupportedProgramError("keeping a varbit", "a field list", "keep other fields")
    return frozenset(slot.variable for slot in slots)


def _standard_variables(layout: FieldLayout) -> frozenset[str]:
    return layout.metadata_variables


def _listed(items: Iterable[str]) -> str:
    return "".join(f"{item}, " for item in items)


def _used(layout: FieldLayout, name: str, variables: set[str]) -> Slot | None:
    slot = layout.standard(name)
    return slot if slot is not None and slot.variable in variables else None


def _setting(slot: Slot, text: str, bits: int) -> str:
    """Return the assignment of a number of the switch to a field, which may be narrower."""
    return f"{slot.variable} = {wrap_unsigned(unsigned(text, bits), slot.width).text}"


def _ingress_source(
    layout: FieldLayout, bodies: _Bodies, state: tuple[str, ...], kept: tuple[str, ...]
) -> str:
    ctx = bodies.ingress
    outputs = [
        layout.standard("standard_metadata.egress_spec"),
        layout.standard("intrinsic_metadata.mcast_grp"),
        layout.standard("intrinsic_metadata.priority"),
    ]
    results = ["0" if slot is None else slot.variable for slot in outputs]
    variables = (ctx.reads | set(state) | set(kept) | set(results)) - {"0", "1"}
    head = SourceWriter(1)
    _write_zeros(head, variables)
    for name, text, bits in (
        ("standard_metadata.ingress_port", "port", PORT_BITS),
        ("intrinsic_metadata.ingress_global_timestamp", "now & 0xffffffffffff", 48),
    ):
        if (used := _used(layout, name, variables)) is not None:
            head.line(_setting(used, text, bits))
    if kept:
        with head.block("if kept is not None:"):
            head.line(f"{_listed(kept)} = kept")
    for name, text, bits in (
        ("standard_metadata.instance_type", "itype", 3),
        ("standard_metadata.packet_length", "n", 32),
    ):
        if (used := _used(layout, name, variables)) is not None:
            head.line(_setting(used, text, bits))
    head.line(f"pos = cl = rs = 0; pl = n; cs = -1; tr = {NEVER_TRUNCATED}")
    tail = SourceWriter(1)
    tail.line(f"return {', '.join(results)}, cs, cl, rs, pos, pl, tr, ({_listed(state)})")
    signature = "def ingress(data, n, port, itype, now, kept):\n"
    return signature + head.text() + ctx.writer.text() + tail.text()


def _write_zeros(writer: SourceWriter, variables: Iterable[str]) -> None:
    ordered = sorted(variables)
    if ordered:
        writer.line(" = ".join(ordered) + " = 0")


def _egress_source(layout: FieldLayout, bodies: _Bodies, state: tuple[str, ...]) -> str:
    ctx = bodies.egress
    head = SourceWriter(1)
    if state:
        head.line(f"{_listed(state)} = state")
    _write_egress_metadata(layout, head, bodies.egress_reads() | ctx.writes)
    head.line("cs = -1; cl = rc = 0")
    spec = layout.standard("standard_metadata.egress_spec")
    tail = SourceWriter(1)
    with tail.block(f"if {spec.variable if spec else 0} == {DROP_PORT}:"):
        tail.line("out = None")
    with tail.block("else:"):
        tail.lines.extend(bodies.deparser.writer.lines)
        tail.line("pass")
    tail.line(f"after = ({_listed(state)}) if cs >= 0 or rc else None")
    tail.line("return out, cs, cl, rc, pl, tr, after")
    signature = (
        "def egress(state, data, pos, port, rid, itype, pl, tr, n, now, "
        "enq_time, enq_depth, deq_depth):\n"
    )
    return signature + head.text() + ctx.writer.text() + tail.text()


def _write_egress_metadata(layout: FieldLayout, head: SourceWriter, variables: set[str]) -> None:
    spec = layout.standard("standard_metadata.egress_spec")
    if spec is not None:
        # simple_switch writes the drop port plus one here, which is 0 in nine bits.
        head.line(f"{spec.variable} = 0")
    if (used := _used(layout, "intrinsic_metadata.egress_rid", variables)) is not None:
        head.line(f"if rid >= 0: {_setting(used, 'rid', 32)}")
    for name, text, bits in (
        ("standard_metadata.egress_port", "port", PORT_BITS),
        ("standard_metadata.instance_type", "itype", 3),
        ("standard_metadata.packet_length", "pl & 0xffffffff", 32),
        ("intrinsic_metadata.egress_global_timestamp", "now & 0xffffffffffff", 48),
        ("queueing_metadata.enq_timestamp", "enq_time & 0xffffffff", 32),
        ("queueing_metadata.enq_qdepth", "enq_depth & 0x7ffff", 19),
        ("queueing_metadata.deq_timedelta", "now - enq_time & 0xffffffff", 32),
        ("queueing_metadata.deq_qdepth", "deq_depth & 0x7ffff", 19),
    ):
        if (used := _used(layout, name, variables)) is not None:
            head.line(_setting(used, text, bits))


def _reparse_source(layout: FieldLayout, bodies: _Bodies, state: tuple[str, ...]) -> str:
    ctx = bodies.parser
    head = SourceWriter(1)
    _write_zeros(head, (ctx.reads | set(state)) - {"1"})
    port = layout.standard("standard_metadata.ingress_port")
    if port is not None:
        head.line(_setting(port, "port", PORT_BITS))
    head.line("pos = 0; pl = n")
    body = head.text() + ctx.writer.text()
    return f"def reparse(data, n, port):\n{body} return pos, ({_listed(state)})\n"


def _field_list_sources(
    layout: FieldLayout, names: GlobalNames, state: tuple[str, ...], kept: tuple[str, ...]
) -> Iterable[str]:
    place = {variable: index for index, variable in enumerate(state)}
    for ident, fields in layout.program.field_lists.items():
        listed = {layout.slot(header, name, "field list").variable for header, name in fields}
        kept_values = [f"state[{place[v]}]" if v in listed else "0" for v in kept]
        cloned = [_cloned(layout, v, place[v], listed) for v in state]
        yield f"def {names.keeper[ident]}(state):\n return ({_listed(kept_values)})\n"
        yield f"def {names.cloner[ident]}(state, original):\n return ({_listed(cloned)})\n"


def _cloned(layout: FieldLayout, variable: str, index: int, listed: set[str]) -> str:
    if variable in listed:
        return f"original[{index}]"
    return "0" if variable in layout.metadata_variables else f"state[{index}]"
