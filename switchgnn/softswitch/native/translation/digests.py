# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Translates hashes and checksums: `_d` is first bits, then bytes, then the result."""

import ast

from switchgnn.softswitch.hashing import ALGORITHMS
from switchgnn.softswitch.native.translation import operators
from switchgnn.softswitch.native.translation.body import Body, number
from switchgnn.softswitch.native.translation.expressions import untranslatable
from switchgnn.softswitch.native.translation.values import extended, made

_HASH_BITS = {"crc32": 32, "identity": 64}


class Digests:
    """The hashes and checksums of one function.

    Args:
        body: the function.
    """

    def __init__(self, body: Body) -> None:
        self._body = body

    def store(self, node: ast.expr) -> None:
        """Translate an assignment to ``_d``."""
        if isinstance(node, ast.Constant):
            self._body.line("_d.clear();")
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            if not isinstance(node.left, ast.BinOp):
                raise untranslatable(node.left)
            if isinstance(node.left.right, ast.BinOp):
                self._append_varbit(node.right, node.left.right)
            else:
                self._append_pieces(node.right, number(node.left.right))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            self._finish_bits(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            algorithm = node.func.id
            if algorithm not in ALGORITHMS:
                raise untranslatable(node)
            bits = _HASH_BITS.get(algorithm, 16)
            text = f"hash_{algorithm}(_d.begin, _d.size())"
            self._body.name("_d", made(text, 1, 0, (1 << bits) - 1))
        else:
            raise untranslatable(node)

    def _append_varbit(self, node: ast.expr, bits: ast.BinOp) -> None:
        count = extended(self._body.value(bits.right), 1)
        self._body.line(f"_d.some({self._body.value(node).text}, {count});")

    def _finish_bits(self, node: ast.Call) -> None:
        if not isinstance(node.func, ast.Attribute):
            raise untranslatable(node.func)
        shifted = node.func.value
        if not isinstance(shifted, ast.BinOp):
            raise untranslatable(shifted)
        if not isinstance(shifted.left, ast.Name) or shifted.left.id != "_d":
            # All is known beforehand: nothing was put together bit by bit.
            filled, total = number(shifted.right), number(node.args[0]) * 8
            self._body.line("_d.clear();")
            self._append_pieces(shifted.left, total - filled)
        self._body.line("_d.finish();")

    def _append_pieces(self, node: ast.expr, width: int) -> None:
        """Append pieces that are joined by their places; the first one is on top."""
        pieces = []
        while isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            pieces.append(node.right)
            node = node.left
        pieces.append(node)
        end = width
        for piece in reversed(pieces):
            place, value = 0, piece
            if isinstance(piece, ast.BinOp) and isinstance(piece.op, ast.LShift):
                place, value = number(piece.right), piece.left
            bits = end - place
            end = place
            if bits:
                narrow = operators.cut(self._body.value(value), bits)
                self._body.line(f"Bits::append<{bits}>(_d, {extended(narrow, -(-bits // 64))});")

    def append_payload(self, node: ast.expr) -> None:
        """Append what no header was made of."""
        if not isinstance(node, ast.Subscript):
            raise untranslatable(node)
        if not isinstance(node.slice, ast.Slice):
            raise untranslatable(node.slice)
        limit = "" if node.slice.upper is None else "if (left > tr) left = tr; "
        self._body.line(
            f"{{ i64 left = size - (i64)pos; {limit}if (left > 0) _d.bytes(data + pos, left); }}"
        )
