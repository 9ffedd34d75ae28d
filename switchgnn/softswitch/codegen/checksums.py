# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Generates the verification of checksums after parsing and their update before deparsing."""

from switchgnn.softswitch.codegen.function import FunctionContext
from switchgnn.softswitch.codegen.inputs import write_calculation
from switchgnn.softswitch.codegen.terms import Term
from switchgnn.softswitch.program import Checksum


def write_verification(ctx: FunctionContext) -> None:
    """Set ``standard_metadata.checksum_error`` if any verified checksum is wrong."""
    checksums = [c for c in ctx.layout.program.checksums if c.verify]
    if not checksums:
        return
    ctx.line("_bad = 0")
    for checksum in checksums:
        ctx.at(f"checksum '{checksum.name}'")
        header, field = checksum.target
        conditions = [] if ctx.layout.program.headers[header].metadata else [_valid(ctx, header)]
        with ctx.writer.block(f"if {_all(ctx, checksum, conditions)}:"):
            write_calculation(ctx, checksum.calculation)
            with ctx.writer.block(f"if {ctx.expressions.field(header, field).text} != _d:"):
                ctx.line("_bad = 1")
    ctx.set_standard("standard_metadata.checksum_error", "_bad")


def write_updates(ctx: FunctionContext) -> None:
    """Write every updated checksum into its field."""
    for checksum in ctx.layout.program.checksums:
        if not checksum.update:
            continue
        ctx.at(f"checksum '{checksum.name}'")
        header, field = checksum.target
        slot = ctx.layout.slot(header, field, ctx.expressions.where)
        ctx.reads.add(slot.variable)  # the update is conditional: the old value can survive
        with ctx.writer.block(f"if {_all(ctx, checksum, [])}:"):
            write_calculation(ctx, checksum.calculation)
            ctx.set_slot(slot, Term("_d", 0, None))


def _valid(ctx: FunctionContext, header: str) -> str:
    return ctx.expressions.valid(header).text


def _all(ctx: FunctionContext, checksum: Checksum, conditions: list[str]) -> str:
    if checksum.condition is not None:
        conditions = [*conditions, ctx.term(checksum.condition).inner]
    return " and ".join(conditions) or "True"
