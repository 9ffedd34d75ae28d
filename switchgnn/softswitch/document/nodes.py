# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Expressions of a program: each value is of the type that it names, and none is nested deeply."""

from collections.abc import Callable

from switchgnn.softswitch.document.types import HEX, LONGEST_HEX, LONGEST_NAME, MOST_BITS
from switchgnn.softswitch.errors import MalformedProgramError

_DEEPEST = 260  # a concatenation of 32 fields is nested 256 deep
_LONGEST_TEXT = 1 << 12  # of a message to the log
_LONGEST_SHOWN = 80


def check_node(node: object, where: str, depth: int = 0) -> None:
    """Check a value or an expression, and all that it is made of.

    Args:
        node: what JSON has.
        where: the object of the program that it belongs to, for the error.
        depth: how many expressions are around it.

    Raises:
        MalformedProgramError: a part is not what its type says, or it is nested too deeply.
    """
    if depth > _DEEPEST:
        raise MalformedProgramError(f"An expression of {where} is nested too deeply.")
    if not isinstance(node, dict):
        raise malformed(node, where)
    if "type" not in node:
        _check_operation(node, where, depth)
        return
    kind = node["type"]
    if not isinstance(kind, str):
        raise malformed(node, where)
    # What no rule is for is refused by the code generators, by its type alone.
    rule = _RULES.get(kind)
    if rule is not None and not rule(node.get("value"), where, depth):
        raise malformed(node, where)
    if "bitwidth" in node and not is_number(node["bitwidth"], MOST_BITS):
        raise malformed(node, where)


def _check_operation(node: dict[str, object], where: str, depth: int) -> None:
    """Check an operator with its operands, or a call with its parameters."""
    if not is_name(node.get("op")):
        raise malformed(node, where)
    parameters = node.get("parameters") or []
    if not isinstance(parameters, list):
        raise malformed(node, where)
    operands = [node.get(name) for name in ("left", "right", "cond")]
    for part in (*operands, *parameters):
        # The number of a field stands as it is.
        if part is not None and not is_number(part, MOST_BITS):
            check_node(part, where, depth + 1)


def malformed(node: object, where: str) -> MalformedProgramError:
    """Return the error for a value that is none of a program, at an object of it."""
    shown = repr(node)
    shown = shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}..."
    return MalformedProgramError(f"{shown} of {where} is no value of a program.")


def is_name(value: object) -> bool:
    """Tell whether a value is a name."""
    return isinstance(value, str) and 0 < len(value) <= LONGEST_NAME


def is_number(value: object, most: int) -> bool:
    """Tell whether a value is a whole number, 0 to a largest one."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _is_hex(value: object) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_HEX and bool(HEX.fullmatch(value))


def _is_reference(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(is_name, value))


def _is_member_field(value: object) -> bool:
    """Check a stack of unions, a member of the union, and a field of the member."""
    return isinstance(value, list) and len(value) == 3 and all(map(is_name, value))


def _is_window(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and is_number(value[0], MOST_BITS)
        and is_number(value[1], MOST_BITS)
    )


def _is_inner(value: object, where: str, depth: int) -> bool:
    check_node(value, where, depth + 1)
    return True


def _are_inner(value: object, where: str, depth: int) -> bool:
    if not isinstance(value, list):
        return False
    for node in value:
        check_node(node, where, depth + 1)
    return True


def _plain(test: Callable[[object], bool]) -> Callable[[object, str, int], bool]:
    return lambda value, _where, _depth: test(value)


_NAMED = ("header", "header_stack", "register_array", "counter_array", "calculation", "regular")
_RULES: dict[str, Callable[[object, str, int], bool]] = {
    **{kind: _plain(is_name) for kind in (*_NAMED, "stack", "header_union")},
    "header_union_stack": _plain(is_name),
    "union_stack": _plain(_is_reference),
    "union_stack_field": _plain(_is_member_field),
    "string": _plain(lambda value: isinstance(value, str) and len(value) <= _LONGEST_TEXT),
    "field": _plain(_is_reference),
    "stack_field": _plain(_is_reference),
    "hexstr": _plain(_is_hex),
    "bool": _plain(lambda value: isinstance(value, bool)),
    "local": _plain(lambda value: is_number(value, MOST_BITS)),
    "runtime_data": _plain(lambda value: is_number(value, MOST_BITS)),
    "lookahead": _plain(_is_window),
    "payload": _plain(lambda value: value is None),
    "expression": _is_inner,
    "parameters_vector": _are_inner,
}
