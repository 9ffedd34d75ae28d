# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Holds generated code to what the generators write, before it is run.

The JSON of a program is held to its types before anything is generated, and no name in it becomes
one of the code. This is the second lock: should a generator copy more than it should one day, what
it copied is no statement that a program can have.
"""

import ast
import re

from switchgnn.softswitch.errors import MalformedProgramError
from switchgnn.softswitch.hashing import ALGORITHMS

_NODES = (
    *(ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.AugAssign),
    *(ast.Expr, ast.If, ast.While, ast.Break, ast.Continue, ast.Pass, ast.Load, ast.Store),
    *(ast.Name, ast.Constant, ast.Tuple, ast.Subscript, ast.Slice, ast.Call, ast.Attribute),
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.NamedExpr),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
)
_METHOD = "to_bytes"
# What the generators number: variables, arrays, tables, functions.
_NUMBERED = re.compile(
    r"(h\d+_\d+|(ok|next|vl|unpack|pack|keep|clone|reg|_k|_p)\d+|tbl\d+_(lookup|default)"
    r"|ctr\d+_(packets|bytes))"
)
_CALLED = frozenset(("from_bytes", "len", "log_message", "max", "min", "randint", *ALGORITHMS))
_FUNCTIONS = frozenset(("ingress", "egress", "reparse"))
_VARIABLES = frozenset(
    [
        "after",
        "cl",
        "cs",
        "data",
        "deq_depth",
        "enq_depth",
        "enq_time",
        "ex",
        "itype",
        "kept",
        "n",
        "now",
        "original",
        "out",
        "perr",
        "pl",
        "port",
        "pos",
        "rc",
        "rid",
        "rs",
        "state",
        "tr",
        "_a",
        "_b",
        "_bad",
        "_c",
        "_d",
        "_e",
        "_h",
        "_i",
        "_j",
        "_jn",
        "_l",
        "_s",
        "_sn",
        "_v",
        "_w",
        "_x",
    ]
)
_KNOWN = _CALLED | _FUNCTIONS | _VARIABLES


def check_generated(tree: ast.Module) -> None:
    """Check that every part of the code is one that the generators write.

    Raises:
        MalformedProgramError: one is not.
    """
    for node in ast.walk(tree):
        if not _is_ours(node):
            line = getattr(node, "lineno", 0)
            raise MalformedProgramError(
                f"The code for this program has a {type(node).__name__} in line {line} that no "
                "program needs; nothing of it is run."
            )


def _is_ours(node: ast.AST) -> bool:
    if not isinstance(node, _NODES):
        return False
    if isinstance(node, ast.Call):
        return isinstance(node.func, (ast.Name, ast.Attribute)) and not node.keywords
    if isinstance(node, ast.FunctionDef) and node.decorator_list:
        return False
    return all(map(_is_known, _names(node)))


def _names(node: ast.AST) -> list[str]:
    """Return the names that stand in a node itself."""
    match node:
        case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name):
            return [name]
        case ast.Attribute(attr=name):
            return [] if name == _METHOD else [f".{name}"]
    return []


def _is_known(name: str) -> bool:
    return name in _KNOWN or _NUMBERED.fullmatch(name) is not None
