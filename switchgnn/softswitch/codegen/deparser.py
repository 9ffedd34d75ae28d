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
        if first:
            ctx.line(f"out = {codec.pack_call()} if {ctx.expressions.valid(header).text} else b''")
            first = False
            continue
        with ctx.writer.block(f"if {ctx.expressions.valid(header).text}:"):
            ctx.line(f"out += {codec.pack_call()}")
    ctx.line("out = data[pos:]" if first else "if pos < len(data): out += data[pos:]")
