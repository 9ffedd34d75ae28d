# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Translates how headers are read from packets, and packets put together from headers."""

import ast
from collections.abc import Mapping

from switchgnn.softswitch.codegen.wire import HeaderCodec, Part, Run, joined
from switchgnn.softswitch.native.translation import operators
from switchgnn.softswitch.native.translation.body import Body
from switchgnn.softswitch.native.translation.expressions import untranslatable
from switchgnn.softswitch.native.translation.values import extended, made


class Headers:
    """The headers of a program, in one function.

    Args:
        body: the function.
        codecs: how headers are read and written, by their names.
    """

    def __init__(self, body: Body, codecs: Mapping[str, HeaderCodec]) -> None:
        self._body = body
        parts = [part for codec in codecs.values() for part in codec.parts]
        self._unpack = {part.unpack_name: part for part in parts}
        self._pack = {part.pack_name: part for part in parts}

    def unpack(self, call: ast.Call) -> None:
        """Read a part of a header."""
        if not isinstance(call.func, ast.Name):
            raise untranslatable(call.func)
        place = ast.unparse(call.args[1])
        if place != "pos":
            place = extended(self._body.value(call.args[1]), 1)
        offset = 0
        for run in self._unpack[call.func.id].runs:
            size = run.width // 8
            first = run.slots[0].variable
            if run.raw:
                self._body.line(f"memcpy(&{first}, data + {place} + {offset}, {size});")
            else:
                text = f"load_wire<{size}>(data + {place} + {offset})"
                value = made(text, -(-size // 8), 0, (1 << run.width) - 1)
                if len(run.slots) == 1 and run.native and not run.slots[0].signed:
                    self._body.line(f"{first} = {self._body.as_variable(value, first)};")
                else:
                    # The statements behind this one make the fields of it.
                    self._body.name(first, value)
            offset += size

    def store_out(self, node: ast.expr) -> None:
        """Begin the packet that leaves, or say that none does."""
        if isinstance(node, ast.Constant):
            self._body.line("fate.out = -1;")
            return
        self._body.line("o = out;")
        if isinstance(node, ast.IfExp):
            self._body.line(f"if ({self._body.expressions.test(node.test)}) {{")
            self.append(node.body)
            self._body.line("}")
        else:
            self.append(node)

    def append(self, node: ast.expr) -> None:
        """Append a part of a header, or what no header was made of, to the packet that leaves."""
        if isinstance(node, ast.Subscript):
            rest = "memcpy(o, data + pos, size - pos); o += size - pos;"
            self._body.line(f"if (pos < size) {{ {rest} }}")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            self._pack_part(self._pack[node.func.id])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            self._pack_varying(node.func.value, node.args[0])
        else:
            raise untranslatable(node)

    def _pack_part(self, part: Part) -> None:
        offset = 0
        for run in part.runs:
            size = run.width // 8
            if run.raw:
                self._body.line(f"memcpy(o + {offset}, &{run.slots[0].variable}, {size});")
            else:
                self._body.line(f"store_wire<{size}>(o + {offset}, {self._whole(run)});")
            offset += size
        self._body.line(f"o += {offset};")

    def _pack_varying(self, whole: ast.expr, size: ast.expr) -> None:
        count = self._body.value(size)
        # No more bytes than the longest that the fields can be.
        value = operators.cut(self._body.value(whole), 8 * count.high)
        text = extended(value, -(-count.high // 8) or 1)
        self._body.line(f"store_some(o, {text}, {extended(count, 1)});")
        self._body.line(f"o += {extended(count, 1)};")

    def _whole(self, run: Run) -> str:
        value = self._body.value(ast.parse(joined(run.slots), mode="eval").body)
        return extended(operators.cut(value, run.width), -(-run.width // 64))
