# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Programs as older compilers wrote them are the programs that p4c writes today.

The forms are those of https://github.com/p4lang/behavioral-model/blob/main/docs/JSON_format.md and
of the primitives of simple_switch.
"""

import copy
import json
from collections import Counter

import pytest

from switchgnn.softswitch.codegen.compiler import compile_program
from switchgnn.softswitch.loader import load_program
from tests.softswitch.harness import PROGRAMS

DOCUMENTS = {path.stem: json.loads(path.read_bytes()) for path in sorted(PROGRAMS.glob("*.json"))}


def source(config):
    """The generated code, which both back ends run."""
    return compile_program(load_program(config)).source


def tables_of(document):
    return [table for pipeline in document["pipelines"] for table in pipeline["tables"]]


def states_of(document):
    return document["parsers"][0]["parse_states"]


def name_default_by_value(document):
    for case in (case for state in states_of(document) for case in state["transitions"]):
        if case["type"] == "default":
            del case["type"]
            case["value"] = "default"


def name_default_twice(document):
    for case in (case for state in states_of(document) for case in state["transitions"]):
        if case["type"] == "default":
            case.update(type="hexstr", value="default")


def leave_out_types(document):
    for case in (case for state in states_of(document) for case in state["transitions"]):
        if case["type"] == "hexstr":
            del case["type"]


def leave_out_action_ids(document):
    count = Counter(action["name"] for action in document["actions"])
    for table in tables_of(document):
        if all(count[name] == 1 for name in table["actions"]):
            del table["action_ids"]


def leave_out_ends(document):
    for branch in (b for pipeline in document["pipelines"] for b in pipeline["conditionals"]):
        for way in ("true_next", "false_next"):
            if branch[way] is None:
                del branch[way]


def leave_out_sizes(document):
    for table in tables_of(document):
        if table.get("entries"):
            del table["max_size"]


def number_errors(document):
    for operation in (op for state in states_of(document) for op in state["parser_ops"]):
        if operation["op"] == "verify":
            error = operation["parameters"][1]
            while error["type"] == "expression":
                error = error["value"]
            operation["parameters"][1] = int(error["value"], 16)


def flag_fields(document):
    for kind in document["header_types"]:
        for field in kind["fields"]:
            field[2:] = [*field[2:], False, False][:2]


def list_constants(document):
    for fields in document["field_lists"]:
        fields["elements"].insert(0, {"type": "hexstr", "value": "0x00000063"})


FORMS = [
    *(name_default_by_value, name_default_twice, leave_out_types, leave_out_action_ids),
    *(leave_out_ends, leave_out_sizes, number_errors, flag_fields, list_constants),
]


@pytest.mark.parametrize("form", FORMS)
def test_an_older_form_is_the_same_program(form):
    changed = 0
    for document in DOCUMENTS.values():
        older = copy.deepcopy(document)
        form(older)
        if older != document:
            changed += 1
            assert source(json.dumps(older).encode()) == source(json.dumps(document).encode())
    assert changed


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_a_program_in_another_encoding(encoding):
    text = json.dumps(DOCUMENTS["tables"])
    assert source(text.encode(encoding)) == source(text.encode())


A = {"type": "field", "value": ["probe", "a"]}
B = {"type": "field", "value": ["probe", "b"]}
NUMBER = {"type": "hexstr", "value": "0x03"}
PARAMETER = {"type": "runtime_data", "value": 0}
PROBE = {"type": "header", "value": "probe"}
STANDARD = {"type": "header", "value": "standard_metadata"}
MESSAGE = {"type": "string", "value": "here"}


def call(op, *parameters):
    return {"op": op, "parameters": list(parameters)}


def computed(operator, left, right):
    value = {"op": operator, "left": left, "right": right}
    return call("assign", A, {"type": "expression", "value": value})


def log(values):
    return call("log_msg", MESSAGE, {"type": "parameters_vector", "value": values})


CALLS = [
    (call("drop"), call("mark_to_drop", STANDARD)),
    (call("mark_to_drop"), call("mark_to_drop", STANDARD)),
    (call("modify_field", A, B), call("assign", A, B)),
    (call("copy_header", PROBE, PROBE), call("assign_header", PROBE, PROBE)),
    (call("add_to_field", A, PARAMETER), computed("+", A, PARAMETER)),
    (call("subtract_from_field", A, NUMBER), computed("-", A, NUMBER)),
    (call("add", A, B, NUMBER), computed("+", B, NUMBER)),
    (call("subtract", A, B, PARAMETER), computed("-", B, PARAMETER)),
    (call("bit_and", A, B, NUMBER), computed("&", B, NUMBER)),
    (call("bit_or", A, B, NUMBER), computed("|", B, NUMBER)),
    (call("bit_xor", A, B, NUMBER), computed("^", B, NUMBER)),
    (call("shift_left", A, B, NUMBER), computed("<<", B, NUMBER)),
    (call("shift_right", A, B, NUMBER), computed(">>", B, NUMBER)),
    (log({}), log([])),
    (call("log_msg", MESSAGE), log([])),
]


def with_call(made):
    document = copy.deepcopy(DOCUMENTS["tables"])
    action = next(a for a in document["actions"] if a["name"] == "Enter.answer")
    action["primitives"].append(made)
    return json.dumps(document).encode()


@pytest.mark.parametrize(("older", "newer"), CALLS, ids=lambda made: made["op"])
def test_an_older_primitive_is_what_replaced_it(older, newer):
    assert source(with_call(older)) == source(with_call(newer))


def with_operation(made):
    document = copy.deepcopy(DOCUMENTS["tables"])
    states_of(document)[0]["parser_ops"].append(made)
    return json.dumps(document).encode()


def test_a_shift_by_bytes_is_an_advance_by_bits():
    newer = call("advance", {"type": "hexstr", "value": "0x18"})
    assert source(with_operation(call("shift", 3))) == source(with_operation(newer))
