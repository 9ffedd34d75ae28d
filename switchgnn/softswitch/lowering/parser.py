"""Split headers into runs of whole bytes, and lower how they are parsed and written."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from switchgnn.softswitch.base import ir
from switchgnn.softswitch.base.errors import UnsupportedProgramError
from switchgnn.softswitch.base.program import MOST_BITS, Json, ParserState, Primitive, Transition
from switchgnn.softswitch.lowering import arithmetic
from switchgnn.softswitch.lowering import variables as var
from switchgnn.softswitch.lowering.arithmetic import all_of, any_of, compare, constant, variable
from switchgnn.softswitch.lowering.expressions import FieldLayout, FunctionContext, Slot
from switchgnn.softswitch.lowering.primitives import lower_primitive
from switchgnn.softswitch.lowering.structure import Structurer, lower_graph


def _packet_bytes(offset: ir.Expr, size: ir.Expr, most_bytes: int) -> ir.Expr:
    """Return bytes of the packet, at most `most_bytes`, as a number."""
    most = (1 << 8 * most_bytes) - 1
    return ir.Expr("wire", 0, most, (offset, size), most)


@dataclass(frozen=True)
class Run:
    """Consecutive fields that together fill whole bytes."""

    slots: tuple[Slot, ...]
    raw: bool  # no computation uses one of the fields, so that they stay undecoded

    @cached_property
    def fixed_bytes(self) -> int:
        """Bytes of the run on the wire without a ``varbit``."""
        return sum(slot.width for slot in self.slots if slot.length is None) // 8

    @cached_property
    def length(self) -> ir.Variable | None:
        """The variable with the bytes of its ``varbit``, if it has one."""
        return next((slot.length for slot in self.slots if slot.length), None)

    @property
    def size(self) -> ir.Expr:
        """The bytes of the run on the wire."""
        if self.length is None:
            return constant(self.fixed_bytes)
        return arithmetic.add(constant(self.fixed_bytes), variable(self.length))

    @property
    def raw_variable(self) -> ir.Variable:
        """The variable of a raw run."""
        held = self.slots[0].variable
        return ir.Variable(held.name, 0, (1 << 8 * self.fixed_bytes) - 1, self.fixed_bytes)

    def read(self, ctx: FunctionContext, offset: ir.Expr) -> None:
        """Read the fields from the packet."""
        if self.raw:
            ctx.add(ir.ReadRaw(self.raw_variable, offset))
            return
        most_bytes = sum(slot.width for slot in self.slots) // 8
        whole = ctx.let(_packet_bytes(offset, self.size, most_bytes))
        for slot, below in self._with_shifts():
            shifted = arithmetic.shift_right(whole, below)
            power = arithmetic.shift_left(constant(1), slot.bits)
            mask = arithmetic.subtract(power, constant(1))
            ctx.set_slot(slot, arithmetic.bit_and(shifted, mask))

    def emit(self, ctx: FunctionContext) -> None:
        """Append the fields to the outgoing packet."""
        if self.raw:
            ctx.add(ir.Emit(variable(self.raw_variable), self.size))
            return
        whole = constant(0)
        for slot, below in self._with_shifts():
            held = arithmetic.wrap(variable(slot.variable), slot.width)
            whole = arithmetic.bit_or(whole, arithmetic.shift_left(held, below))
        ctx.add(ir.Emit(whole, self.size))

    def _with_shifts(self) -> Iterator[tuple[Slot, ir.Expr]]:
        """Yield each slot with the number of bits below it."""
        below = constant(0)
        pairs = []
        for slot in reversed(self.slots):
            pairs.append((slot, below))
            below = arithmetic.add(below, slot.bits)
        yield from reversed(pairs)


# The runs of a header, which together are all of it.
Codec = tuple[Run, ...]


def _read_header(ctx: FunctionContext, codec: Codec) -> None:
    position = variable(var.POSITION)
    passed = constant(0)
    for run in codec:
        run.read(ctx, arithmetic.add(position, passed))
        passed = arithmetic.add(passed, run.size)
    ctx.set(var.POSITION, arithmetic.add(position, passed))


def header_codecs(layout: FieldLayout, touched: frozenset[ir.Variable]) -> dict[str, Codec]:
    """Return the codecs of all headers that can be on the wire."""
    return {
        header.name: tuple(_runs(layout, header.name, touched))
        for header in layout.program.headers.values()
        if header.fields and not header.metadata
    }


def _runs(layout: FieldLayout, header: str, touched: frozenset[ir.Variable]) -> Iterator[Run]:
    pending: list[Slot] = []
    for slot in layout.fields(header):
        pending.append(slot)
        if sum(s.width for s in pending if not s.length) % 8 == 0:
            raw = all(s.length is None and s.variable not in touched for s in pending)
            yield Run(tuple(pending), raw)
            pending = []
    if pending:
        raise UnsupportedProgramError(
            "headers that are not a whole number of bytes",
            f"header '{header}'",
            "pad the header type",
        )


class ParserLowering:
    """Lowers one parser, which leaves its error in PARSER_ERROR and its end in POSITION."""

    def __init__(self, ctx: FunctionContext, codecs: Mapping[str, Codec]) -> None:
        self._ctx = ctx
        self._codecs = codecs
        self._program = ctx.layout.program

    def lower(self) -> None:
        """Append the parser."""
        self._ctx.set(var.PARSER_ERROR, self._error("NoError"))
        if self._program.parser_start is None:
            return
        successors = {
            name: tuple({case.next_state: None for case in _cases(state)})
            for name, state in self._program.parser_states.items()
        }
        # Errors leave the loop from any depth.
        with self._ctx.block() as body:
            start, counters = self._program.parser_start, (var.STATE, var.TURNS)
            lower_graph(self._ctx, successors, start, self._lower_state, counters)
            self._ctx.add(ir.Simple.BREAK)
        self._ctx.add(ir.Repeat(tuple(body)))

    def _error(self, name: str) -> ir.Expr:
        return constant(self._program.errors.get(name, 0))

    def _lower_state(self, name: str, structurer: Structurer) -> None:
        state, join = self._program.parser_states[name], structurer.join(name)
        self._ctx.where = f"parser state '{state.name}'"
        for operation in state.operations:
            self._lower_operation(operation)
        key = [self._key_part(node) for node in state.key]
        branches = []
        for following, cases in groupby(_cases(state), lambda case: case.next_state):
            with self._ctx.block() as block:
                if following != join:
                    structurer.region(following, join)
            conditions = [_condition(case, key) for case in cases]
            condition = next((each for each in conditions if each.constant), any_of(conditions))
            if condition.constant:
                break
            branches.append((condition, tuple(block)))
        if branches:
            self._ctx.add(ir.If(tuple(branches), tuple(block)))
        else:
            self._ctx.add(*block)

    def _lower_operation(self, operation: Primitive) -> None:
        handler = _OPERATIONS.get(operation.op)
        if handler is None:
            raise self._ctx.refuse(
                f"parser operation '{operation.op}'", "extract headers of fixed width"
            )
        handler(self, operation.parameters)

    def _fail_unless(self, condition: ir.Expr, error: str) -> None:
        self._fail(arithmetic.negation(condition), self._error(error))

    def _fail(self, condition: ir.Expr, error: ir.Expr) -> None:
        self._ctx.add(ir.either(condition, (ir.Assign(var.PARSER_ERROR, error), ir.Simple.BREAK)))

    def _need(self, size: ir.Expr) -> None:
        left = arithmetic.subtract(variable(var.PACKET_BYTES), variable(var.POSITION))
        self._fail_unless(compare(">=", left, size), "PacketTooShort")

    def _extract(self, parameters: tuple[Json, ...]) -> None:
        target = parameters[0]
        length = parameters[1] if len(parameters) > 1 else None
        kind, name = target["type"], target["value"]
        if kind == "regular":
            self._extract_header(name, length)
        elif kind == "stack":
            self._extract_next(name, self._ctx.headers_in(name), length)
        elif kind == "union_stack":
            self._extract_next(name[0], self._ctx.headers_in(*name), length)
        else:
            raise self._ctx.refuse(f"extracting to a {kind}", "extract to a header or a stack")

    def _extract_header(self, name: str, length: Json | None) -> None:
        codec = self._codecs.get(name)
        if codec is not None:
            varbit = self._ctx.layout.varbit(name)
            if (varbit is None) != (length is None):
                raise self._ctx.refuse(
                    "extracting a length that does not fit the header",
                    "give one for headers with a varbit",
                )
            fixed = constant(self._program.headers[name].fixed_width // 8)
            if varbit is None or varbit.length is None:
                self._need(fixed)
            else:
                self._take_length(fixed, varbit.length, length)
            _read_header(self._ctx, codec)
        elif length is not None:
            # The first round, which finds the used fields, has no codecs.
            self._ctx.value(length)
        self._ctx.set_valid(name)

    def _take_length(self, fixed: ir.Expr, length: ir.Variable, node: Json) -> None:
        """Check the length of a ``varbit`` against the packet and its maximum, and keep it."""
        # extract() takes a bit<32>; BMv2 has no length whose top bit is one.
        bits = self._ctx.let(arithmetic.wrap(self._ctx.value(node), 32))
        whole = arithmetic.bit_and(bits, constant(1 << 31 | 7))
        self._fail_unless(compare("==", whole, constant(0)), "ParserInvalidArgument")
        # BMv2 adds up the lengths of repeated extractions:
        # https://github.com/p4lang/behavioral-model/blob/main/src/bm_sim/parser.cpp
        taken = self._ctx.let(arithmetic.shift_right(bits, constant(3)))
        longer = self._ctx.let(arithmetic.add(variable(length), taken))
        self._need(arithmetic.add(fixed, longer))
        fits = compare("<=", longer, constant(length.high))
        self._fail_unless(fits, "HeaderTooShort")
        self._ctx.set(length, taken)

    def _extract_next(self, stack: str, elements: list[str], length: Json | None) -> None:
        following = self._ctx.layout.next_index[stack]
        index = self._ctx.let(variable(following))
        has_room = compare("<", index, constant(len(elements)))
        self._fail_unless(has_room, "StackOutOfBounds")
        for number, name in enumerate(elements):
            with self._ctx.when(compare("==", index, constant(number))):
                self._extract_header(name, length)
        self._ctx.set(following, arithmetic.add(index, constant(1)))

    def _set(self, parameters: tuple[Json, ...]) -> None:
        target, source = parameters
        slot = self._ctx.slot(*target["value"])
        if slot.length:
            if source["type"] != "field":
                raise self._ctx.refuse("setting a varbit", "set it to another varbit")
            self._ctx.copy_slot(slot, self._ctx.slot(*source["value"]))
        elif source["type"] == "lookahead":
            self._ctx.set_slot(slot, self._lookahead(source["value"])[0])
        else:
            self._ctx.set_slot(slot, self._ctx.value(source))

    def _lookahead(self, bits: Json) -> tuple[ir.Expr, int]:
        """Return bits of the packet, given by their offset and width, and the width."""
        offset, width = bits
        if offset < 0 or not 0 < width <= MOST_BITS - offset:
            raise self._ctx.refuse("looking ahead this far", "look at fewer bits")
        begin, end = offset // 8, (offset + width + 7) // 8
        self._need(constant(end))
        position = arithmetic.add(variable(var.POSITION), constant(begin))
        window = _packet_bytes(position, constant(end - begin), end - begin)
        shifted = arithmetic.shift_right(window, constant(end * 8 - offset - width))
        return self._ctx.let(arithmetic.wrap(shifted, width)), width

    def _verify(self, parameters: tuple[Json, ...]) -> None:
        condition, error = (self._ctx.value(node) for node in parameters)
        self._fail(arithmetic.negation(condition), error)

    def _advance(self, parameters: tuple[Json, ...]) -> None:
        bits = self._ctx.let(self._ctx.value(parameters[0]))
        whole = compare("==", arithmetic.bit_and(bits, constant(7)), constant(0))
        self._fail_unless(whole, "ParserInvalidArgument")
        size = arithmetic.shift_right(bits, constant(3))
        self._need(size)
        self._ctx.set(var.POSITION, arithmetic.add(variable(var.POSITION), size))

    def _primitive(self, parameters: tuple[Json, ...]) -> None:
        call = parameters[0]
        lower_primitive(self._ctx, Primitive(call["op"], tuple(call["parameters"])))

    def _key_part(self, node: Json) -> tuple[ir.Expr, int]:
        if node["type"] == "lookahead":
            return self._lookahead(node["value"])
        if node["type"] == "field":
            slot = self._ctx.slot(*node["value"])
            if slot.signed:
                raise self._ctx.refuse("selecting on a signed field", "cast it to bit<> first")
            return variable(slot.variable), slot.width
        if node["type"] in {"stack_field", "union_stack_field"}:
            stack, *member, field = node["value"]
            first = self._ctx.headers_in(stack, *member)[0]
            return self._ctx.value(node), self._ctx.slot(first, field).width
        raise self._ctx.refuse(f"selecting on a {node['type']}", "select on header fields")


def _cases(state: ParserState) -> list[Transition]:
    cases = list(state.transitions)
    if all(case.value is not None for case in cases):
        cases.append(Transition(None, None, None))
    return cases


def _condition(case: Transition, key: list[tuple[ir.Expr, int]]) -> ir.Expr:
    if case.value is None:
        return constant(1)
    parts = []
    shift = 0
    for value, width in reversed(key):
        full = (1 << width) - 1
        mask = full if case.mask is None else case.mask >> shift & full
        masked = arithmetic.bit_and(value, constant(mask))
        wanted = constant(case.value >> shift & mask)
        shift += (width + 7) // 8 * 8  # each part of the key is padded to whole bytes
        if mask:
            parts.append(compare("==", masked, wanted))
    return all_of(parts[::-1])


_OPERATIONS: dict[str, Callable[[ParserLowering, tuple[Json, ...]], None]] = {
    "extract": ParserLowering._extract,
    "extract_VL": ParserLowering._extract,
    "set": ParserLowering._set,
    "verify": ParserLowering._verify,
    "advance": ParserLowering._advance,
    "primitive": ParserLowering._primitive,
}
