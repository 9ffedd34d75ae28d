# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Translate BMv2 JSON expressions to Python."""

from collections.abc import Callable, Sequence

from switchgnn.softswitch.codegen import arithmetic
from switchgnn.softswitch.codegen.arithmetic import Term, constant, truth
from switchgnn.softswitch.codegen.layout import FieldLayout, GlobalNames, Slot, SourceWriter
from switchgnn.softswitch.errors import UnsupportedProgramError
from switchgnn.softswitch.program import MOST_BITS, Json

_BINARY: dict[str, Callable[[Term, Term], Term]] = {
    "+": arithmetic.add,
    "-": arithmetic.subtract,
    "*": arithmetic.multiply,
    "/": arithmetic.divide,
    "%": arithmetic.modulo,
    "<<": arithmetic.shift_left,
    ">>": arithmetic.shift_right,
    "&": arithmetic.bit_and,
    "|": arithmetic.bit_or,
    "^": arithmetic.bit_xor,
}
_COMPARE = frozenset(("==", "!=", "<", "<=", ">", ">="))


class ExpressionCompiler:
    """Compiles expressions of one function and remembers which variables they read."""

    def __init__(self, layout: FieldLayout, where: str, reads: set[str]) -> None:
        self.layout = layout
        self.where = where
        self.reads = reads
        self.parameters: Sequence[Term] = ()

    def at(self, where: str, parameters: Sequence[Term] = ()) -> "ExpressionCompiler":
        """Return this compiler inside another object, with that object's action parameters."""
        other = ExpressionCompiler(self.layout, where, self.reads)
        other.parameters = parameters
        return other

    def refuse(self, feature: str, hint: str) -> UnsupportedProgramError:
        """Return the error that names a feature and the object that uses it."""
        return UnsupportedProgramError(feature, self.where, hint)

    def field(self, header: str, name: str) -> Term:
        """Return the value of a field."""
        return self.load(self.layout.slot(header, name, self.where))

    def load(self, slot: Slot) -> Term:
        """Return the value of a slot."""
        self.reads.add(slot.variable)
        if slot.variable == "1":
            return constant(1)
        return Term(slot.variable, slot.low, slot.high, atomic=True)

    def valid(self, header: str) -> Term:
        """Return the validity of a header as a condition."""
        variable = self.layout.valid(header)
        self.reads.add(variable)
        return truth(variable, atomic=True)

    def value(self, node: Json) -> Term:
        """Return the value of a type-value object."""
        kind, content = node["type"], node.get("value")
        if kind == "expression":
            return self.value(content) if "type" in content else self._operation(content)
        if kind == "field":
            return self.field(content[0], content[1])
        if kind == "hexstr":
            return constant(int(content, 16))
        if kind == "bool":
            return truth("True" if content else "False", atomic=True)
        if kind in {"local", "runtime_data"}:
            parameter: Term = self.parameters[content]
            return parameter
        if kind in {"stack_field", "union_stack_field"}:
            return self.last_element_field(content)
        raise self.refuse(f"values of type {kind}", "use fields, constants and action parameters")

    def last_element_field(self, content: Sequence[str]) -> Term:
        """Return a field of the last element of a stack; of unions: of a member of it."""
        stack, *member, field = content
        last = f"{self.next_index(stack)} - 1"
        return self._pick(
            [self.field(name, field) for name in self.headers_in(stack, *member)], last
        )

    def headers_in(self, stack: str, member: str | None = None) -> list[str]:
        """Return the headers in a stack; of unions: those of a member of each."""
        program = self.layout.program
        if member is None:
            return list(program.stacks[stack].elements)
        unions = program.union_stacks[stack].elements
        return [program.unions[name].members[member] for name in unions]

    def next_index(self, stack: str) -> str:
        """Return the variable that counts the pushed elements of a stack."""
        variable = self.layout.next_index(stack)
        self.reads.add(variable)
        return variable

    def _pick(self, terms: Sequence[Term], index: str) -> Term:
        values = ", ".join(term.text for term in terms)
        # A tuple index from the end wraps, so an index outside the stack reads as zero.
        text = f"({values},)[_i] if 0 <= (_i := {index}) < {len(terms)} else 0"
        return Term(text, min(terms[0].low or 0, 0), terms[0].high)

    def _operation(self, node: Json) -> Term:
        operator = node["op"]
        if operator in _BINARY and node["left"] is not None:
            left, right = self.value(node["left"]), self.value(node["right"])
            if operator in {"<<", ">>"} and (right.low is None or right.low < 0):
                raise self.refuse("a shift by a number that may be negative", "shift by a bit<>")
            return _BINARY[operator](left, right)
        if operator in _COMPARE:
            return self._comparison(operator, node["left"], node["right"])
        handler = _OTHER.get(operator)
        if handler is None:
            raise self.refuse(f"operator '{operator}'", "rewrite the expression without it")
        return handler(self, node)

    def _comparison(self, operator: str, left: Json, right: Json) -> Term:
        # Headers and unions are compared as a whole.
        kind = left["type"]
        if kind in {"header", "header_union"}:
            if kind == "header":
                condition = self._equal_headers(self.header(left), self.header(right))
            else:
                condition = self._equal_unions(self.union(left), self.union(right))
            return truth(condition if operator == "==" else f"not ({condition})")
        return truth(f"{self.value(left).inner} {operator} {self.value(right).inner}")

    def header(self, node: Json) -> str:
        """Return the name of the header that a node denotes."""
        names, index = self._header_alternatives(node)
        known = index.constant
        if known is None or not 0 <= known < len(names):
            raise self.refuse("a header stack indexed by a variable", "use a constant index here")
        return names[known]

    def union(self, node: Json) -> str:
        """Return the name of the union that a node denotes."""
        inner = _innermost(node)
        if inner.get("type") != "header_union":
            kind = inner.get("op", inner.get("type"))
            raise self.refuse(f"a {kind} in place of a header union", "name the union")
        return str(inner["value"])

    def _header_alternatives(self, node: Json) -> tuple[list[str], Term]:
        """Return the headers that a node can denote, and the index that chooses one."""
        inner = _innermost(node)
        if inner.get("type") == "header":
            return [str(inner["value"])], constant(0)
        operator = inner.get("op", inner.get("type"))
        if operator in {"dereference_header_stack", "dereference_stack"}:
            stack = inner["left"]["value"]
            return self.headers_in(stack), self.value(inner["right"])
        raise self.refuse(f"a {operator} in place of a header", "name the header")

    def field_alternatives(self, node: Json) -> tuple[list[Slot], Term]:
        """Return the slots that an ``access_field`` can mean, and the index that chooses one."""
        headers, index = self._header_alternatives(node["left"])
        return [self.layout.fields(name)[node["right"]] for name in headers], index

    def _access_field(self, node: Json) -> Term:
        slots, index = self.field_alternatives(node)
        known = index.constant
        if known is not None and 0 <= known < len(slots):
            return self.load(slots[known])
        return self._pick([self.load(slot) for slot in slots], index.text)

    def _equal_headers(self, left: str, right: str) -> str:
        if self._type_of(left) != self._type_of(right):
            raise self.refuse("comparing headers of different types", "compare their fields")
        parts = [self.valid(left).text, self.valid(right).text]
        for one, other in zip(self.layout.fields(left), self.layout.fields(right), strict=True):
            parts.append(f"{self.load(one).text} == {self.load(other).text}")
        return " and ".join(parts)

    def _equal_unions(self, left: str, right: str) -> str:
        unions = self.layout.program.unions
        pairs = zip(unions[left].members.values(), unions[right].members.values(), strict=True)
        return (
            " or ".join(f"({self._equal_headers(one, other)})" for one, other in pairs) or "False"
        )

    def _type_of(self, header: str) -> str:
        return self.layout.program.headers[header].type_name

    def _logic(self, node: Json) -> Term:
        left, right = self.value(node["left"]), self.value(node["right"])
        return truth(f"{left.inner} {node['op']} {right.inner}")

    def _negation(self, node: Json) -> Term:
        return truth(f"not {self.value(node['right']).inner}")

    def _valid_operation(self, node: Json) -> Term:
        headers, index = self._header_alternatives(node["right"])
        bits = [self.valid(name) for name in headers]
        known = index.constant
        if known is not None and 0 <= known < len(bits):
            return bits[known]
        return truth(self._pick(bits, index.text).text)

    def _valid_union(self, node: Json) -> Term:
        members = self.layout.program.unions[self.union(node["right"])].members.values()
        return truth(" or ".join(self.valid(name).text for name in members) or "False")

    def _complement(self, node: Json) -> Term:
        return arithmetic.bit_not(self.value(node["right"]))

    def _negative(self, node: Json) -> Term:
        return arithmetic.subtract(constant(0), self.value(node["right"]))

    def _two_complement(self, node: Json) -> Term:
        return arithmetic.wrap_signed(self.value(node["left"]), self._width(node))

    def _saturate_signed(self, node: Json) -> Term:
        limit = 1 << (self._width(node) - 1)
        return arithmetic.clamp(self.value(node["left"]), -limit, limit - 1)

    def _saturate_unsigned(self, node: Json) -> Term:
        return arithmetic.clamp(self.value(node["left"]), 0, (1 << self._width(node)) - 1)

    def _width(self, node: Json) -> int:
        width = self.value(node["right"]).constant
        if width is None or not 0 < width <= MOST_BITS:
            raise self.refuse(f"'{node['op']}' with such a width", "use a constant width")
        return width

    def _choice(self, node: Json) -> Term:
        condition = self.value(node["cond"])
        return arithmetic.if_else(condition, self.value(node["left"]), self.value(node["right"]))

    def _data_to_bool(self, node: Json) -> Term:
        term = self.value(node["right"])
        if term.within(0, 1):
            return truth(term.text, atomic=term.atomic)
        return truth(f"{term.inner} != 0")

    def _bool_to_data(self, node: Json) -> Term:
        return self.value(node["right"])

    def _last_index(self, node: Json) -> Term:
        stack = self._stack_name(node["right"])
        size = self.layout.program.stack_size(stack)
        return Term(f"{self.next_index(stack)} - 1", -1, size - 1)

    def _stack_size(self, node: Json) -> Term:
        stack = self._stack_name(node["right"])
        size = self.layout.program.stack_size(stack)
        return Term(self.next_index(stack), 0, size, atomic=True)

    def _stack_name(self, node: Json) -> str:
        return str(node["value"])


def _innermost(node: Json) -> Json:
    """Return the node inside nested expressions."""
    while node.get("type") == "expression":
        node = node["value"]
    return node


_OTHER: dict[str, Callable[[ExpressionCompiler, Json], Term]] = {
    "and": ExpressionCompiler._logic,
    "or": ExpressionCompiler._logic,
    "not": ExpressionCompiler._negation,
    "valid": ExpressionCompiler._valid_operation,
    "valid_union": ExpressionCompiler._valid_union,
    "~": ExpressionCompiler._complement,
    "-": ExpressionCompiler._negative,
    "two_comp_mod": ExpressionCompiler._two_complement,
    "sat_cast": ExpressionCompiler._saturate_signed,
    "usat_cast": ExpressionCompiler._saturate_unsigned,
    "?": ExpressionCompiler._choice,
    "d2b": ExpressionCompiler._data_to_bool,
    "b2d": ExpressionCompiler._bool_to_data,
    "access_field": ExpressionCompiler._access_field,
    "last_stack_index": ExpressionCompiler._last_index,
    "size_stack": ExpressionCompiler._stack_size,
}


INGRESS = "ingress"
EGRESS = "egress"


class FunctionContext:
    """One function that is being generated: its lines and the variables it reads and writes."""

    def __init__(self, layout: FieldLayout, names: GlobalNames, stage: str) -> None:
        self.layout = layout
        self.names = names
        self.stage = stage
        self.writer = SourceWriter(1)
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        self.expressions = ExpressionCompiler(layout, stage, self.reads)
        self.uses_exit = False
        self.uses_truncate = False
        self.uses_clone = False

    def line(self, text: str) -> None:
        """Append one line."""
        self.writer.line(text)

    def at(self, where: str, parameters: Sequence[Term] = ()) -> None:
        """Set the object whose code follows, and its action parameters."""
        self.expressions = self.expressions.at(where, parameters)

    def refuse(self, feature: str, hint: str) -> UnsupportedProgramError:
        """Return the error that names a feature in the current object."""
        return self.expressions.refuse(feature, hint)

    def term(self, node: Json) -> Term:
        """Return the value of a type-value object."""
        return self.expressions.value(node)

    def set_valid(self, header: str) -> None:
        """Mark a header valid, and the other members of its union invalid."""
        self.set_variable(self.layout.valid(header), "1")
        for other in self.layout.others(header):
            self.set_variable(other, "0")

    def copy_slot(self, slot: Slot, origin: Slot) -> None:
        """Assign one field to another, with the length of a ``varbit``."""
        if slot.length or origin.length:
            if not (slot.length and origin.length) or slot.width != origin.width:
                raise self.refuse(
                    "assigning a varbit to a field of another type", "assign to one as long"
                )
            self.reads.add(origin.length)
            self.set_variable(slot.length, origin.length)
        self.set_slot(slot, self.expressions.load(origin))

    def set_slot(self, slot: Slot, term: Term) -> None:
        """Assign a value to a field, reduced to the field's width."""
        wrap = arithmetic.wrap_signed if slot.signed else arithmetic.wrap_unsigned
        self.writes.add(slot.variable)
        self.line(f"{slot.variable} = {wrap(term, slot.width).text}")

    def set_variable(self, variable: str, text: str) -> None:
        """Assign to a validity bit or stack index."""
        self.writes.add(variable)
        self.line(f"{variable} = {text}")

    def set_standard(self, name: str, term: Term) -> None:
        """Assign to a standard metadata field if the program has it."""
        slot = self.layout.standard(name)
        if slot is not None:
            self.set_slot(slot, term)
