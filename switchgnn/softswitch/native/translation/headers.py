# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Translates how headers are read from packets, and packets put together from headers."""

import ast
from collections.abc import Mapping

from switchgnn.softswitch.codegen.wire import HeaderCodec, Run, joined
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
        self._unpack = {codec.unpack_name: codec for codec in codecs.values()}
        self._pack = {codec.pack_name: codec for codec in codecs.values()}

    def unpack(self, name: str) -> None:
        """Read a header, by the name of its function in Python."""
        codec = self._unpack[name]
        offset = 0
        for run in codec.runs:
            size = run.width // 8
            first = run.slots[0].variable
            if run.raw:
                self._body.line(f"memcpy(&{first}, data + pos + {offset}, {size});")
            else:
                text = f"load_wire<{size}>(data + pos + {offset})"
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
        """Append a header, or what no header was made of, to the packet that leaves."""
        if isinstance(node, ast.Subscript):
            rest = "memcpy(o, data + pos, size - pos); o += size - pos;"
            self._body.line(f"if (pos < size) {{ {rest} }}")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            self._pack_header(self._pack[node.func.id])
        else:
            raise untranslatable(node)

    def _pack_header(self, codec: HeaderCodec) -> None:
        offset = 0
        for run in codec.runs:
            size = run.width // 8
            if run.raw:
                self._body.line(f"memcpy(o + {offset}, &{run.slots[0].variable}, {size});")
            else:
                self._body.line(f"store_wire<{size}>(o + {offset}, {self._whole(run)});")
            offset += size
        self._body.line(f"o += {offset};")

    def _whole(self, run: Run) -> str:
        value = self._body.value(ast.parse(joined(run.slots), mode="eval").body)
        return extended(operators.cut(value, run.width), -(-run.width // 64))
