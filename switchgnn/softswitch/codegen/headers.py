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
    ctx.set_variable(ctx.layout.valid(header), "1")
    ctx.line(f"pl += {ctx.layout.program.headers[header].width // 8}")


def invalidate(ctx: FunctionContext, header: str) -> None:
    """Mark a header invalid, and shorten the packet if it was valid."""
    variable = ctx.expressions.valid(header).text
    with ctx.writer.block(f"if {variable}:"):
        ctx.set_variable(variable, "0")
        ctx.line(f"pl -= {ctx.layout.program.headers[header].width // 8}")


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
        ctx.set_variable(ctx.layout.valid(target), "1")
        _copy_fields(ctx, target, source)
    with ctx.writer.block("else:"):
        ctx.set_variable(ctx.layout.valid(target), "0")


def _copy_fields(ctx: FunctionContext, target: str, source: str) -> None:
    pairs = list(zip(ctx.layout.fields(target), ctx.layout.fields(source), strict=True))
    for slot, _ in pairs:
        ctx.reads.add(slot.variable)  # the copy is conditional: the old value may remain
    for slot, origin in pairs:
        ctx.set_slot(slot, ctx.expressions.load(origin))


def push_stack(ctx: FunctionContext, stack: str, count: int) -> None:
    """Move the elements of a stack towards the end; the first ``count`` become invalid.

    Args:
        ctx: the function that the code is written into.
        stack: the name of the stack.
        count: the distance in elements.
    """
    elements = ctx.layout.program.stacks[stack].elements
    for index in reversed(range(count, len(elements))):
        copy_header(ctx, elements[index], elements[index - count])
    for name in elements[:count]:
        _clear_valid(ctx, name)
    following = ctx.expressions.next_index(stack)
    ctx.set_variable(following, f"min({following} + {count}, {len(elements)})")


def pop_stack(ctx: FunctionContext, stack: str, count: int) -> None:
    """Move the elements of a stack towards the front; the last ``count`` become invalid.

    Args:
        ctx: the function that the code is written into.
        stack: the name of the stack.
        count: the distance in elements.
    """
    elements = ctx.layout.program.stacks[stack].elements
    kept = max(len(elements) - count, 0)
    for index in range(kept):
        copy_header(ctx, elements[index], elements[index + count])
    for name in elements[kept:]:
        _clear_valid(ctx, name)
    following = ctx.expressions.next_index(stack)
    ctx.set_variable(following, f"max({following} - {count}, 0)")


def _clear_valid(ctx: FunctionContext, header: str) -> None:
    ctx.set_variable(ctx.expressions.valid(header).text, "0")
