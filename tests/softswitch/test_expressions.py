# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Generated expressions against an evaluator that follows the JSON format's definitions."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from switchgnn.softswitch.codegen.expressions import ExpressionCompiler
from switchgnn.softswitch.codegen.layout import Layout
from switchgnn.softswitch.loader import load_program
from tests.softswitch.harness import config_bytes


def _layout():
    document = json.loads(config_bytes("controller"))
    document["header_types"].append(
        {
            "name": "operands",
            "id": 900,
            "fields": [["a", 8], ["b", 24], ["c", 1024], ["s", 16, True]],
        }
    )
    document["headers"].append(
        {"name": "operands", "id": 900, "header_type": "operands", "metadata": True}
    )
    return Layout(load_program(json.dumps(document).encode()))


LAYOUT = _layout()
SLOTS = {name: LAYOUT.slot("operands", name, "test") for name in "abcs"}


def _field(name):
    return {"type": "field", "value": ["operands", name]}


def _constant(value):
    return {"type": "hexstr", "value": hex(value)}


def _operation(op, left, right, **extra):
    return {"type": "expression", "value": {"op": op, "left": left, "right": right, **extra}}


SMALL = st.integers(0, 70).map(_constant)
LEAVES = st.one_of(
    st.sampled_from("abcs").map(_field),
    st.integers(-(1 << 12), 1 << 1030).map(_constant),
    st.sampled_from([0, 1, 255, (1 << 24) - 1, (1 << 1024) - 1]).map(_constant),
)


def _compound(children):
    binary = st.sampled_from(["+", "-", "*", "&", "|", "^"])
    compare = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    width = st.integers(2, 1030).map(_constant)
    condition = st.builds(_operation, compare, children, children)
    logic = st.one_of(
        condition,
        st.builds(_operation, st.sampled_from(["and", "or"]), condition, condition),
        st.builds(lambda c: _operation("not", None, c), condition),
        st.builds(lambda c: _operation("d2b", None, c), children),
    )
    return st.one_of(
        st.builds(_operation, binary, children, children),
        st.builds(_operation, st.sampled_from(["<<", ">>"]), children, SMALL),
        st.builds(lambda c: _operation(">>", c, _field("b")), children),
        st.builds(lambda c: _operation("~", None, c), children),
        st.builds(
            _operation, st.sampled_from(["two_comp_mod", "sat_cast", "usat_cast"]), children, width
        ),
        st.builds(lambda c, x, y: _operation("?", x, y, cond=c), logic, children, children),
        st.builds(lambda c: _operation("b2d", None, c), logic),
        st.builds(
            lambda c, m: _operation("&", c, _constant((1 << m) - 1)), children, st.integers(0, 1030)
        ),
    )


EXPRESSIONS = st.recursive(LEAVES, _compound, max_leaves=12)


def evaluate(node, values):
    kind, content = node["type"], node["value"]
    if kind == "field":
        return values[content[1]]
    if kind == "hexstr":
        return int(content, 16)
    op = content["op"]
    if op == "?":
        chosen = "left" if evaluate(content["cond"], values) else "right"
        return evaluate(content[chosen], values)
    right = evaluate(content["right"], values)
    left = None if content["left"] is None else evaluate(content["left"], values)
    return _OPERATORS[op](left, right)


def _two_complement(value, width):
    value %= 1 << width
    return value - (1 << width) if value >> (width - 1) else value


_OPERATORS = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "&": lambda x, y: x & y,
    "|": lambda x, y: x | y,
    "^": lambda x, y: x ^ y,
    "<<": lambda x, y: x * 2**y,
    ">>": lambda x, y: x // 2**y if y < 5000 else (-1 if x < 0 else 0),
    "~": lambda _, y: -1 - y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "and": lambda x, y: x and y,
    "or": lambda x, y: x or y,
    "not": lambda _, y: not y,
    "d2b": lambda _, y: y != 0,
    "b2d": lambda _, y: int(y),
    "two_comp_mod": _two_complement,
    "sat_cast": lambda x, w: max(-(2 ** (w - 1)), min(2 ** (w - 1) - 1, x)),
    "usat_cast": lambda x, w: max(0, min(2**w - 1, x)),
}


@settings(max_examples=400, deadline=None)
@given(
    EXPRESSIONS,
    st.integers(0, 255),
    st.integers(0, (1 << 24) - 1),
    st.integers(0, (1 << 1024) - 1),
    st.integers(-(1 << 15), (1 << 15) - 1),
)
def test_expression_has_its_value_and_stays_in_its_range(node, a, b, c, s):
    values = {"a": a, "b": b, "c": c, "s": s}
    reads = set()
    term = ExpressionCompiler(LAYOUT, "test", reads).value(node)
    variables = {SLOTS[name].variable: value for name, value in values.items()}
    result = eval(term.text, {}, variables)  # noqa: S307
    assert result == evaluate(node, values)
    assert term.low is None or term.low <= result
    assert term.high is None or result <= term.high
    assert reads <= variables.keys()


def test_left_shift_by_a_huge_distance_is_zero_after_the_mask():
    node = _operation("&", _operation("<<", _field("a"), _field("c")), _constant((1 << 1024) - 1))
    term = ExpressionCompiler(LAYOUT, "test", set()).value(node)
    variables = {SLOTS["a"].variable: 3, SLOTS["c"].variable: (1 << 1024) - 1}
    assert eval(term.text, {}, variables) == 0  # noqa: S307


def test_masks_that_change_nothing_disappear():
    term = ExpressionCompiler(LAYOUT, "test", set()).value(
        _operation("&", _operation(">>", _field("c"), _constant(1000)), _constant((1 << 24) - 1))
    )
    assert "&" not in term.text
