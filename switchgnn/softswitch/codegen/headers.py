# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Generates copying, clearing and shifting of whole headers."""

from switchgnn.softswitch.codegen.function import FunctionContext


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
    """Assign one header to another of the same type; an invalid source invalidates it.

    Args:
        ctx: the function that the code is written into.
        target: the name of the header that is overwritten.
        source: the name of the header that is copied.
    """
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
    """Assign one union to another of the same type.

    Args:
        ctx: the function that the code is written into.
        target: the name of the union that is overwritten.
        source: the name of the union that is copied.
    """
    unions = ctx.layout.program.unions
    pairs = zip(unions[target].members.values(), unions[source].members.values(), strict=True)
    for one, other in pairs:
        copy_header(ctx, one, other)


def push_stack(ctx: FunctionContext, stack: str, count: int) -> None:
    """Move the elements of a stack towards the end; the first ``count`` become invalid.

    Args:
        ctx: the function that the code is written into.
        stack: the name of the stack.
        count: the distance in elements.
    """
    elements = _elements(ctx, stack)
    for index in reversed(range(count, len(elements))):
        _move(ctx, elements[index], elements[index - count])
    for name in elements[:count]:
        _leave_invalid(ctx, name)
    following = ctx.expressions.next_index(stack)
    ctx.set_variable(following, f"min({following} + {count}, {len(elements)})")


def pop_stack(ctx: FunctionContext, stack: str, count: int) -> None:
    """Move the elements of a stack towards the front; the last ``count`` become invalid.

    Args:
        ctx: the function that the code is written into.
        stack: the name of the stack.
        count: the distance in elements.
    """
    elements = _elements(ctx, stack)
    kept = max(len(elements) - count, 0)
    for index in range(kept):
        _move(ctx, elements[index], elements[index + count])
    for name in elements[kept:]:
        _leave_invalid(ctx, name)
    following = ctx.expressions.next_index(stack)
    ctx.set_variable(following, f"max({following} - {count}, 0)")


def copy_stack(ctx: FunctionContext, target: str, source: str) -> None:
    """Assign one stack to another of the same type.

    Args:
        ctx: the function that the code is written into.
        target: the name of the stack that is overwritten.
        source: the name of the stack that is copied.
    """
    pairs = zip(_elements(ctx, target), _elements(ctx, source), strict=True)
    copy = copy_union if target in ctx.layout.program.union_stacks else copy_header
    for one, other in pairs:
        copy(ctx, one, other)
    ctx.set_variable(ctx.layout.next_index(target), ctx.expressions.next_index(source))


def _elements(ctx: FunctionContext, stack: str) -> tuple[str, ...]:
    program = ctx.layout.program
    return (program.stacks.get(stack) or program.union_stacks[stack]).elements


# BMv2 moves unions by exchanging them, and does nothing to mark those invalid that come in:
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
