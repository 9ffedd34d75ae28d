"""The variables of fields, expressions of BMv2's JSON, and the statements of one function."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from switchgnn.softswitch.base import ir
from switchgnn.softswitch.base.errors import UnsupportedProgramError
from switchgnn.softswitch.base.program import MOST_BITS, FieldRef, HeaderSpec, Json, LoadedProgram
from switchgnn.softswitch.lowering import arithmetic
from switchgnn.softswitch.lowering.arithmetic import all_of, any_of, compare, constant, variable

INGRESS = "ingress"
EGRESS = "egress"

_BINARY: dict[str, Callable[[ir.Expr, ir.Expr], ir.Expr]] = {
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


@dataclass(frozen=True)
class Slot:
    """A field."""

    variable: ir.Variable
    width: int  # bits
    signed: bool


class FieldLayout:
    """The variables of one program. Its names never become names of variables."""

    def __init__(self, program: LoadedProgram) -> None:
        self.program = program
        self.slots: dict[FieldRef, Slot] = {}
        # By header, unless it is metadata: whether it is valid.
        self.valid_bit: dict[str, ir.Variable] = {}
        self.next_index: dict[str, ir.Variable] = {}
        for number, header in enumerate(program.headers.values()):
            self._add_header(number, header)
        for number, (name, elements) in enumerate(program.stacks.items()):
            self.next_index[name] = ir.Variable(f"next{number}", 0, len(elements))
        held = (slot.variable for slot in self.slots.values())
        packet = (*held, *self.valid_bit.values(), *self.next_index.values())
        self.names = frozenset(each.name for each in packet)
        self.metadata_variables = frozenset(
            slot.variable
            for (header, _), slot in self.slots.items()
            if program.headers[header].metadata
        )

    def _add_header(self, number: int, header: HeaderSpec) -> None:
        if not header.metadata:
            self.valid_bit[header.name] = ir.Variable(f"ok{number}", 0, 1)
        for index, field in enumerate(header.fields):
            sign = 1 << (field.width - 1)
            low, high = (-sign, sign - 1) if field.signed else (0, 2 * sign - 1)
            held = ir.Variable(f"h{number}_{index}", low, high)
            self.slots[header.name, field.name] = Slot(held, field.width, field.signed)

    def slot(self, header: str, field: str, where: str) -> Slot:
        """Return the slot of ``header.field``; ``$valid$`` is the validity bit."""
        if field == "$valid$" and header in self.valid_bit:
            return Slot(self.valid_bit[header], 1, False)
        try:
            return self.slots[header, field]
        except KeyError:
            raise UnsupportedProgramError(
                f"field {header}.{field}", where, "declare it in the header's type"
            ) from None

    def standard(self, name: str) -> Slot | None:
        """Return the slot of a standard metadata field, or None when the program has none."""
        reference = self.program.standard_field(name)
        slot = None if reference is None else self.slots[reference]
        if slot is not None and slot.signed:
            raise UnsupportedProgramError(
                "a signed field for a number of the switch", name, "declare it as bit<>"
            )
        return slot

    def valid(self, header: str) -> ir.Expr:
        """Return whether a header is valid; metadata always is."""
        bit = self.valid_bit.get(header)
        return constant(1) if bit is None else variable(bit)

    def fields(self, header: str) -> tuple[Slot, ...]:
        """Return the slots of a header in wire order."""
        return tuple(
            self.slots[header, field.name] for field in self.program.headers[header].fields
        )


class FunctionContext:
    """One function: its statements so far, and the object of the program that it is at."""

    def __init__(self, layout: FieldLayout, stage: str) -> None:
        self.layout = layout
        self.stage = stage
        self.where = stage  # the object, for errors
        self.parameters: Sequence[ir.Expr] = ()  # the values of that object's action parameters
        self._open: list[list[ir.Statement]] = [[]]
        self._named: set[ir.Variable | None] = set()

    @property
    def statements(self) -> ir.Block:
        """The statements of the function."""
        return tuple(self._open[0])

    def add(self, *statements: ir.Statement) -> None:
        """Append statements to the current block."""
        self._open[-1] += statements

    @contextmanager
    def block(self) -> Iterator[list[ir.Statement]]:
        """Collect statements in a block, for a statement that has it."""
        self._open.append([])
        yield self._open[-1]
        self._open.pop()

    @contextmanager
    def when(self, condition: ir.Expr) -> Iterator[None]:
        """Append what follows under a condition."""
        with self.block() as then:
            yield
        if condition.constant:
            self.add(*then)
        elif condition.constant is None:
            self.add(ir.either(condition, tuple(then)))

    def let(self, value: ir.Expr) -> ir.Expr:
        """Name a value: it is cheap to use often, and does not change with what it was made of."""
        if value.constant is not None or value.variable in self._named:
            return value
        named = ir.Variable(f"t{len(self._named)}", value.low, value.high)
        self._named.add(named)
        self.add(ir.Let(named, value))
        return ir.Expr("var", value.low, value.high, ones=value.ones, variable=named)

    def refuse(self, feature: str, hint: str) -> UnsupportedProgramError:
        """Return the error that names a feature and the object that uses it."""
        return UnsupportedProgramError(feature, self.where, hint)

    def set(self, of: ir.Variable, value: ir.Expr) -> None:
        """Assign to a variable."""
        self.add(ir.Assign(of, value))

    def set_slot(self, slot: Slot, value: ir.Expr) -> None:
        """Assign a value to a field, reduced to the field's width."""
        self.set(slot.variable, arithmetic.wrap(value, slot.width, signed=slot.signed))

    def set_standard(self, name: str, value: ir.Expr) -> None:
        """Assign to a standard metadata field if the program has it."""
        slot = self.layout.standard(name)
        if slot is not None:
            self.set_slot(slot, value)

    def set_valid(self, header: str, valid: int = 1) -> None:
        """Mark a header valid, or invalid."""
        self.set(self.layout.valid_bit[header], constant(valid))

    def slot(self, header: str, field: str) -> Slot:
        """Return the slot of a field."""
        return self.layout.slot(header, field, self.where)

    def field(self, header: str, name: str) -> ir.Expr:
        """Return the value of a field; ``$valid$`` is the validity of its header."""
        if name == "$valid$":
            return self.layout.valid(header)
        return variable(self.slot(header, name).variable)

    def value(self, node: Json) -> ir.Expr:
        """Return the value of a type-value object."""
        kind, content = node["type"], node.get("value")
        if kind == "expression":
            return self.value(content) if "type" in content else self._operation(content)
        if kind == "field":
            return self.field(content[0], content[1])
        if kind == "hexstr":
            return constant(int(content, 16))
        if kind == "bool":
            return constant(int(bool(content)))
        if kind in {"local", "runtime_data"}:
            parameter: ir.Expr = self.parameters[content]
            return parameter
        if kind == "stack_field":
            # Of the last element of the stack.
            stack, field = content
            last = arithmetic.subtract(variable(self.layout.next_index[stack]), constant(1))
            names = self.layout.program.stacks[stack]
            return arithmetic.pick([self.field(name, field) for name in names], last)
        raise self.refuse(f"values of type {kind}", "use fields, constants and action parameters")

    def _operation(self, node: Json) -> ir.Expr:
        operator = node["op"]
        if operator in _BINARY and node["left"] is not None:
            left, right = self.value(node["left"]), self.value(node["right"])
            if operator in {"<<", ">>"} and right.low < 0:
                raise self.refuse("a shift by a number that may be negative", "shift by a bit<>")
            if operator in {"/", "%"} and min(left.low, right.low) < 0:
                raise self.refuse("dividing a number that may be negative", "divide a bit<>")
            return _BINARY[operator](left, right)
        if operator in _COMPARE:
            return self._comparison(operator, node["left"], node["right"])
        if operator in _UNARY:
            return _UNARY[operator](self.value(node["right"]))
        handler = _OTHER.get(operator)
        if handler is None:
            raise self.refuse(f"operator '{operator}'", "rewrite the expression without it")
        return handler(self, node)

    def _comparison(self, operator: str, left: Json, right: Json) -> ir.Expr:
        # Headers are compared as a whole.
        if left["type"] != "header":
            return compare(operator, self.value(left), self.value(right))
        one, other = self.header(left), self.header(right)
        headers = self.layout.program.headers
        if headers[one].type_name != headers[other].type_name:
            raise self.refuse("comparing headers of different types", "compare their fields")
        fields = zip(self.layout.fields(one), self.layout.fields(other), strict=True)
        same = [compare("==", variable(a.variable), variable(b.variable)) for a, b in fields]
        equal = all_of([self.layout.valid(one), self.layout.valid(other), *same])
        return equal if operator == "==" else arithmetic.negation(equal)

    def header(self, node: Json) -> str:
        """Return the name of the header that a node denotes."""
        names, index = self._header_alternatives(node)
        known = index.constant
        if known is None or not 0 <= known < len(names):
            raise self.refuse("a header stack indexed by a variable", "use a constant index here")
        return names[known]

    def _header_alternatives(self, node: Json) -> tuple[Sequence[str], ir.Expr]:
        """Return the headers that a node can denote, and the index that chooses one."""
        inner = node
        while inner.get("type") == "expression":
            inner = inner["value"]
        if inner.get("type") == "header":
            return [str(inner["value"])], constant(0)
        operator = inner.get("op", inner.get("type"))
        if operator in {"dereference_header_stack", "dereference_stack"}:
            stack = self.layout.program.stacks[inner["left"]["value"]]
            return stack, self.value(inner["right"])
        raise self.refuse(f"a {operator} in place of a header", "name the header")

    def field_alternatives(self, node: Json) -> tuple[list[Slot], ir.Expr]:
        """Return the slots that an ``access_field`` can mean, and the index that chooses one."""
        headers, index = self._header_alternatives(node["left"])
        return [self.layout.fields(name)[node["right"]] for name in headers], index

    def _access_field(self, node: Json) -> ir.Expr:
        slots, index = self.field_alternatives(node)
        return self._chosen([variable(slot.variable) for slot in slots], index)

    def _chosen(self, values: Sequence[ir.Expr], index: ir.Expr) -> ir.Expr:
        known = index.constant
        if known is not None and 0 <= known < len(values):
            return values[known]
        return arithmetic.pick(values, self.let(index))

    def _valid_operation(self, node: Json) -> ir.Expr:
        headers, index = self._header_alternatives(node["right"])
        return self._chosen([self.layout.valid(name) for name in headers], index)

    def _saturated(self, node: Json, *, signed: bool) -> ir.Expr:
        value, width = self.let(self.value(node["left"])), self._width(node)
        lowest = -1 << (width - 1) if signed else 0
        return arithmetic.clamp(value, lowest, lowest + (1 << width) - 1)

    def _width(self, node: Json) -> int:
        width = self.value(node["right"]).constant
        if width is None or not 0 < width <= MOST_BITS:
            raise self.refuse(f"'{node['op']}' with such a width", "use a constant width")
        return width

    def _stack_size(self, node: Json) -> ir.Expr:
        return variable(self.layout.next_index[str(node["right"]["value"])])


# Operators of one operand, which is on the right.
_UNARY: dict[str, Callable[[ir.Expr], ir.Expr]] = {
    "not": arithmetic.negation,
    "~": arithmetic.bit_not,
    "-": lambda value: arithmetic.subtract(constant(0), value),
    "d2b": lambda value: value if value.within(0, 1) else compare("!=", value, constant(0)),
    "b2d": lambda value: value,
}
_OTHER: dict[str, Callable[[FunctionContext, Json], ir.Expr]] = {
    "and": lambda ctx, node: all_of([ctx.value(node["left"]), ctx.value(node["right"])]),
    "or": lambda ctx, node: any_of([ctx.value(node["left"]), ctx.value(node["right"])]),
    "?": lambda ctx, node: arithmetic.if_else(
        *(ctx.value(node[each]) for each in ("cond", "left", "right"))
    ),
    "two_comp_mod": lambda ctx, node: arithmetic.wrap(
        ctx.value(node["left"]), ctx._width(node), signed=True
    ),
    "sat_cast": partial(FunctionContext._saturated, signed=True),
    "usat_cast": partial(FunctionContext._saturated, signed=False),
    "valid": FunctionContext._valid_operation,
    "access_field": FunctionContext._access_field,
    "size_stack": FunctionContext._stack_size,
    "last_stack_index": lambda ctx, node: arithmetic.subtract(ctx._stack_size(node), constant(1)),
}
