"""Any program either loads as generated code alone, or is refused with a sentence."""

import copy
import json
import os
import random
from pathlib import Path

import pytest

from switchgnn.softswitch.base.errors import SoftSwitchError
from switchgnn.softswitch.forwarding import Forwarder
from switchgnn.softswitch.lowering.loader import GivenProgram
from switchgnn.softswitch.native.source import program_source
from tests.softswitch.harness import config_bytes

MARK = "planted_mark"
STATEMENT = f"0\n open('{MARK}', 'w')\nif 1"
ALL = os.environ.get("SWITCHGNN_LEVEL") == "all"
NAMES = ("controller", "fates", "headers", "loops", "tables")
WRONG = (
    *(STATEMENT, MARK),
    *(f"0): pass\n{MARK}()\ndef x(", f"0; {MARK}()", f"{MARK}()"),
    *(f"__import__('os').system('touch {MARK}')", f"x', {MARK}(), '", f'"""{MARK}()"""'),
    *(f"\\\n{MARK}()", f"h0_0 = {MARK}()", f"{MARK}\u2028{MARK}()"),
    {"type": "hexstr", "value": STATEMENT},
    {"type": "expression", "value": {"op": STATEMENT, "left": None, "right": None}},
    {"type": "expression", "value": {"op": "+", "left": 1, "right": STATEMENT}},
    {"type": "bool", "value": STATEMENT},
    {"type": "runtime_data", "value": STATEMENT},
    {"type": "lookahead", "value": [0, STATEMENT]},
    *(None, True, False, -1, 0, 1, 511, 1 << 16, 1 << 24, 1 << 33, 1.5),
    *("", "x", "0x", "0x0", "-0x1", "0x" + "f" * 40, "*", "$valid$", "default", "\ud800"),
    *([], {}, [[]], ["x", "y"], {"type": "field", "value": ["x", "y"]}),
)
HOWS = ("remove", "repeat", "wrong", "wrong", "same") * (20 if ALL else 1)


def places(node, kind=()):
    """Yield the kind (the last names of the way to it) and the place of each value."""
    for step, inner in list(node.items()) if isinstance(node, dict) else list(enumerate(node)):
        here = (*kind, step if isinstance(step, str) else "")[-3:]
        if step != "source_info":
            yield here, node, step
        if isinstance(inner, (dict, list)):
            yield from places(inner, here)


def changes(document, kind, chosen):
    """Remove, repeat and replace values of a kind, mostly by others of the same type."""
    everywhere = list(places(document))
    of_kind = [(node, step) for each, node, step in everywhere if each == kind]
    for how in HOWS:
        node, step = chosen.choice(of_kind)
        before = copy.copy(node)
        if how == "remove":
            del node[step]
        elif how == "repeat" and isinstance(node, list):
            node.insert(step, node[step])
        elif how == "same":
            same = [n[s] for _, n, s in everywhere if type(n[s]) is type(node[step])]
            node[step] = copy.deepcopy(chosen.choice(same))
        else:
            node[step] = chosen.choice(WRONG)
        yield json.dumps(document).encode()
        node.clear()
        (node.update if isinstance(node, dict) else node.extend)(before)


def make(config):
    """Do all that installing a program does, except compiling C++."""
    given = GivenProgram(config)
    Forwarder(given.lowered, depth=1, senders={})
    return program_source(given.lowered)


def first_with_each_kind():
    """Return the kinds of values of each program that no smaller one has."""
    seen, found = set(), {}
    for name in sorted(NAMES, key=lambda name: len(config_bytes(name))):
        kinds = {kind for kind, _, _ in places(json.loads(config_bytes(name)))}
        found[name] = sorted(kinds if ALL else kinds - seen)
        seen |= kinds
    return found


KINDS = first_with_each_kind()


@pytest.mark.parametrize("name", KINDS)
def test_a_changed_program_loads_or_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    chosen, good = random.Random(name), config_bytes(name)
    make(good)
    tried = loaded = 0
    for kind in KINDS[name]:
        for config in changes(json.loads(good), kind, chosen):
            tried += 1
            try:
                source = make(config)
            except SoftSwitchError as error:
                assert "\n" not in str(error)
            else:
                loaded += 1
                assert MARK not in source
    assert tried / 50 < loaded < tried
    assert not Path(MARK).exists()
