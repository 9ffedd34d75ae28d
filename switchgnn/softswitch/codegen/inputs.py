# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Generate the input and the computation of hashes and checksums."""

from dataclasses import dataclass
from itertools import groupby

from switchgnn.softswitch.codegen.expressions import FunctionContext
from switchgnn.softswitch.codegen.layout import Slot
from switchgnn.softswitch.hashing import ALGORITHMS
from switchgnn.softswitch.program import MOST_BITS, Json


@dataclass(frozen=True)
class Piece:
    """A part of the input.

    Attributes:
        header: included only if this header is valid; None: always.
        width: bits; the maximum of a ``varbit``.
        length: the variable with the bytes of a ``varbit``, or empty.
    """

    header: str | None
    text: str
    width: int
    length: str = ""


def write_calculation(ctx: FunctionContext, name: str) -> None:
    """Assign the result of a calculation to ``_d``."""
    calculation = ctx.layout.program.calculations[name]
    if calculation.algorithm not in ALGORITHMS:
        raise ctx.refuse(
            f"hash algorithm {calculation.algorithm}", f"use one of {', '.join(sorted(ALGORITHMS))}"
        )
    payload = any(item["type"] == "payload" for item in calculation.inputs)
    pieces = [piece for item in calculation.inputs for piece in _pieces(ctx, item)]
    if all(piece.header is None and not piece.length for piece in pieces):
        _write_static(ctx, pieces)
    else:
        _write_dynamic(ctx, pieces)
    if payload:
        end = "pos + tr" if ctx.uses_truncate else ""
        ctx.line(f"_d += data[pos:{end}]")
    ctx.line(f"_d = {calculation.algorithm}(_d)")


def _write_static(ctx: FunctionContext, pieces: list[Piece]) -> None:
    width = sum(piece.width for piece in pieces)
    ctx.line(f"_d = ({_joined(pieces)} << {-width % 8}).to_bytes({(width + 7) // 8}, 'big')")


def _write_dynamic(ctx: FunctionContext, pieces: list[Piece]) -> None:
    ctx.line("_d = _w = 0")
    for (header, length), group in groupby(pieces, key=lambda piece: (piece.header, piece.length)):
        members = list(group)
        condition = "True" if header is None else ctx.expressions.valid(header).text
        with ctx.writer.block(f"if {condition}:"):
            if length:
                for member in members:
                    ctx.line(f"_d = _d << 8 * {length} | {member.text}; _w += 8 * {length}")
            else:
                width = sum(member.width for member in members)
                ctx.line(f"_d = _d << {width} | {_joined(members)}; _w += {width}")
    # Pad the input with zero bits to whole bytes.
    ctx.line("_d = (_d << -_w % 8).to_bytes((_w + 7) // 8, 'big')")


def _joined(pieces: list[Piece]) -> str:
    position = 0
    shifted = []
    for piece in reversed(pieces):
        shifted.append(f"{piece.text} << {position}" if position else piece.text)
        position += piece.width
    return "(" + (" | ".join(reversed(shifted)) or "0") + ")"


def _pieces(ctx: FunctionContext, item: Json) -> list[Piece]:
    kind, content = item["type"], item.get("value")
    if kind == "payload":
        return []
    if kind == "hexstr":
        width = item["bitwidth"]
        if not 0 < width <= MOST_BITS:
            raise ctx.refuse(f"a constant of {width} bits", f"use at most {MOST_BITS}")
        return [Piece(None, str(int(content, 16) & ((1 << width) - 1)), width)]
    if kind == "header":
        return [_piece(ctx, content, slot) for slot in ctx.layout.fields(content)]
    if kind == "field":
        slot = ctx.layout.slot(content[0], content[1], ctx.expressions.where)
        return [_piece(ctx, content[0], slot)]
    raise ctx.refuse(f"a {kind} in a checksum or hash", "use fields and constants")


def _piece(ctx: FunctionContext, header: str, slot: Slot) -> Piece:
    term = ctx.expressions.load(slot)
    text = f"({term.text} & {slot.mask})" if slot.signed else term.text
    conditional = None if ctx.layout.program.headers[header].metadata else header
    if slot.length:
        ctx.reads.add(slot.length)
    return Piece(conditional, text, slot.width, slot.length)
