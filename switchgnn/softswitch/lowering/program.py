"""Lower a whole program to the functions that the switch calls."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from switchgnn.softswitch.base import ir
from switchgnn.softswitch.base.errors import UnsupportedProgramError, inconsistent
from switchgnn.softswitch.base.program import DROP_PORT, Checksum, FieldRef, LoadedProgram
from switchgnn.softswitch.lowering import variables as var
from switchgnn.softswitch.lowering.arithmetic import (
    all_of,
    compare,
    constant,
    subtract,
    variable,
    wrap,
)
from switchgnn.softswitch.lowering.control import ControlLowering
from switchgnn.softswitch.lowering.expressions import EGRESS, INGRESS, FieldLayout, FunctionContext
from switchgnn.softswitch.lowering.parser import Codec, ParserLowering, header_codecs
from switchgnn.softswitch.lowering.primitives import lower_digest

_TIMES = (
    "intrinsic_metadata.ingress_global_timestamp",
    "intrinsic_metadata.egress_global_timestamp",
    "queueing_metadata.enq_timestamp",
    "queueing_metadata.deq_timedelta",
)
_SPEC = "standard_metadata.egress_spec"
_RESULTS = (_SPEC, "intrinsic_metadata.mcast_grp", "intrinsic_metadata.priority")
_OF_PARSER = frozenset((var.PACKET_BYTES, var.POSITION, var.PARSER_ERROR, var.STATE, var.TURNS))


@dataclass(frozen=True)
class LoweredProgram:
    """A program in the intermediate representation."""

    program: LoadedProgram
    ingress: ir.Block  # parser, checksums and ingress
    egress: ir.Block  # egress, checksums and deparser
    # the parser alone, for clones of packets as they arrived; None: there are none
    reparse: ir.Block | None
    # egress port, multicast group and priority after ingress
    results: tuple[ir.Expr, ir.Expr, ir.Expr]
    state: tuple[ir.Variable, ...]  # the variables that egress needs from ingress, in order
    kept: tuple[ir.Variable, ...]  # the variables in field lists, in order
    lists: Mapping[int, frozenset[ir.Variable]]  # by field list, the variables in it
    # the variables of metadata, which a clone loses unless they are in its list
    metadata: frozenset[ir.Variable]
    # whether a packet that has not changed needs no parser when it recirculates
    stays_parsed: bool
    header_bytes: int  # bytes of all headers that leave together, at most
    uses_time: bool  # whether the program reads a timestamp


def lower_program(program: LoadedProgram) -> LoweredProgram:
    """Lower a program, or refuse it where a part is missing or not supported."""
    try:
        return _lower(program)
    except RecursionError as error:
        raise UnsupportedProgramError(
            "control flow or expressions nested this deep",
            "the program",
            "split it into more steps",
        ) from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise inconsistent(error) from error


class _Bodies:
    def __init__(self, layout: FieldLayout, codecs: Mapping[str, Codec]) -> None:
        program = layout.program
        self.parser = FunctionContext(layout, INGRESS)
        ParserLowering(self.parser, codecs).lower()
        self.ingress = FunctionContext(layout, INGRESS)
        with self.ingress.block() as parser:
            ParserLowering(self.ingress, codecs).lower()
        self.ingress.add(ir.Parse(tuple(parser)))
        self.ingress.set_standard("standard_metadata.parser_error", variable(var.PARSER_ERROR))
        _verify(self.ingress)
        ControlLowering(self.ingress, program.ingress).lower()
        self.egress = FunctionContext(layout, EGRESS)
        ControlLowering(self.egress, program.egress).lower()
        self.deparser = FunctionContext(layout, EGRESS)
        _update(self.deparser)
        _deparse(self.deparser, codecs)

        contexts = (self.parser, self.ingress, self.egress, self.deparser)
        blocks = [each.statements for each in contexts]
        # The variables whose values any function uses, and also those that any function sets.
        self.read = frozenset().union(*map(ir.variables_read, blocks))
        self.touched = self.read.union(*map(ir.variables_set, blocks))


def _verify(ctx: FunctionContext) -> None:
    checksums = [checksum for checksum in ctx.layout.program.checksums if checksum.verify]
    if not checksums:
        return
    ctx.set(var.WRONG_CHECKSUM, constant(0))
    for checksum in checksums:
        ctx.where = f"checksum '{checksum.name}'"
        header, field = checksum.target
        with ctx.when(_applies(ctx, checksum, [ctx.layout.valid(header)])):
            digest = lower_digest(ctx, checksum.calculation)
            with ctx.when(compare("!=", ctx.field(header, field), digest)):
                ctx.set(var.WRONG_CHECKSUM, constant(1))
    ctx.set_standard("standard_metadata.checksum_error", variable(var.WRONG_CHECKSUM))


def _update(ctx: FunctionContext) -> None:
    for checksum in ctx.layout.program.checksums:
        if checksum.update:
            ctx.where = f"checksum '{checksum.name}'"
            slot = ctx.slot(*checksum.target)
            with ctx.when(_applies(ctx, checksum, [])):
                ctx.set_slot(slot, lower_digest(ctx, checksum.calculation))


def _applies(ctx: FunctionContext, checksum: Checksum, conditions: list[ir.Expr]) -> ir.Expr:
    if checksum.condition is not None:
        conditions = [*conditions, ctx.value(checksum.condition)]
    return all_of(conditions)


def _deparse(ctx: FunctionContext, codecs: Mapping[str, Codec]) -> None:
    with ctx.block() as body:
        for header in ctx.layout.program.deparse_order:
            if header in codecs:
                with ctx.when(ctx.layout.valid(header)):
                    for run in codecs[header]:
                        run.emit(ctx)
        ctx.add(ir.Simple.EMIT_REST)
    ctx.add(ir.Deparse(tuple(body)))


def _lower(program: LoadedProgram) -> LoweredProgram:
    layout = FieldLayout(program)
    lists = {ident: _field_list(layout, fields) for ident, fields in program.field_lists.items()}
    kept = frozenset().union(*lists.values())
    # The first round finds the header fields that are used in computations; the
    # others then stay undecoded between parser and deparser.
    touched = _Bodies(layout, {}).touched | kept
    codecs = header_codecs(layout, touched | layout.metadata_variables)
    bodies = _Bodies(layout, codecs)
    # A packet may have a header more than once.
    emitted = [program.headers[name].width for name in program.deparse_order if name in codecs]
    egress_reads = ir.variables_read((*bodies.egress.statements, *bodies.deparser.statements))
    clones = var.CLONE_SESSION in ir.variables_set(bodies.ingress.statements)
    results = [layout.standard(name) for name in _RESULTS]
    used = {slot.variable for slot in results if slot is not None}
    given = partial(_given, layout, bodies.read | kept | used)
    spec, group, priority = (constant(0) if s is None else variable(s.variable) for s in results)
    return LoweredProgram(
        program=program,
        ingress=(*_before_ingress(given), *bodies.ingress.statements),
        egress=tuple(_egress(layout, given, bodies)),
        reparse=(*_before_parser(given), *bodies.parser.statements) if clones else None,
        results=(spec, group, priority),
        state=_sorted(each for each in egress_reads | kept if each.name in layout.names),
        kept=_sorted(kept),
        lists=lists,
        metadata=layout.metadata_variables,
        stays_parsed=_stays_parsed(layout, bodies, kept),
        header_bytes=sum(emitted) // 8,
        uses_time=any(s.variable in touched for s in map(layout.standard, _TIMES) if s is not None),
    )


def _stays_parsed(layout: FieldLayout, bodies: "_Bodies", kept: frozenset[ir.Variable]) -> bool:
    """Return whether what leaves is parsed into the same headers, unless these have changed.

    So it is if the parser extracts headers in the order in which they leave, depends on nothing
    else, and decides nothing else.
    """
    parser = bodies.parser.statements
    headers = layout.names - {each.name for each in layout.metadata_variables}
    own = {each for each in ir.variables_set(parser) - _OF_PARSER if each.name not in headers}
    read = {each for each in ir.variables_read(parser) - _OF_PARSER if each.name not in headers}
    lets = {each.variable for each in ir.statements_in(parser) if isinstance(each, ir.Let)}
    later = (each for each in bodies.ingress.statements if not isinstance(each, ir.Parse))
    others = (*later, *bodies.egress.statements, *bodies.deparser.statements)
    elsewhere = ir.variables_read(others) | ir.variables_set(others) | kept
    return (
        not layout.program.stacks
        and layout.program.errors.get("NoError", 0) == 0
        and read - lets <= own
        and not own & elsewhere
        and _in_order(layout.program)
    )


def _in_order(program: LoadedProgram) -> bool:
    """Return whether each header is extracted before all that leave after it, on every path.

    A parser that sets a field of a header makes other bytes than it has read.
    """
    places = {name: place for place, name in enumerate(program.deparse_order)}
    taken: dict[str, list[int]] = {}
    for name, state in program.parser_states.items():
        sets = [each.parameters[0]["value"][0] for each in state.operations if each.op == "set"]
        operations = [each for each in state.operations if each.op not in {"set", "verify"}]
        targets = [each.parameters[0] for each in operations if each.op == "extract"]
        known = [places.get(str(each["value"])) for each in targets if each["type"] == "regular"]
        taken[name] = [each for each in known if each is not None]
        if len(taken[name]) != len(operations) or sorted(set(taken[name])) != taken[name]:
            return False
        if not all(program.headers[each].metadata for each in sets):
            return False
    return len(places) == len(program.deparse_order) and all(
        before < after
        for name in taken
        for later in _reachable(program, name)
        for before in taken[name]
        for after in taken[later]
    )


def _reachable(program: LoadedProgram, begin: str) -> set[str]:
    found: set[str] = set()
    left = [begin]
    while left:
        for case in program.parser_states[left.pop()].transitions:
            if case.next_state is not None and case.next_state not in found:
                found.add(case.next_state)
                left.append(case.next_state)
    return found


def _field_list(layout: FieldLayout, fields: Iterable[FieldRef]) -> frozenset[ir.Variable]:
    return frozenset(layout.slot(*field, "field list").variable for field in fields)


def _sorted(variables: Iterable[ir.Variable]) -> tuple[ir.Variable, ...]:
    return tuple(sorted(variables, key=lambda each: each.name))


# Assigns the switch's numbers to fields, which may be narrower, if they are read.
_Give = Callable[[Mapping[str, ir.Expr]], Iterator[ir.Statement]]


def _given(
    layout: FieldLayout, read: frozenset[ir.Variable], numbers: Mapping[str, ir.Expr]
) -> Iterator[ir.Statement]:
    for name, value in numbers.items():
        slot = layout.standard(name)
        if slot is not None and slot.variable in read:
            yield ir.Assign(slot.variable, wrap(value, slot.width))


_NOW = wrap(variable(var.NOW), 48)
_INGRESS_PORT = {"standard_metadata.ingress_port": variable(var.INPUT_PORT)}
_AT_INGRESS = {
    "standard_metadata.instance_type": variable(var.INSTANCE_TYPE),
    "standard_metadata.packet_length": wrap(variable(var.PACKET_BYTES), 32),
}
_AT_EGRESS = {
    "standard_metadata.egress_port": variable(var.INPUT_PORT),
    "standard_metadata.instance_type": variable(var.INSTANCE_TYPE),
    "standard_metadata.packet_length": wrap(variable(var.LENGTH), 32),
    "intrinsic_metadata.egress_global_timestamp": _NOW,
    "queueing_metadata.enq_timestamp": wrap(variable(var.ENQUEUED_AT), 32),
    "queueing_metadata.enq_qdepth": wrap(variable(var.DEPTH_BEFORE), 19),
    "queueing_metadata.deq_timedelta": wrap(
        subtract(variable(var.NOW), variable(var.ENQUEUED_AT)), 32
    ),
    "queueing_metadata.deq_qdepth": wrap(variable(var.DEPTH_AFTER), 19),
}


def _set(values: Mapping[ir.Variable, int]) -> Iterator[ir.Statement]:
    yield from (ir.Assign(each, constant(value)) for each, value in values.items())


def _before_ingress(given: _Give) -> Iterator[ir.Statement]:
    yield from given({**_INGRESS_PORT, "intrinsic_metadata.ingress_global_timestamp": _NOW})
    yield ir.Simple.RESTORE_KEPT
    yield from given(_AT_INGRESS)
    yield from _set({var.POSITION: 0, var.CLONE_LIST: 0, var.RESUBMIT: 0})
    yield from _set({var.CLONE_SESSION: -1, var.KEPT_BYTES: var.NEVER_TRUNCATED})
    yield ir.Assign(var.LENGTH, variable(var.PACKET_BYTES))


def _before_parser(given: _Give) -> Iterator[ir.Statement]:
    yield from given(_INGRESS_PORT)
    yield ir.Assign(var.POSITION, constant(0))
    yield ir.Assign(var.LENGTH, variable(var.PACKET_BYTES))


def _egress(layout: FieldLayout, given: _Give, bodies: _Bodies) -> Iterator[ir.Statement]:
    # simple_switch writes the drop port plus one here, which is 0 in nine bits.
    yield from given({_SPEC: constant(0)})
    copied = tuple(given({"intrinsic_metadata.egress_rid": wrap(variable(var.INSTANCE), 32)}))
    yield ir.either(compare(">=", variable(var.INSTANCE), constant(0)), copied)
    yield from given(_AT_EGRESS)
    yield from _set({var.CLONE_SESSION: -1, var.CLONE_LIST: 0, var.RECIRCULATE: 0})
    yield from bodies.egress.statements
    spec, dropped = layout.standard(_SPEC), constant(0)
    if spec is not None:
        dropped = compare("==", variable(spec.variable), constant(DROP_PORT))
    yield ir.either(dropped, (ir.Simple.DROP,), bodies.deparser.statements)
