# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Generates the serialisation of a packet."""

from collections.abc import Mapping

from switchgnn.softswitch.codegen.function import FunctionContext
from switchgnn.softswitch.codegen.wire import HeaderCodec


def write_deparser(ctx: FunctionContext, codecs: Mapping[str, HeaderCodec]) -> None:
    """Assign the packet to ``out``: the valid headers in order, then the unparsed rest."""
    first = True
    for header in ctx.layout.program.deparse_order:
        codec = codecs.get(header)
        if codec is None:
            continue
        ctx.reads.update(codec.carried())
        calls = list(codec.pack_calls())
        if first:
            call = calls.pop(0)
            ctx.line(f"out = {call} if {ctx.expressions.valid(header).text} else b''")
            first = False
        if calls:
            with ctx.writer.block(f"if {ctx.expressions.valid(header).text}:"):
                for call in calls:
                    ctx.line(f"out += {call}")
    ctx.line("out = data[pos:]" if first else "if pos < len(data): out += data[pos:]")
