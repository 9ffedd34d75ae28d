# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Programs the switch refuses, each by the name of what it lacks."""

import copy
import json

import pytest

from switchgnn.softswitch import MalformedProgramError, UnsupportedProgramError
from switchgnn.softswitch.codegen.compiler import compile_program
from switchgnn.softswitch.loader import load_program
from tests.softswitch.harness import PROGRAMS, config_bytes

TABLES = json.loads(config_bytes("tables"))


def load(document):
    return compile_program(load_program(json.dumps(document).encode()))


def table(document):
    return next(t for t in document["pipelines"][0]["tables"] if t["name"] == "Enter.hit_table")


def used_action(document):
    return next(a for a in document["actions"] if a["name"] == "Enter.answer")


def add_primitive(document, op, *parameters):
    used_action(document)["primitives"].append({"op": op, "parameters": list(parameters)})


def expression(op, **operands):
    field = {"type": "field", "value": ["probe", "a"]}
    node = {"op": op, "left": field, "right": field, **operands}
    return [field, {"type": "expression", "value": {"type": "expression", "value": node}}]


CHANGES = {
    "meters": lambda d: d["meter_arrays"].append({"name": "m"}),
    "digests": lambda d: d["learn_lists"].append({"name": "l"}),
    "extern instances": lambda d: d["extern_instances"].append({"name": "e"}),
    "value sets": lambda d: d["parse_vsets"].append({"name": "v"}),
    "without a longest": lambda d: d["header_types"].append({"name": "t", "fields": [["f", "*"]]}),
    "expression for their length": lambda d: d["header_types"].append(
        {
            "name": "t",
            "fields": [["f", "*"]],
            "max_length": 4,
            "length_exp": {"type": "hexstr", "value": "0x08"},
        }
    ),
    "action profiles": lambda d: d["pipelines"][0]["action_profiles"].append({"name": "p"}),
    "indirect": lambda d: table(d).update(type="indirect"),
    "direct meters": lambda d: table(d).update(direct_meters="m"),
    "idle timeouts": lambda d: table(d).update(support_timeout=True),
    "selector": lambda d: table(d)["key"][0].update(match_type="selector"),
    "execute_meter": lambda d: add_primitive(d, "execute_meter"),
    "generate_digest": lambda d: add_primitive(d, "generate_digest"),
    "assert": lambda d: add_primitive(d, "assert", {"type": "bool", "value": True}),
    "'**'": lambda d: add_primitive(d, "assign", *expression("**")),
    "recirculate in ingress": lambda d: add_primitive(
        d, "recirculate", {"type": "hexstr", "value": "0x1"}
    ),
    "two_comp_mod": lambda d: add_primitive(d, "assign", *expression("two_comp_mod")),
    "whole number of bytes": lambda d: next(t for t in d["header_types"] if t["name"] == "probe_t")[
        "fields"
    ].append(["odd", 3]),
    "extracting a length": lambda d: d["parsers"][0]["parse_states"][0]["parser_ops"].append(
        {
            "op": "extract_VL",
            "parameters": [
                {"type": "regular", "value": "probe"},
                {"type": "hexstr", "value": "0x08"},
            ],
        }
    ),
    "parser operation 'shift'": lambda d: d["parsers"][0]["parse_states"][0]["parser_ops"].append(
        {"op": "shift", "parameters": []}
    ),
    "in place of a header union": lambda d: add_primitive(
        d, "assign_union", *[{"type": "header", "value": "probe"}] * 2
    ),
    "ports of 32 bits": lambda d: next(
        field for kind in d["header_types"] for field in kind["fields"] if field[0] == "egress_spec"
    ).__setitem__(1, 32),
    "field probe.missing": lambda d: add_primitive(
        d,
        "assign",
        {"type": "field", "value": ["probe", "missing"]},
        {"type": "hexstr", "value": "0x1"},
    ),
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


def test_unknown_hash_algorithm_is_refused():
    document = json.loads(config_bytes("headers"))
    document["calculations"][0]["algo"] = "toeplitz"
    with pytest.raises(UnsupportedProgramError, match="toeplitz"):
        load(document)


@pytest.mark.parametrize("config", [b"", b"not json", b"[]", b"{}", b"\xff\xfe"])
def test_no_program_at_all_is_malformed(config):
    with pytest.raises(MalformedProgramError):
        load_program(config)


def test_incomplete_program_is_malformed():
    document = copy.deepcopy(TABLES)
    del document["actions"][0]["primitives"]
    with pytest.raises(MalformedProgramError, match="primitives"):
        load(document)


def test_missing_field_list_is_malformed():
    document = json.loads(config_bytes("fates"))
    document["field_lists"] = []
    with pytest.raises(MalformedProgramError, match="Field list"):
        load(document)


@pytest.mark.parametrize("program", sorted(path.stem for path in PROGRAMS.glob("*.json")))
def test_test_programs_load_and_show_their_source(program):
    compiled = compile_program(load_program(config_bytes(program)))
    assert "def ingress(" in compiled.source
    assert "def egress(" in compiled.source
