"""Lower the primitives of BMv2 actions."""

from collections.abc import Callable
from functools import partial

from switchgnn.softswitch.base import ir
from switchgnn.softswitch.base.errors import MalformedProgramError
from switchgnn.softswitch.base.hashing import ALGORITHMS
from switchgnn.softswitch.base.program import DROP_PORT, MOST_BITS, Json, Primitive
from switchgnn.softswitch.lowering import arithmetic
from switchgnn.softswitch.lowering import variables as var
from switchgnn.softswitch.lowering.arithmetic import all_of, compare, constant, variable
from switchgnn.softswitch.lowering.expressions import EGRESS, INGRESS, FunctionContext, Slot

Parameters = tuple[Json, ...]
# The bits of a result, where they are not 16.
_DIGEST_BITS = {"crc32": 32, "identity": 64}
_HINT = "leave the call out or express it with registers, tables and assignments"
_STANDARD = "standard_metadata"
_CLONE_SESSION_MASK = 0x7FFF


def _add_to_length(ctx: FunctionContext, header: str, sign: int) -> None:
    size = constant(sign * (ctx.layout.program.headers[header].width // 8))
    ctx.set(var.LENGTH, arithmetic.add(variable(var.LENGTH), size))


def _copy_header(ctx: FunctionContext, target: str, source: str) -> None:
    with ctx.block() as then:
        if not ctx.layout.program.headers[target].metadata:
            ctx.set_valid(target)
        for slot, origin in zip(ctx.layout.fields(target), ctx.layout.fields(source), strict=True):
            ctx.set_slot(slot, variable(origin.variable))
    if ctx.layout.program.headers[target].metadata:
        ctx.add(*then)
    else:
        invalid = ir.Assign(ctx.layout.valid_bit[target], constant(0))
        ctx.add(ir.either(ctx.layout.valid(source), tuple(then), (invalid,)))


def _copy_stack(ctx: FunctionContext, parameters: Parameters) -> None:
    target, source = (node["value"] for node in parameters[:2])
    stacks = ctx.layout.program.stacks
    for one, other in zip(stacks[target], stacks[source], strict=True):
        _copy_header(ctx, one, other)
    ctx.set(ctx.layout.next_index[target], variable(ctx.layout.next_index[source]))


def _move_stack(ctx: FunctionContext, parameters: Parameters, *, op: str) -> None:
    """Move the elements of a stack: push makes the first ones invalid, pop the last ones."""
    stack, count = parameters[0]["value"], _constant(ctx, parameters[1], op)
    elements = ctx.layout.program.stacks[stack]
    ordered = elements if op == "pop" else elements[::-1]
    kept = max(len(elements) - count, 0)
    for index in range(kept):
        _copy_header(ctx, ordered[index], ordered[index + count])
    for name in elements[kept:] if op == "pop" else elements[:count]:
        ctx.set_valid(name, 0)
    following = ctx.layout.next_index[stack]
    moved = arithmetic.add(variable(following), constant(-count if op == "pop" else count))
    ctx.set(following, arithmetic.clamp(moved, following.low, following.high))


def lower_digest(ctx: FunctionContext, name: str) -> ir.Expr:
    """Compute a calculation and return its result."""
    calculation = ctx.layout.program.calculations[name]
    algorithm = calculation.algorithm
    if algorithm not in ALGORITHMS:
        raise ctx.refuse(
            f"hash algorithm {algorithm}", f"use one of {', '.join(sorted(ALGORITHMS))}"
        )
    pieces = [piece for item in calculation.inputs for piece in _pieces(ctx, item)]
    payload = any(item["type"] == "payload" for item in calculation.inputs)
    ctx.add(ir.Digest(algorithm, tuple(pieces), payload))
    most = (1 << _DIGEST_BITS.get(algorithm, 16)) - 1
    return ctx.let(ir.Expr("digest", 0, most, ones=most))


def _pieces(ctx: FunctionContext, item: Json) -> list[ir.Piece]:
    kind, content = item["type"], item.get("value")
    if kind == "payload":
        return []
    if kind == "hexstr":
        width = item["bitwidth"]
        if not 0 < width <= MOST_BITS:
            raise ctx.refuse(f"a constant of {width} bits", f"use at most {MOST_BITS}")
        value = constant(int(content, 16) & ((1 << width) - 1))
        return [ir.Piece(value, width, constant(1))]
    if kind == "header":
        return [_piece(ctx, content, slot) for slot in ctx.layout.fields(content)]
    if kind == "field":
        return [_piece(ctx, content[0], ctx.slot(content[0], content[1]))]
    raise ctx.refuse(f"a {kind} in a checksum or hash", "use fields and constants")


def _piece(ctx: FunctionContext, header: str, slot: Slot) -> ir.Piece:
    value = arithmetic.wrap(variable(slot.variable), slot.width)
    return ir.Piece(value, slot.width, ctx.layout.valid(header))


def lower_primitive(ctx: FunctionContext, primitive: Primitive) -> None:
    """Append the statements of one primitive."""
    handler = _HANDLERS.get(primitive.op)
    if handler is None:
        raise ctx.refuse(f"primitive '{primitive.op}'", _HINT)
    handler(ctx, primitive.parameters)


def _assign(ctx: FunctionContext, parameters: Parameters) -> None:
    target = parameters[0]
    while target["type"] == "expression":
        target = target["value"]
        if "op" in target:
            _assign_element(ctx, target, ctx.value(parameters[1]))
            return
    ctx.set_slot(_slot(ctx, target), ctx.value(parameters[1]))


def _assign_element(ctx: FunctionContext, target: Json, value: ir.Expr) -> None:
    if target["op"] != "access_field":
        raise ctx.refuse(f"assigning to '{target['op']}'", "assign to a field")
    slots, index = ctx.field_alternatives(target)
    known = index.constant
    if known is not None and 0 <= known < len(slots):
        ctx.set_slot(slots[known], value)
        return
    value, index = ctx.let(value), ctx.let(index)
    for number, slot in enumerate(slots):
        with ctx.when(compare("==", index, constant(number))):
            ctx.set_slot(slot, value)


def _slot(ctx: FunctionContext, node: Json) -> Slot:
    if node["type"] != "field":
        raise ctx.refuse(f"assigning to a {node['type']}", "assign to a field")
    header, field = node["value"]
    if field == "$valid$":
        raise ctx.refuse("assigning to a validity bit", "call setValid or setInvalid")
    return ctx.slot(header, field)


def _add_header(ctx: FunctionContext, parameters: Parameters) -> None:
    name = ctx.header(parameters[0])
    with ctx.when(arithmetic.negation(ctx.layout.valid(name))):
        for slot in ctx.layout.fields(name):
            ctx.set(slot.variable, constant(0))
        ctx.set_valid(name)
        _add_to_length(ctx, name, 1)


def _remove_header(ctx: FunctionContext, parameters: Parameters) -> None:
    name = ctx.header(parameters[0])
    with ctx.when(ctx.layout.valid(name)):
        ctx.set_valid(name, 0)
        _add_to_length(ctx, name, -1)


def _constant(ctx: FunctionContext, node: Json, op: str) -> int:
    value = ctx.value(node).constant
    if value is None:
        raise ctx.refuse(f"'{op}' with a variable argument", "use a constant")
    return value


def _mark_to_drop(ctx: FunctionContext, parameters: Parameters) -> None:
    # The given header may be a copy of the standard metadata, copied back by the action.
    header = parameters[0]["value"]
    for alias, name, value in (
        ("standard_metadata.egress_spec", "egress_spec", constant(DROP_PORT)),
        ("intrinsic_metadata.mcast_grp", "mcast_grp", constant(0)),
    ):
        if header == _STANDARD:
            ctx.set_standard(alias, value)
        elif (header, name) in ctx.layout.slots:
            ctx.set_slot(ctx.slot(header, name), value)


def _inside(index: ir.Expr, size: int) -> ir.Expr:
    if index.within(0, size - 1):
        return constant(1)
    lower = [compare(">=", index, constant(0))] if index.low < 0 else []
    return all_of([*lower, compare("<", index, constant(size))])


def _register_read(ctx: FunctionContext, parameters: Parameters) -> None:
    array = ctx.layout.program.registers[parameters[1]["value"]]
    index = ctx.let(ctx.value(parameters[2]))
    most = (1 << array.width) - 1
    # Outside the array the target keeps its value.
    with ctx.when(_inside(index, array.size)):
        cell = ir.Expr("cell", 0, most, (index,), most, name=array.name)
        ctx.set_slot(_slot(ctx, parameters[0]), cell)


def _register_write(ctx: FunctionContext, parameters: Parameters) -> None:
    array = ctx.layout.program.registers[parameters[0]["value"]]
    index, value = ctx.let(ctx.value(parameters[1])), ctx.value(parameters[2])
    with ctx.when(_inside(index, array.size)):
        ctx.add(ir.WriteCell(array.name, index, arithmetic.wrap(value, array.width)))


def _count(ctx: FunctionContext, parameters: Parameters) -> None:
    array = ctx.layout.program.counters[parameters[0]["value"]]
    index = ctx.let(ctx.value(parameters[1]))
    with ctx.when(_inside(index, array.size)):
        ctx.add(ir.Count(array.name, index))


def _hash(ctx: FunctionContext, parameters: Parameters) -> None:
    base, size = ctx.let(ctx.value(parameters[1])), ctx.let(ctx.value(parameters[3]))
    if size.low < 0:
        raise ctx.refuse("hashing into a range that may be negative", "give a bit<> as its size")
    digest = lower_digest(ctx, parameters[2]["value"])
    ctx.set_slot(_slot(ctx, parameters[0]), arithmetic.add(arithmetic.modulo(digest, size), base))


def _random(ctx: FunctionContext, parameters: Parameters) -> None:
    low, high = (ctx.let(ctx.value(node)) for node in parameters[1:3])
    drawn = ir.Expr("random", min(low.low, high.low), high.high, (low, high))
    with ctx.when(compare("<=", low, high)):
        ctx.set_slot(_slot(ctx, parameters[0]), drawn)


def _clone(ctx: FunctionContext, parameters: Parameters, *, stage: str) -> None:
    _only_in(ctx, stage, "clone")
    mask = constant(_CLONE_SESSION_MASK)
    ctx.set(var.CLONE_SESSION, arithmetic.bit_and(ctx.value(parameters[0]), mask))
    ctx.set(var.CLONE_LIST, _field_list(ctx, parameters[1]))


def _again(
    ctx: FunctionContext, parameters: Parameters, *, stage: str, call: str, which: ir.Variable
) -> None:
    _only_in(ctx, stage, call)
    ctx.set(which, _field_list(ctx, parameters[0]))


def _only_in(ctx: FunctionContext, stage: str, call: str) -> None:
    if ctx.stage != stage:
        raise ctx.refuse(f"this kind of {call} in {ctx.stage}", f"call it in the {stage} control")


def _field_list(ctx: FunctionContext, node: Json) -> ir.Expr:
    ident = _constant(ctx, node, "field list")
    if ident not in ctx.layout.program.field_lists:
        raise MalformedProgramError(f"Field list {ident}, used in {ctx.where}, is not declared.")
    return constant(ident)


def _truncate(ctx: FunctionContext, parameters: Parameters) -> None:
    longest = ctx.let(ctx.value(parameters[0]))
    with ctx.when(compare("<", longest, variable(var.KEPT_BYTES))):
        ctx.set(var.KEPT_BYTES, longest)


_HANDLERS: dict[str, Callable[[FunctionContext, Parameters], None]] = {
    "assign": _assign,
    "assign_header": lambda ctx, nodes: _copy_header(ctx, *map(ctx.header, nodes[:2])),
    "assign_header_stack": _copy_stack,
    "add_header": _add_header,
    "remove_header": _remove_header,
    "push": partial(_move_stack, op="push"),
    "pop": partial(_move_stack, op="pop"),
    "mark_to_drop": _mark_to_drop,
    "register_read": _register_read,
    "register_write": _register_write,
    "count": _count,
    "modify_field_with_hash_based_offset": _hash,
    "modify_field_rng_uniform": _random,
    "clone_ingress_pkt_to_egress": partial(_clone, stage=INGRESS),
    "clone_egress_pkt_to_egress": partial(_clone, stage=EGRESS),
    "resubmit": partial(_again, stage=INGRESS, call="resubmit", which=var.RESUBMIT),
    "recirculate": partial(_again, stage=EGRESS, call="recirculate", which=var.RECIRCULATE),
    "truncate": _truncate,
    "exit": lambda ctx, _: ctx.set(var.EXITED, constant(1)),
    **dict.fromkeys(("no_op", "log_msg"), lambda ctx, _: None),
}
