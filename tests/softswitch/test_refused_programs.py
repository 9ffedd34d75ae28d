"""Unsupported, malformed and hostile programs are refused; generated expressions are right."""

import copy
import gzip
import json
import operator
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchgnn.softswitch.base.errors import MalformedProgramError, UnsupportedProgramError
from switchgnn.softswitch.forwarding import Frame, Interpreter
from switchgnn.softswitch.lowering.expressions import FieldLayout, FunctionContext
from switchgnn.softswitch.lowering.loader import load_program
from switchgnn.softswitch.lowering.program import lower_program
from tests.softswitch.harness import config_bytes

TABLES = json.loads(config_bytes("tables"))


def load(document):
    return lower_program(load_program(json.dumps(document).encode()))


def tables(document):
    return [t for pipeline in document["pipelines"] for t in pipeline["tables"]]


def entry(document):
    return next(t["entries"][0] for t in tables(document) if t.get("entries"))


def without_prefix_key(document):
    for field in next(t["key"] for t in tables(document) if t["match_type"] == "lpm"):
        field.update(match_type="exact")


def table(document):
    return next(t for t in document["pipelines"][0]["tables"] if t["name"] == "Enter.hit_table")


def add_primitive(document, op, *parameters):
    used = next(a for a in document["actions"] if a["name"] == "Enter.answer")
    used["primitives"].append({"op": op, "parameters": list(parameters)})


def assign(document, op, **operands):
    field = {"type": "field", "value": ["probe", "a"]}
    node = {"op": op, "left": field, "right": field, **operands}
    value = {"type": "expression", "value": {"type": "expression", "value": node}}
    add_primitive(document, "assign", field, value)


def header_type(document, **fields):
    document["header_types"].append({"name": "t", "fields": [["f", "*"]], **fields})


def parser_operation(document, op, *parameters):
    operation = {"op": op, "parameters": list(parameters)}
    document["parsers"][0]["parse_states"][0]["parser_ops"].append(operation)


def fields_of(document, name):
    return next(t["fields"] for t in document["header_types"] if t["name"] == name)


HEX, NEGATIVE = ({"type": "hexstr", "value": value} for value in ("0x08", "-0x1"))
MISSING = {"type": "field", "value": ["probe", "missing"]}
CHANGES = {
    "meters": lambda d: d["meter_arrays"].append({"name": "m"}),
    "digests": lambda d: d["learn_lists"].append({"name": "l"}),
    "extern instances": lambda d: d["extern_instances"].append({"name": "e"}),
    "value sets": lambda d: d["parse_vsets"].append({"name": "v"}),
    "header unions": lambda d: d["header_unions"].append({"name": "u"}),
    "fields of variable length": header_type,
    "fields that saturate": lambda d: header_type(d, fields=[["f", 8, False, True]]),
    "architecture PSA": lambda d: d["parsers"][0].update(name="ingress_parser"),
    "action profiles": lambda d: d["pipelines"][0]["action_profiles"].append({"name": "p"}),
    "indirect": lambda d: table(d).update(type="indirect"),
    "direct meters": lambda d: table(d).update(direct_meters="m"),
    "idle timeouts": lambda d: table(d).update(support_timeout=True),
    "selector": lambda d: table(d)["key"][0].update(match_type="selector"),
    "execute_meter": lambda d: add_primitive(d, "execute_meter"),
    "a number that may be negative": lambda d: assign(d, "<<", right=NEGATIVE),
    "a signed field for a number of the switch": lambda d: fields_of(d, "standard_metadata")[
        1
    ].__setitem__(2, True),
    "dividing a number": lambda d: assign(d, "/", right=NEGATIVE),
    "'**'": lambda d: assign(d, "**"),
    "recirculate in ingress": lambda d: add_primitive(d, "recirculate", HEX),
    "two_comp_mod": lambda d: assign(d, "two_comp_mod"),
    "whole number of bytes": lambda d: fields_of(d, "probe_t").append(["odd", 3]),
    "parser operation 'rewind'": lambda d: parser_operation(d, "rewind"),
    "ports of 32 bits": lambda d: next(
        f for f in fields_of(d, "standard_metadata") if f[0] == "egress_spec"
    ).__setitem__(1, 32),
    "field probe.missing": lambda d: add_primitive(d, "assign", MISSING, HEX),
}


@pytest.mark.parametrize("feature", CHANGES)
def test_refused_by_name(feature):
    document = copy.deepcopy(TABLES)
    CHANGES[feature](document)
    with pytest.raises(UnsupportedProgramError) as caught:
        load(document)
    error = caught.value
    assert feature in str(error)
    assert error.feature and error.where and error.hint
    assert error.where in str(error) and error.hint in str(error)


@pytest.mark.parametrize("config", [b"", b"not json", b"[]", b"{}", b"\xff\xfe", b"\xef\xbb\xbf"])
def test_no_program_at_all_is_malformed(config):
    with pytest.raises(MalformedProgramError):
        load_program(config)


def test_a_compressed_program_is_called_so():
    with pytest.raises(MalformedProgramError, match="gzip: decompress"):
        load_program(gzip.compress(config_bytes("tables")))


@pytest.mark.parametrize(
    ("program", "change", "words"),
    [
        ("tables", lambda d: d["actions"][0].pop("primitives"), "primitives"),
        ("fates", lambda d: d["field_lists"].clear(), "Field list"),
        ("fates", lambda d: d["pipelines"].pop(), "no control egress: write it for v1model"),
        ("headers", lambda d: d["calculations"][0].update(algo="toeplitz"), "toeplitz"),
        ("loops", lambda d: entry(d)["action_entry"].update(action_id=2048), "no action 2048"),
        ("loops", lambda d: entry(d)["action_entry"].update(action_data=[]), "with 0 parameters"),
        ("loops", lambda d: entry(d)["match_key"][0].pop("key"), "without all of its key"),
        ("loops", lambda d: entry(d)["match_key"][0].update(key="0x1ffff"), "not of 8 bits"),
        ("tables", without_prefix_key, "match type lpm, but other keys"),
        ("fates", lambda d: tables(d)[-1]["action_ids"].__setitem__(0, 255), "255"),
        ("tables", lambda d: d["parsers"][0].update(name={}), "name"),
        # Code in place of a number.
        ("fates", lambda d: d["field_lists"][0].update(id="0(x): f()\ndef keep_1"), "id"),
        ("headers", lambda d: d["errors"][0].__setitem__(1, "f()"), "errors"),
        ("headers", lambda d: d["header_types"][0]["fields"][0].__setitem__(1, "1, f()"), "enum"),
    ],
)
def test_a_crafted_program_is_refused(program, change, words):
    document = json.loads(config_bytes(program))
    change(document)
    with pytest.raises((MalformedProgramError, UnsupportedProgramError), match=words):
        load(document)


ALL = os.environ.get("SWITCHGNN_LEVEL") == "all"


def test_deep_nesting_is_refused():
    document = copy.deepcopy(TABLES)
    deep = {"type": "hexstr", "value": "0x01"}
    for _ in range(300):
        deep = {"type": "expression", "value": deep}
    document["pipelines"][0]["conditionals"][0]["expression"] = deep
    with pytest.raises(MalformedProgramError, match="nested"):
        load(document)
    with pytest.raises(MalformedProgramError, match="nested"):
        load_program(b"[" * 100_000 + b"]" * 100_000)


def _layout():
    document = json.loads(config_bytes("controller"))
    fields = [["a", 8], ["b", 24], ["c", 1024], ["s", 16, True]]
    header_type(document, name="operands", id=900, fields=fields)
    header = {"name": "operands", "id": 900, "header_type": "operands", "metadata": True}
    document["headers"].append(header)
    return FieldLayout(load_program(json.dumps(document).encode()))


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
    *(st.sampled_from("abcs").map(_field), st.integers(-(1 << 12), 1 << 1030).map(_constant)),
    st.sampled_from([0, 1, 255, (1 << 24) - 1, (1 << 1024) - 1]).map(_constant),
)


def _compound(children):
    binary = st.sampled_from(["+", "-", "*", "&", "|", "^"])
    compare = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    width = st.integers(2, 1030).map(_constant)
    mask = st.integers(0, 1030).map(lambda bits: _constant((1 << bits) - 1))
    narrowing = st.sampled_from(["two_comp_mod", "sat_cast", "usat_cast"])
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
        st.builds(_operation, narrowing, children, width),
        st.builds(lambda c, x, y: _operation("?", x, y, cond=c), logic, children, children),
        st.builds(lambda c: _operation("b2d", None, c), logic),
        st.builds(lambda c, m: _operation("&", c, m), children, mask),
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
    **{"+": operator.add, "-": operator.sub, "*": operator.mul},
    **{"&": operator.and_, "|": operator.or_, "^": operator.xor},
    "<<": lambda x, y: x * 2**y,
    ">>": lambda x, y: x // 2**y if y < 5000 else (-1 if x < 0 else 0),
    "~": lambda _, y: -1 - y,
    **{"==": operator.eq, "!=": operator.ne, "<": operator.lt},
    **{"<=": operator.le, ">": operator.gt, ">=": operator.ge},
    "and": lambda x, y: x and y,
    "or": lambda x, y: x or y,
    "not": lambda _, y: not y,
    "d2b": lambda _, y: y != 0,
    "b2d": lambda _, y: int(y),
    "two_comp_mod": _two_complement,
    "sat_cast": lambda x, w: max(-(2 ** (w - 1)), min(2 ** (w - 1) - 1, x)),
    "usat_cast": lambda x, w: max(0, min(2**w - 1, x)),
}


@settings(max_examples=4000 if ALL else 150, deadline=None)
@given(
    *(EXPRESSIONS, st.integers(0, 255), st.integers(0, (1 << 24) - 1)),
    *(st.integers(0, (1 << 1024) - 1), st.integers(-(1 << 15), (1 << 15) - 1)),
)
def test_expression_has_its_value_and_stays_in_its_range(node, a, b, c, s):
    values = {"a": a, "b": b, "c": c, "s": s}
    ctx = FunctionContext(LAYOUT, "test")
    lowered = ctx.value(node)
    interpreter = Interpreter(None)
    frame = Frame({SLOTS[name].variable.name: value for name, value in values.items()}, b"")
    interpreter.run(ctx.statements, frame)
    assert interpreter.value(lowered, frame) == evaluate(node, values)
    for each in parts_of(lowered):
        result = interpreter.value(each, frame)
        assert each.low <= result <= each.high
        assert each.low < 0 or not result & ~each.ones


def parts_of(expression):
    yield expression
    for each in expression.args:
        yield from parts_of(each)
