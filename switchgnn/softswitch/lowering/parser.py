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


def _packet_bytes(offset: ir.Expr, size: int) -> ir.Expr:
    most = (1 << 8 * size) - 1
    return ir.Expr("wire", 0, most, (offset, constant(size)), most)


@dataclass(frozen=True)
class Run:
    """Consecutive fields that together fill whole bytes."""

    slots: tuple[Slot, ...]
    raw: bool  # no computation uses one of the fields, so that they stay undecoded

    @cached_property
    def size(self) -> int:
        """The bytes of the run on the wire."""
        return sum(slot.width for slot in self.slots) // 8

    @property
    def raw_variable(self) -> ir.Variable:
        """The variable of a raw run."""
        held = self.slots[0].variable
        return ir.Variable(held.name, 0, (1 << 8 * self.size) - 1, self.size)

    def read(self, ctx: FunctionContext, offset: ir.Expr) -> None:
        """Read the fields from the packet."""
        if self.raw:
            ctx.add(ir.ReadRaw(self.raw_variable, offset))
            return
        whole = ctx.let(_packet_bytes(offset, self.size))
        for slot, below in self._with_shifts():
            ctx.set_slot(slot, arithmetic.wrap(arithmetic.shift_right(whole, below), slot.width))

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
        below = 8 * self.size
        for slot in self.slots:
            below -= slot.width
            yield slot, constant(below)


# The runs of a header, which together are all of it.
Codec = tuple[Run, ...]


def _read_header(ctx: FunctionContext, codec: Codec) -> None:
    position, passed = variable(var.POSITION), 0
    for run in codec:
        run.read(ctx, arithmetic.add(position, constant(passed)))
        passed += run.size
    ctx.set(var.POSITION, arithmetic.add(position, constant(passed)))


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
        if sum(s.width for s in pending) % 8 == 0:
            yield Run(tuple(pending), all(s.variable not in touched for s in pending))
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
            handler = _OPERATIONS.get(operation.op)
            if handler is None:
                raise self._ctx.refuse(
                    f"parser operation '{operation.op}'", "extract headers of fixed width"
                )
            handler(self, operation.parameters)
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

    def _fail_unless(self, condition: ir.Expr, error: str) -> None:
        self._fail(arithmetic.negation(condition), self._error(error))

    def _fail(self, condition: ir.Expr, error: ir.Expr) -> None:
        self._ctx.add(ir.either(condition, (ir.Assign(var.PARSER_ERROR, error), ir.Simple.BREAK)))

    def _need(self, size: ir.Expr) -> None:
        left = arithmetic.subtract(variable(var.PACKET_BYTES), variable(var.POSITION))
        self._fail_unless(compare(">=", left, size), "PacketTooShort")

    def _extract(self, parameters: tuple[Json, ...]) -> None:
        kind, name = parameters[0]["type"], parameters[0]["value"]
        if kind == "regular":
            self._extract_header(name)
        elif kind == "stack":
            self._extract_next(name)
        else:
            raise self._ctx.refuse(f"extracting to a {kind}", "extract to a header or a stack")

    def _extract_header(self, name: str) -> None:
        codec = self._codecs.get(name)
        # The first round, which finds the used fields, has no codecs.
        if codec is not None:
            self._need(constant(self._program.headers[name].width // 8))
            _read_header(self._ctx, codec)
        self._ctx.set_valid(name)

    def _extract_next(self, stack: str) -> None:
        elements, following = self._program.stacks[stack], self._ctx.layout.next_index[stack]
        index = self._ctx.let(variable(following))
        has_room = compare("<", index, constant(len(elements)))
        self._fail_unless(has_room, "StackOutOfBounds")
        for number, name in enumerate(elements):
            with self._ctx.when(compare("==", index, constant(number))):
                self._extract_header(name)
        self._ctx.set(following, arithmetic.add(index, constant(1)))

    def _set(self, parameters: tuple[Json, ...]) -> None:
        target, source = parameters
        slot = self._ctx.slot(*target["value"])
        if source["type"] == "lookahead":
            self._ctx.set_slot(slot, self._lookahead(source["value"])[0])
        else:
            self._ctx.set_slot(slot, self._ctx.value(source))

    def _lookahead(self, bits: Json) -> tuple[ir.Expr, int]:
        offset, width = bits
        if offset < 0 or not 0 < width <= MOST_BITS - offset:
            raise self._ctx.refuse("looking ahead this far", "look at fewer bits")
        begin, end = offset // 8, (offset + width + 7) // 8
        self._need(constant(end))
        position = arithmetic.add(variable(var.POSITION), constant(begin))
        window = _packet_bytes(position, end - begin)
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
        if node["type"] == "stack_field":
            stack, field = node["value"]
            first = self._program.stacks[stack][0]
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
    "set": ParserLowering._set,
    "verify": ParserLowering._verify,
    "advance": ParserLowering._advance,
    "primitive": ParserLowering._primitive,
}
