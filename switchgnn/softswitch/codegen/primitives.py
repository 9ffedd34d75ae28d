# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Generate the code of the primitives of BMv2 actions."""

from collections.abc import Callable

from switchgnn.softswitch.codegen import arithmetic
from switchgnn.softswitch.codegen.arithmetic import Term, constant
from switchgnn.softswitch.codegen.expressions import EGRESS, INGRESS, FunctionContext
from switchgnn.softswitch.codegen.inputs import write_calculation
from switchgnn.softswitch.codegen.layout import Slot
from switchgnn.softswitch.errors import MalformedProgramError
from switchgnn.softswitch.program import DROP_PORT, Json, Primitive


def clear_fields(ctx: FunctionContext, header: str) -> None:
    """Set every field of a header to zero."""
    variables = [slot.variable for slot in ctx.layout.fields(header)]
    ctx.writes.update(variables)
    if variables:
        ctx.line(" = ".join(variables) + " = 0")


def mark_added(ctx: FunctionContext, header: str) -> None:
    """Mark a header valid and lengthen the packet."""
    ctx.set_valid(header)
    ctx.line(f"pl += {header_bytes(ctx, header)}")


def invalidate(ctx: FunctionContext, header: str) -> None:
    """Mark a header invalid, and shorten the packet if it was valid."""
    variable = ctx.expressions.valid(header).text
    with ctx.writer.block(f"if {variable}:"):
        ctx.set_variable(variable, "0")
        ctx.line(f"pl -= {header_bytes(ctx, header)}")


def header_bytes(ctx: FunctionContext, header: str) -> str:
    """Return the expression for the bytes of a header, of which a ``varbit`` keeps its length."""
    fixed = ctx.layout.program.headers[header].fixed_width // 8
    slot = ctx.layout.varbit(header)
    if slot is None:
        return str(fixed)
    ctx.reads.add(slot.length)
    return f"{fixed} + {slot.length}"


def copy_header(ctx: FunctionContext, target: str, source: str) -> None:
    """Assign one header to another of the same type; an invalid source invalidates it."""
    if ctx.layout.program.headers[target].metadata:
        _copy_fields(ctx, target, source)
        return
    valid = ctx.expressions.valid(source).text
    ctx.reads.add(ctx.layout.valid(target))
    with ctx.writer.block(f"if {valid}:"):
        ctx.set_valid(target)
        _copy_fields(ctx, target, source)
    with ctx.writer.block("else:"):
        ctx.set_variable(ctx.layout.valid(target), "0")


def _copy_fields(ctx: FunctionContext, target: str, source: str) -> None:
    pairs = list(zip(ctx.layout.fields(target), ctx.layout.fields(source), strict=True))
    for slot, _ in pairs:
        # The copy is conditional: the old value may remain.
        ctx.reads.update({slot.variable, slot.length} - {""})
    for slot, origin in pairs:
        ctx.copy_slot(slot, origin)


def copy_union(ctx: FunctionContext, target: str, source: str) -> None:
    """Assign one union to another of the same type."""
    unions = ctx.layout.program.unions
    pairs = zip(unions[target].members.values(), unions[source].members.values(), strict=True)
    for one, other in pairs:
        copy_header(ctx, one, other)


def push_stack(ctx: FunctionContext, stack: str, count: int) -> None:
    """Move the elements of a stack towards the end; the first ``count`` become invalid."""
    elements = _elements(ctx, stack)
    for index in reversed(range(count, len(elements))):
        _move(ctx, elements[index], elements[index - count])
    for name in elements[:count]:
        _leave_invalid(ctx, name)
    following = ctx.expressions.next_index(stack)
    ctx.set_variable(following, f"min({following} + {count}, {len(elements)})")


def pop_stack(ctx: FunctionContext, stack: str, count: int) -> None:
    """Move the elements of a stack towards the front; the last ``count`` become invalid."""
    elements = _elements(ctx, stack)
    kept = max(len(elements) - count, 0)
    for index in range(kept):
        _move(ctx, elements[index], elements[index + count])
    for name in elements[kept:]:
        _leave_invalid(ctx, name)
    following = ctx.expressions.next_index(stack)
    ctx.set_variable(following, f"max({following} - {count}, 0)")


def copy_stack(ctx: FunctionContext, target: str, source: str) -> None:
    """Assign one stack to another of the same type."""
    pairs = zip(_elements(ctx, target), _elements(ctx, source), strict=True)
    copy = copy_union if target in ctx.layout.program.union_stacks else copy_header
    for one, other in pairs:
        copy(ctx, one, other)
    ctx.set_variable(ctx.layout.next_index(target), ctx.expressions.next_index(source))


def _elements(ctx: FunctionContext, stack: str) -> tuple[str, ...]:
    program = ctx.layout.program
    return (program.stacks.get(stack) or program.union_stacks[stack]).elements


# BMv2 moves unions by swapping them, without invalidating the new ones:
# https://github.com/p4lang/behavioral-model/blob/main/include/bm/bm_sim/header_unions.h


def _move(ctx: FunctionContext, target: str, source: str) -> None:
    unions = ctx.layout.program.unions
    if target not in unions:
        copy_header(ctx, target, source)
        return
    pairs = zip(unions[target].members.values(), unions[source].members.values(), strict=True)
    for one, other in pairs:
        _exchange(ctx, one, other)


def _exchange(ctx: FunctionContext, one: str, other: str) -> None:
    pairs = [(ctx.layout.valid(one), ctx.layout.valid(other))]
    for slot, counterpart in zip(ctx.layout.fields(one), ctx.layout.fields(other), strict=True):
        pairs.append((slot.variable, counterpart.variable))
        if slot.length:
            pairs.append((slot.length, counterpart.length))
    for first, second in pairs:
        ctx.reads.update({first, second})
        ctx.writes.update({first, second})
        ctx.line(f"{first}, {second} = {second}, {first}")


def _leave_invalid(ctx: FunctionContext, element: str) -> None:
    if element not in ctx.layout.program.unions:
        ctx.set_variable(ctx.expressions.valid(element).text, "0")


_HINT = "leave the call out or express it with registers, tables and assignments"
_STANDARD = "standard_metadata"
# Session ids above this share bits with a flag in simple_switch.
_CLONE_SESSION_MASK = 0x7FFF


def write_primitive(ctx: FunctionContext, primitive: Primitive) -> None:
    """Append the code of one primitive."""
    handler = _HANDLERS.get(primitive.op)
    if handler is None:
        raise ctx.refuse(f"primitive '{primitive.op}'", _HINT)
    handler(ctx, primitive.parameters)


Parameters = tuple[Json, ...]


def _assign(ctx: FunctionContext, parameters: Parameters) -> None:
    target = parameters[0]
    while target["type"] == "expression":
        target = target["value"]
        if "op" in target:
            _assign_element(ctx, target, ctx.term(parameters[1]))
            return
    ctx.set_slot(_slot(ctx, target), ctx.term(parameters[1]))


def _assign_varbit(ctx: FunctionContext, parameters: Parameters) -> None:
    target, source = (_named(ctx, node) for node in parameters)
    ctx.copy_slot(target, source)


def _assign_element(ctx: FunctionContext, target: Json, value: Term) -> None:
    if target["op"] != "access_field":
        raise ctx.refuse(f"assigning to '{target['op']}'", "assign to a field")
    slots, index = ctx.expressions.field_alternatives(target)
    known = index.constant
    if known is not None and 0 <= known < len(slots):
        ctx.set_slot(_of_fixed_width(ctx, slots[known]), value)
        return
    for slot in slots:
        _of_fixed_width(ctx, slot)
    # The value comes first: if it reads an element of a stack, it uses _i as well.
    ctx.line(f"_v = {value.text}; _i = {index.text}")
    taken = Term("_v", value.low, value.high, atomic=True)
    for number, slot in enumerate(slots):
        with ctx.writer.block(f"if _i == {number}:"):
            ctx.set_slot(slot, taken)
        ctx.reads.add(slot.variable)


def _slot(ctx: FunctionContext, node: Json) -> Slot:
    return _of_fixed_width(ctx, _named(ctx, node))


def _of_fixed_width(ctx: FunctionContext, slot: Slot) -> Slot:
    if slot.length:
        raise ctx.refuse("assigning a number to a varbit", "assign another varbit to it")
    return slot


def _named(ctx: FunctionContext, node: Json) -> Slot:
    if node["type"] != "field":
        raise ctx.refuse(f"assigning to a {node['type']}", "assign to a field")
    header, field = node["value"]
    if field == "$valid$":
        raise ctx.refuse("assigning to a validity bit", "call setValid or setInvalid")
    return ctx.layout.slot(header, field, ctx.expressions.where)


def _assign_header(ctx: FunctionContext, parameters: Parameters) -> None:
    copy_header(ctx, ctx.expressions.header(parameters[0]), ctx.expressions.header(parameters[1]))


def _assign_stack(ctx: FunctionContext, parameters: Parameters) -> None:
    copy_stack(ctx, parameters[0]["value"], parameters[1]["value"])


def _assign_union(ctx: FunctionContext, parameters: Parameters) -> None:
    copy_union(ctx, ctx.expressions.union(parameters[0]), ctx.expressions.union(parameters[1]))


def _add_header(ctx: FunctionContext, parameters: Parameters) -> None:
    name = ctx.expressions.header(parameters[0])
    with ctx.writer.block(f"if not {ctx.expressions.valid(name).text}:"):
        clear_fields(ctx, name)
        mark_added(ctx, name)


def _remove_header(ctx: FunctionContext, parameters: Parameters) -> None:
    invalidate(ctx, ctx.expressions.header(parameters[0]))


def _push(ctx: FunctionContext, parameters: Parameters) -> None:
    push_stack(ctx, parameters[0]["value"], _constant(ctx, parameters[1], "push"))


def _pop(ctx: FunctionContext, parameters: Parameters) -> None:
    pop_stack(ctx, parameters[0]["value"], _constant(ctx, parameters[1], "pop"))


def _constant(ctx: FunctionContext, node: Json, op: str) -> int:
    value = ctx.term(node).constant
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
        elif ctx.layout.has(header, name):
            ctx.set_slot(ctx.layout.slot(header, name, ctx.expressions.where), value)


def _guarded(ctx: FunctionContext, index: Term, size: int) -> tuple[str | None, str]:
    """Return the condition that an index is inside an array (None: always), and the index."""
    if index.within(0, size - 1):
        return None, index.text
    lower = "" if index.low is not None and index.low >= 0 else "0 <= "
    return f"if {lower}(_x := {index.text}) < {size}:", "_x"


def _write_guarded(ctx: FunctionContext, guard: str | None, statement: str) -> None:
    if guard is None:
        ctx.line(statement)
        return
    with ctx.writer.block(guard):
        ctx.line(statement)


def _register_read(ctx: FunctionContext, parameters: Parameters) -> None:
    array = ctx.layout.program.registers[parameters[1]["value"]]
    guard, index = _guarded(ctx, ctx.term(parameters[2]), array.size)
    read = Term(f"{ctx.names.register[array.name]}[{index}]", 0, (1 << array.width) - 1, True)
    slot = _slot(ctx, parameters[0])
    if guard is None:
        ctx.set_slot(slot, read)
        return
    # Outside the array the target keeps its value, which must be defined.
    ctx.reads.add(slot.variable)
    with ctx.writer.block(guard):
        ctx.set_slot(slot, read)


def _register_write(ctx: FunctionContext, parameters: Parameters) -> None:
    array = ctx.layout.program.registers[parameters[0]["value"]]
    guard, index = _guarded(ctx, ctx.term(parameters[1]), array.size)
    value = arithmetic.wrap_unsigned(ctx.term(parameters[2]), array.width)
    _write_guarded(ctx, guard, f"{ctx.names.register[array.name]}[{index}] = {value.text}")


def _count(ctx: FunctionContext, parameters: Parameters) -> None:
    array = ctx.layout.program.counters[parameters[0]["value"]]
    guard, index = _guarded(ctx, ctx.term(parameters[1]), array.size)
    packets, total = ctx.names.packet_counts[array.name], ctx.names.byte_counts[array.name]
    _write_guarded(ctx, guard, f"{packets}[{index}] += 1; {total}[{index}] += n")


def _hash(ctx: FunctionContext, parameters: Parameters) -> None:
    base, size = ctx.term(parameters[1]), ctx.term(parameters[3])
    write_calculation(ctx, parameters[2]["value"])
    modulus = size.text if size.constant else f"({size.text} or 1)"
    ctx.set_slot(_slot(ctx, parameters[0]), Term(f"_d % {modulus} + {base.inner}", 0, None))


def _random(ctx: FunctionContext, parameters: Parameters) -> None:
    low, high = ctx.term(parameters[1]), ctx.term(parameters[2])
    slot = _slot(ctx, parameters[0])
    ctx.reads.add(slot.variable)
    with ctx.writer.block(f"if (_l := {low.text}) <= (_x := {high.text}):"):
        ctx.set_slot(slot, Term("randint(_l, _x)", 0, high.high))


def _clone(stage: str) -> Callable[[FunctionContext, Parameters], None]:
    def write(ctx: FunctionContext, parameters: Parameters) -> None:
        _only_in(ctx, stage, "clone")
        session = arithmetic.bit_and(ctx.term(parameters[0]), constant(_CLONE_SESSION_MASK))
        ctx.uses_clone = True
        ctx.line(f"cs = {session.text}; cl = {_field_list(ctx, parameters[1])}")

    return write


def _resubmit(ctx: FunctionContext, parameters: Parameters) -> None:
    _only_in(ctx, INGRESS, "resubmit")
    ctx.line(f"rs = {_field_list(ctx, parameters[0])}")


def _recirculate(ctx: FunctionContext, parameters: Parameters) -> None:
    _only_in(ctx, EGRESS, "recirculate")
    ctx.line(f"rc = {_field_list(ctx, parameters[0])}")


def _only_in(ctx: FunctionContext, stage: str, call: str) -> None:
    if ctx.stage != stage:
        raise ctx.refuse(f"this kind of {call} in {ctx.stage}", f"call it in the {stage} control")


def _field_list(ctx: FunctionContext, node: Json) -> int:
    ident = _constant(ctx, node, "field list")
    if ident not in ctx.layout.program.field_lists:
        raise MalformedProgramError(
            f"Field list {ident}, used in {ctx.expressions.where}, is not declared."
        )
    return ident


def _truncate(ctx: FunctionContext, parameters: Parameters) -> None:
    ctx.uses_truncate = True
    ctx.line(f"tr = min(tr, {ctx.term(parameters[0]).text})")


def _log(ctx: FunctionContext, parameters: Parameters) -> None:
    template, values = (parameter["value"] for parameter in parameters)
    listed = "".join(f"{ctx.term(value).text}, " for value in values)
    ctx.line(f"log_message({str(template)!r}, ({listed}))")


def _exit(ctx: FunctionContext, _parameters: Parameters) -> None:
    ctx.uses_exit = True
    ctx.line("ex = 1")


def _nothing(_ctx: FunctionContext, _parameters: Parameters) -> None:
    return


_HANDLERS: dict[str, Callable[[FunctionContext, Parameters], None]] = {
    "assign": _assign,
    "assign_header": _assign_header,
    "assign_header_stack": _assign_stack,
    "assign_union": _assign_union,
    "assign_union_stack": _assign_stack,
    "assign_VL": _assign_varbit,
    "add_header": _add_header,
    "remove_header": _remove_header,
    "push": _push,
    "pop": _pop,
    "mark_to_drop": _mark_to_drop,
    "register_read": _register_read,
    "register_write": _register_write,
    "count": _count,
    "modify_field_with_hash_based_offset": _hash,
    "modify_field_rng_uniform": _random,
    "clone_ingress_pkt_to_egress": _clone(INGRESS),
    "clone_egress_pkt_to_egress": _clone(EGRESS),
    "resubmit": _resubmit,
    "recirculate": _recirculate,
    "truncate": _truncate,
    "log_msg": _log,
    "exit": _exit,
    "no_op": _nothing,
}
