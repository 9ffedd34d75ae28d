# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A program from anybody runs no code but what the generators write for it."""

import ast
import json
import os
import random
import re
from pathlib import Path

import pytest

from switchgnn.softswitch.codegen import compiler
from switchgnn.softswitch.codegen import compiler as guard
from switchgnn.softswitch.codegen.compiler import compile_program
from switchgnn.softswitch.errors import MalformedProgramError, UnsupportedProgramError
from switchgnn.softswitch.loader import load_program
from tests.softswitch.harness import PROGRAMS, Rig, config_bytes

# What no program of these has, and what code would need to do anything.
MARK = "planted_mark"
STATEMENT = f"0\n open('{MARK}', 'w')\nif 1"
HOSTILE = (
    STATEMENT,
    f"0): pass\n{MARK}()\ndef x(",
    f"0; {MARK}()",
    f"{MARK}()",
    f"__import__('os').system('touch {MARK}')",
    f"x', {MARK}(), '",
    f'"""{MARK}()"""',
    f"\\\n{MARK}()",
    f"h0_0 = {MARK}()",
    f"{MARK}\u2028{MARK}()",
    MARK,
    *("", "0x", "-0x1", "0x" + "f" * 20_000, "*", "$valid$", "__HIT__", "nothing\x00"),
    *(-1, 0, 1, 63, 1 << 31, 1 << 40, 1 << 70, 1.5, True, None),
    *([], {}, [[]], [None], [MARK, STATEMENT], {"type": "field", "value": [STATEMENT, MARK]}),
    {"type": "hexstr", "value": STATEMENT},
    {"type": "expression", "value": {"op": STATEMENT, "left": None, "right": None}},
    {"type": "expression", "value": {"op": "+", "left": 1, "right": STATEMENT}},
    {"type": "bool", "value": STATEMENT},
    {"type": "runtime_data", "value": STATEMENT},
    {"type": "lookahead", "value": [0, STATEMENT]},
)
NAMES = ("controller", "fates", "headers", "tables", "wide", "unions", "varbit", "loops")
TRIES = 100_000 if os.environ.get("SWITCHGNN_LEVEL") == "all" else 3_000
SHARES = 8
STRING = re.compile(r"log_message\('(?:[^'\\]|\\.)*'|log_message\(\"(?:[^\"\\]|\\.)*\"")


def changed(document, path, value):
    """The program with another value in one place, as bytes."""
    copy = json.loads(json.dumps(document))
    place = copy
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return json.dumps(copy).encode()


def first(document, wanted):
    """The path to the first object that has such a value under such a key."""
    key, value = wanted

    def search(node, path):
        if isinstance(node, dict) and node.get(key) == value:
            return path
        for step, inner in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(inner, (dict, list)) and (found := search(inner, (*path, step))):
                return found
        return None

    return search(document, ())


CRAFTED = {
    "the id of a field list": ("fates", ("field_lists", 0, "id"), f"0(x): {MARK}()\ndef keep_1"),
    "the value of an error": ("headers", ("errors", 0, 1), f"{MARK}()"),
    "the bits of a field": ("headers", ("header_types", 0, "fields", 0, 1), f"1, {MARK}()"),
    "the size of an array": ("wide", ("register_arrays", 0, "size"), f"1 or {MARK}()"),
    "the bits of an array": ("wide", ("register_arrays", 0, "bitwidth"), f"1 or {MARK}()"),
    "the bits of a parameter": ("tables", ("actions", 0, "id"), f"{MARK}()"),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_program_is_refused(name):
    program, path, value = CRAFTED[name]
    with pytest.raises(MalformedProgramError):
        compile_program(load_program(changed(json.loads(config_bytes(program)), path, value)))


def places(node, path=()):
    """The path to every value in a document."""
    for step, inner in node.items() if isinstance(node, dict) else enumerate(node):
        yield (*path, step)
        if isinstance(inner, (dict, list)):
            yield from places(inner, (*path, step))


@pytest.mark.whole
@pytest.mark.parametrize("share", range(SHARES))
def test_no_code_but_generated_code(share, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    chosen = random.Random(share)
    documents = {name: json.loads(config_bytes(name)) for name in NAMES}
    everywhere = {name: list(places(document)) for name, document in documents.items()}
    accepted = 0
    for _ in range(TRIES // SHARES):
        name = chosen.choice(NAMES)
        path, value = chosen.choice(everywhere[name]), chosen.choice(HOSTILE)
        place = documents[name]
        for step in path[:-1]:
            place = place[step]
        before, place[path[-1]] = place[path[-1]], value
        try:
            compiled = compile_program(load_program(json.dumps(documents[name]).encode()))
        except (MalformedProgramError, UnsupportedProgramError):
            continue
        finally:
            place[path[-1]] = before
        accepted += 1
        # A message to the log is the one string that a program may bring.
        assert MARK not in STRING.sub("", compiled.source), (name, path, value)
    assert accepted > TRIES // SHARES // 20
    assert not Path(MARK).exists()


def test_what_is_accepted_runs_without_the_mark(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    document = json.loads(config_bytes("fates"))
    for path in places(document):
        if isinstance(path[-1], str) and path[-1] == "name":
            try:
                rig = Rig(changed(document, path, STATEMENT))
                rig.run(1, bytes([2, 0, 0, 0, 0, 3]) + b"x" * 60)
            except (MalformedProgramError, UnsupportedProgramError):
                continue
    assert not Path(MARK).exists()


def test_deep_nesting_is_refused():
    document = json.loads(config_bytes("wide"))
    deep = {"type": "hexstr", "value": "0x01"}
    for _ in range(300):
        deep = {"type": "expression", "value": deep}
    path = ("pipelines", 0, "conditionals", 0, "expression")
    if not document["pipelines"][0]["conditionals"]:
        document["pipelines"][0]["conditionals"] = [
            {"name": "c", "id": 0, "expression": None, "true_next": None, "false_next": None}
        ]
    with pytest.raises(MalformedProgramError, match="nested"):
        load_program(changed(document, path, deep))
    with pytest.raises(MalformedProgramError, match="nested"):
        load_program(b"[" * 100_000 + b"]" * 100_000)


@pytest.mark.parametrize(
    "line",
    [
        "import os",
        "__import__('os')",
        "data.__class__",
        "(lambda: 0)()",
        "[h0_0 for h0_0 in data]",
        "exec('1')",
        "h0_0 = open",
        "max(0, key=len)",
        "f'{data}'",
        "del data",
        "from_bytes.__globals__",
        "out.to_bytes.__self__",
    ],
)
def test_the_second_lock(line):
    """A line that some generator might be led to copy is not run."""
    source = f"def ingress(data, n):\n h0_0 = 1\n {line}\n return h0_0\n"
    with pytest.raises(MalformedProgramError, match="nothing of it is run"):
        guard.check_generated(ast.parse(source))
    guard.check_generated(ast.parse(source.replace(line, "out = h0_0.to_bytes(2, 'big')")))


def test_a_generator_that_copies_too_much_is_noticed(monkeypatch):
    """Both locks are there: with the first one open the second still holds."""
    monkeypatch.setattr(
        compiler, "_ingress_source", lambda *_: f"def ingress(data):\n return {MARK}()\n"
    )
    with pytest.raises(MalformedProgramError, match="nothing of it is run"):
        compile_program(load_program(config_bytes("fates")))


def test_all_programs_pass():
    for file in PROGRAMS.glob("*.json"):
        compile_program(load_program(file.read_bytes()))
