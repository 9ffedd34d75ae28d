# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Generates the body of an action, with its jumps as nested if/else."""

from collections.abc import Sequence

from switchgnn.softswitch.codegen.function import FunctionContext
from switchgnn.softswitch.codegen.primitives import write_primitive
from switchgnn.softswitch.codegen.structure import Structurer, write_graph
from switchgnn.softswitch.codegen.terms import Term
from switchgnn.softswitch.program import Action, Primitive

_JUMPS = frozenset(("_jump", "_jump_if_zero"))


def write_action(ctx: FunctionContext, action: Action, parameters: Sequence[Term]) -> None:
    """Append the code of an action whose parameters have these values.

    Args:
        ctx: the function that the code is written into.
        action: the action.
        parameters: one term per parameter of the action.

    Raises:
        UnsupportedProgramError: the action uses a primitive or a jump that the switch
            does not run.
    """
    outer = ctx.expressions
    ctx.at(f"action '{action.name}' of {ctx.stage}", parameters)
    if any(primitive.op in _JUMPS for primitive in action.primitives):
        _write_with_jumps(ctx, action)
    else:
        for primitive in action.primitives:
            write_primitive(ctx, primitive)
    ctx.expressions = outer


def _write_with_jumps(ctx: FunctionContext, action: Action) -> None:
    primitives = action.primitives
    successors = {str(i): _successors(ctx, primitives, i) for i in range(len(primitives))}

    def emit(node: str, structurer: Structurer) -> None:
        primitive = primitives[int(node)]
        if primitive.op == "_jump_if_zero":
            _write_branch(ctx, primitive, successors[node], structurer.join(node), structurer)
        elif primitive.op != "_jump":
            write_primitive(ctx, primitive)

    where = f"action '{action.name}'"
    write_graph(ctx.writer, successors, "0", emit, where=where, place="_j")


def _successors(
    ctx: FunctionContext, primitives: Sequence[Primitive], index: int
) -> tuple[str | None, ...]:
    def node(number: int) -> str | None:
        return str(number) if number < len(primitives) else None

    primitive = primitives[index]
    if primitive.op not in _JUMPS:
        return (node(index + 1),)
    target = ctx.term(primitive.parameters[-1]).constant
    if target is None:
        raise ctx.refuse("a jump to a variable offset", "use if statements")
    return (node(target),) if primitive.op == "_jump" else (node(index + 1), node(target))


def _write_branch(
    ctx: FunctionContext,
    primitive: Primitive,
    targets: Sequence[str | None],
    join: str | None,
    structurer: Structurer,
) -> None:
    condition = ctx.term(primitive.parameters[0])
    with ctx.writer.block(f"if {condition.text}:"):
        structurer.region(targets[0], join)
    if targets[1] != join:
        with ctx.writer.block("else:"):
            structurer.region(targets[1], join)
