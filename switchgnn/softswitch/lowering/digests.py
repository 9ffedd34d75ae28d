# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Lower the inputs of hashes and checksums."""

from switchgnn.softswitch.hashing import ALGORITHMS
from switchgnn.softswitch.ir import Digest, Expr, Piece
from switchgnn.softswitch.lowering.arithmetic import constant, multiply, variable, wrap
from switchgnn.softswitch.lowering.expressions import FunctionContext
from switchgnn.softswitch.lowering.layout import Slot
from switchgnn.softswitch.program import MOST_BITS, Json

_BITS = {"crc32": 32, "identity": 64}


def lower_digest(ctx: FunctionContext, name: str) -> Expr:
    """Compute a calculation and return its result."""
    calculation = ctx.layout.program.calculations[name]
    algorithm = calculation.algorithm
    if algorithm not in ALGORITHMS:
        raise ctx.refuse(
            f"hash algorithm {algorithm}", f"use one of {', '.join(sorted(ALGORITHMS))}"
        )
    pieces = [piece for item in calculation.inputs for piece in _pieces(ctx, item)]
    payload = any(item["type"] == "payload" for item in calculation.inputs)
    ctx.add(Digest(algorithm, tuple(pieces), payload))
    most = (1 << _BITS.get(algorithm, 16)) - 1
    return ctx.let(Expr("digest", 0, most, ones=most))


def _pieces(ctx: FunctionContext, item: Json) -> list[Piece]:
    kind, content = item["type"], item.get("value")
    if kind == "payload":
        return []
    if kind == "hexstr":
        width = item["bitwidth"]
        if not 0 < width <= MOST_BITS:
            raise ctx.refuse(f"a constant of {width} bits", f"use at most {MOST_BITS}")
        value = constant(int(content, 16) & ((1 << width) - 1))
        return [Piece(value, constant(width), constant(1))]
    if kind == "header":
        return [_piece(ctx, content, slot) for slot in ctx.layout.fields(content)]
    if kind == "field":
        return [_piece(ctx, content[0], ctx.slot(content[0], content[1]))]
    raise ctx.refuse(f"a {kind} in a checksum or hash", "use fields and constants")


def _piece(ctx: FunctionContext, header: str, slot: Slot) -> Piece:
    value = wrap(variable(slot.variable), slot.width)
    bits = constant(slot.width)
    if slot.length is not None:
        bits = multiply(constant(8), variable(slot.length))
    return Piece(value, bits, ctx.layout.valid(header))
