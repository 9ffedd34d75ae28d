# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Generate the parser as part of a function body."""

from collections.abc import Callable, Mapping

from switchgnn.softswitch.codegen import arithmetic
from switchgnn.softswitch.codegen.arithmetic import Term, truth
from switchgnn.softswitch.codegen.expressions import FunctionContext
from switchgnn.softswitch.codegen.layout import Slot
from switchgnn.softswitch.codegen.primitives import write_primitive
from switchgnn.softswitch.codegen.structure import Structurer, join_points, write_graph
from switchgnn.softswitch.codegen.wire import HeaderCodec
from switchgnn.softswitch.program import MOST_BITS, Json, ParserState, Primitive, Transition

Goto = Callable[[str | None], None]


class ParserWriter:
    """Writes one parser; leaves the error in ``perr`` and the parsed length in ``pos``."""

    def __init__(self, ctx: FunctionContext, codecs: Mapping[str, HeaderCodec]) -> None:
        self._ctx = ctx
        self._codecs = codecs
        self._parser = ctx.layout.program.parser
        self._errors = ctx.layout.program.errors

    def write(self) -> None:
        """Append the parser."""
        self._ctx.line(f"perr = {self._error('NoError')}")
        if self._parser.initial is None:
            return
        successors = {
            name: tuple({case.next_state: None for case in _cases(state)})
            for name, state in self._parser.states.items()
        }
        if join_points(successors) is None:
            self._write_loop()
        else:
            self._write_nested(successors)

    def _error(self, name: str) -> int:
        return self._errors.get(name, 0)

    def _write_nested(self, successors: Mapping[str, tuple[str | None, ...]]) -> None:
        def emit(name: str, structurer: Structurer) -> None:
            join = structurer.join(name)
            self._write_state(
                self._parser.states[name], lambda target: structurer.region(target, join)
            )

        # A loop that runs once: an error leaves it from any depth.
        with self._ctx.writer.block("while True:"):
            initial = self._parser.initial
            write_graph(self._ctx.writer, successors, initial, emit, where="parser", place="_s")
            self._ctx.line("break")

    def _write_loop(self) -> None:
        numbers = {name: number for number, name in enumerate(self._parser.states)}
        self._ctx.line(f"_s = {numbers[str(self._parser.initial)]}")

        def goto(target: str | None) -> None:
            self._ctx.line("break" if target is None else f"_s = {numbers[target]}; continue")

        with self._ctx.writer.block("while True:"):
            for name, number in numbers.items():
                with self._ctx.writer.block(f"if _s == {number}:"):
                    self._write_state(self._parser.states[name], goto)

    def _write_state(self, state: ParserState, goto: Goto) -> None:
        self._ctx.at(f"parser state '{state.name}'")
        for operation in state.operations:
            self._write_operation(operation)
        key = [self._key_part(node) for node in state.key]
        self._write_cases(_cases(state), key, goto)

    def _write_cases(self, cases: list[Transition], key: list[tuple[str, int]], goto: Goto) -> None:
        keyword = "if"
        for case in cases:
            condition = _condition(case, key)
            if condition == "True" and keyword == "if":
                goto(case.next_state)
                return
            header = "else:" if condition == "True" else f"{keyword} {condition}:"
            with self._ctx.writer.block(header):
                goto(case.next_state)
            keyword = "elif"

    def _write_operation(self, operation: Primitive) -> None:
        handler = _OPERATIONS.get(operation.op)
        if handler is None:
            raise self._ctx.refuse(
                f"parser operation '{operation.op}'", "extract headers of fixed width"
            )
        handler(self, operation.parameters)

    def _fail_unless(self, condition: str, error: str) -> None:
        with self._ctx.writer.block(f"if not ({condition}):"):
            self._ctx.line(f"perr = {self._error(error)}; break")

    def _extract(self, parameters: tuple[Json, ...]) -> None:
        target = parameters[0]
        length = parameters[1] if len(parameters) > 1 else None
        kind, name = target["type"], target["value"]
        if kind == "regular":
            self._extract_header(name, length)
        elif kind == "stack":
            self._extract_next(name, self._ctx.expressions.headers_in(name), length)
        elif kind == "union_stack":
            self._extract_next(name[0], self._ctx.expressions.headers_in(*name), length)
        else:
            raise self._ctx.refuse(f"extracting to a {kind}", "extract to a header or a stack")

    def _extract_header(self, name: str, length: Json | None) -> None:
        codec = self._codecs.get(name)
        if codec is None:
            # The first round, which finds the used fields, has no codecs.
            if length is not None:
                self._ctx.term(length)
        else:
            varying = codec.varying
            if (varying is None) != (length is None):
                raise self._ctx.refuse(
                    "extracting a length that does not fit the header",
                    "give one for headers with a varbit",
                )
            if varying is None:
                self._fail_unless(f"n - pos >= {codec.size}", "PacketTooShort")
            else:
                self._check_length(codec, varying.varbit, length)
            for line in codec.unpack_lines():
                self._ctx.line(line)
            whole = "" if varying is None else f" + {varying.varbit.length}"
            self._ctx.line(f"pos += {codec.size}{whole}")
            self._ctx.writes.update(codec.carried())
        self._ctx.set_valid(name)

    def _check_length(self, codec: HeaderCodec, varbit: Slot, bits: Json) -> None:
        """Check the length of a ``varbit`` against the packet and its maximum, and keep it."""
        # extract() takes a bit<32>; BMv2 has no length whose top bit is one.
        term = arithmetic.wrap_unsigned(self._ctx.term(bits), 32)
        self._ctx.line(f"_x = {term.text}")
        self._fail_unless(f"_x & {1 << 31 | 7} == 0", "ParserInvalidArgument")
        # BMv2 adds up the lengths of repeated extractions:
        # https://github.com/p4lang/behavioral-model/blob/main/src/bm_sim/parser.cpp
        self._ctx.reads.add(varbit.length)
        longer = f"{varbit.length} + (_x >> 3)"
        self._fail_unless(f"n - pos >= {codec.size} + {longer}", "PacketTooShort")
        self._fail_unless(f"{longer} <= {varbit.width // 8}", "HeaderTooShort")
        self._ctx.set_variable(varbit.length, "_x >> 3")

    def _extract_next(self, stack: str, elements: list[str], length: Json | None) -> None:
        following = self._ctx.expressions.next_index(stack)
        self._fail_unless(f"{following} < {len(elements)}", "StackOutOfBounds")
        for index, name in enumerate(elements):
            with self._ctx.writer.block(f"{'elif' if index else 'if'} {following} == {index}:"):
                self._extract_header(name, length)
        self._ctx.set_variable(following, f"{following} + 1")

    def _set(self, parameters: tuple[Json, ...]) -> None:
        target, source = parameters
        header, field = target["value"]
        slot = self._ctx.layout.slot(header, field, self._ctx.expressions.where)
        if slot.length:
            if source["type"] != "field":
                raise self._ctx.refuse("setting a varbit", "set it to another varbit")
            header, field = source["value"]
            origin = self._ctx.layout.slot(header, field, self._ctx.expressions.where)
            self._ctx.copy_slot(slot, origin)
        elif source["type"] == "lookahead":
            text, width = self._lookahead(source["value"])
            self._ctx.set_slot(slot, Term(text, 0, (1 << width) - 1))
        else:
            self._ctx.set_slot(slot, self._ctx.term(source))

    def _lookahead(self, place: Json) -> tuple[str, int]:
        offset, width = place
        if offset < 0 or not 0 < width <= MOST_BITS - offset:
            raise self._ctx.refuse("looking ahead this far", "look at fewer bits")
        end = (offset + width + 7) // 8
        self._fail_unless(f"n - pos >= {end}", "PacketTooShort")
        window = f'from_bytes(data[pos + {offset // 8}:pos + {end}], "big")'
        shift = end * 8 - offset - width
        mask = (1 << width) - 1
        return f"({window} >> {shift} & {mask})", width

    def _verify(self, parameters: tuple[Json, ...]) -> None:
        condition, error = (self._ctx.term(node) for node in parameters)
        with self._ctx.writer.block(f"if not {condition.inner}:"):
            self._ctx.line(f"perr = {error.text}; break")

    def _advance(self, parameters: tuple[Json, ...]) -> None:
        bits = self._ctx.term(parameters[0])
        self._ctx.line(f"_x = {bits.text}")
        self._fail_unless("_x & 7 == 0", "ParserInvalidArgument")
        self._fail_unless("n - pos >= _x >> 3", "PacketTooShort")
        self._ctx.line("pos += _x >> 3")

    def _primitive(self, parameters: tuple[Json, ...]) -> None:
        call = parameters[0]
        write_primitive(self._ctx, Primitive(call["op"], tuple(call["parameters"])))

    def _key_part(self, node: Json) -> tuple[str, int]:
        if node["type"] == "lookahead":
            text, width = self._lookahead(node["value"])
            variable = f"_k{len(self._ctx.writer.lines)}"
            self._ctx.line(f"{variable} = {text}")
            return variable, width
        if node["type"] == "field":
            header, field = node["value"]
            slot = self._ctx.layout.slot(header, field, self._ctx.expressions.where)
            return self._ctx.expressions.load(slot).text, _unsigned_width(self._ctx, slot)
        if node["type"] in {"stack_field", "union_stack_field"}:
            stack, *member, field = node["value"]
            first = self._ctx.expressions.headers_in(stack, *member)[0]
            width = self._ctx.layout.slot(first, field, self._ctx.expressions.where).width
            return self._ctx.term(node).inner, width
        raise self._ctx.refuse(f"selecting on a {node['type']}", "select on header fields")


def _unsigned_width(ctx: FunctionContext, slot: Slot) -> int:
    if slot.signed:
        raise ctx.refuse("selecting on a signed field", "cast it to bit<> first")
    return slot.width


def _cases(state: ParserState) -> list[Transition]:
    cases = list(state.transitions)
    if all(case.value is not None for case in cases):
        cases.append(Transition(None, None, None))
    return cases


def _condition(case: Transition, key: list[tuple[str, int]]) -> str:
    if case.value is None:
        return "True"
    parts = []
    position = 0
    for text, width in reversed(key):
        field_mask = (1 << width) - 1
        value = case.value >> position
        mask = field_mask if case.mask is None else case.mask >> position & field_mask
        position += (width + 7) // 8 * 8  # each part of the key is padded to whole bytes
        if mask == field_mask:
            parts.append(f"{text} == {value & field_mask}")
        elif mask:
            parts.append(f"{text} & {mask} == {value & mask}")
    return truth(" and ".join(reversed(parts)) or "True").text


_OPERATIONS: dict[str, Callable[[ParserWriter, tuple[Json, ...]], None]] = {
    "extract": ParserWriter._extract,
    "extract_VL": ParserWriter._extract,
    "set": ParserWriter._set,
    "verify": ParserWriter._verify,
    "advance": ParserWriter._advance,
    "primitive": ParserWriter._primitive,
}
