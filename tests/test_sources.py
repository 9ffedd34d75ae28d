"""What sources must not ask: calls of the system, and deadlines of tests that are fixed.

Time and randomness are handed to whatever an exchange runs through, so that a run can be repeated.
"""

import ast
import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# Modules whose results differ from run to run, or that wait.
_MODULES = frozenset(
    {"asyncio", "datetime", "sched", "secrets", "select", "selectors", "signal", "time", "uuid"}
)
# Names in them that are harmless: pure functions of their arguments.
_SEEDED = {"random": {"Random"}, "numpy.random": {"Generator", "default_rng"}}
_NAMES = frozenset({"os.getpid", "os.getrandom", "os.times", "os.urandom", "threading.Timer"})
# String hashes differ between processes.
_BUILTINS = frozenset({"hash"})


def system_calls(file):
    """Yield (line, name) of the system calls in a file."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    aliases = dict(_aliases(tree))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update((node.lineno, name) for name in _names_imported(node) if _is_system(name))
        elif isinstance(node, ast.Attribute):
            name = _dotted(node, aliases)
            if name and _is_system(name):
                found.add((node.lineno, name))
        elif isinstance(node, ast.Call):
            found.update((node.lineno, name) for name in _unseeded(node, aliases))
    return sorted(found)


def _names_imported(node):
    if isinstance(node, ast.Import):
        return [name.name for name in node.names]
    if node.level or node.module is None:
        return []
    return [node.module, *(f"{node.module}.{name.name}" for name in node.names)]


def _aliases(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield (
                    name.asname or name.name.partition(".")[0],
                    (name.name if name.asname else name.name.partition(".")[0]),
                )
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            for name in node.names:
                yield name.asname or name.name, f"{node.module}.{name.name}"


def _dotted(node, aliases):
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in aliases:
        return None
    return ".".join([aliases[node.id], *reversed(parts)])


def _is_system(name):
    if name.partition(".")[0] in _MODULES or name in _NAMES:
        return True
    module, _, last = name.rpartition(".")
    return module in _SEEDED and last not in _SEEDED[module]


def _unseeded(node, aliases):
    """A generator without a seed is seeded by the system."""
    function = node.func
    if isinstance(function, ast.Name) and function.id in _BUILTINS:
        yield function.id
    name = (
        aliases.get(function.id) if isinstance(function, ast.Name) else _dotted(function, aliases)
    )
    module, _, last = (name or "").rpartition(".")
    if module in _SEEDED and last in _SEEDED[module] and not node.args and not node.keywords:
        yield f"{name}()"


# Files that ask the system, and what of; no exchange of several workers in one process needs them.
ALLOWED = {
    "host/worker.py": {"time"},  # a process of its own reports how long it took
    "host/reduce/worker.py": {"time"},  # as well
    # A thread of its own tells how long a round was under way, and answers the others when its
    # caller has been busy with something else for long.
    "host/direct/stream.py": {"threading", "time"},
    "host/innetwork/endpoint.py": {"secrets"},  # for who is not given one
    "host/wire/batches.py": {"select", "time"},  # waits for frames of a socket
    "host/base/pace.py": {"time"},  # a limited link waits for its turn on the line
    "host/wire/link.py": {"select"},
    "host/links/split.py": {"time"},  # two threads of one process share a link
    "host/links/recording.py": {"time"},  # a file for people says when a frame has passed
    "tests/simulation/__main__.py": {"random"},  # draws the seed that was not given
}


def asked(name):
    return {found.partition(".")[0] for _, found in system_calls(ROOT / name)}


def files():
    return sorted(
        file.relative_to(ROOT).as_posix()
        for folder in ("host", "controller", "tests/simulation")
        for file in (ROOT / folder).rglob("*.py")
    )


def test_nobody_asks_the_system():
    found = {name: system_calls(ROOT / name) for name in files() if name not in ALLOWED}
    assert {name: calls for name, calls in found.items() if calls} == {}


def test_no_permission_is_left_over():
    assert {name: asked(name) for name in ALLOWED} == ALLOWED


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import random\nrandom.random()", "random.random"),
        ("from random import Random\nRandom()", "random.Random()"),
        ("import numpy as np\nnp.random.default_rng()", "numpy.random.default_rng()"),
        ("import os\nos.getpid()", "os.getpid"),
        ("def wait():\n    from time import sleep", "time.sleep"),
        ("hash('name')", "hash"),
        ("import random\nrandom.Random(7).random()", None),
        ("import numpy as np\nnp.random.default_rng([1, 2]).integers(3)", None),
        ("def now(time):\n    return time.now()", None),
    ],
)
def test_who_asks_is_found(tmp_path, text, name):
    file = tmp_path / "asks.py"
    file.write_text(text)
    found = {found for _, found in system_calls(file)}
    assert found == set() if name is None else name in found


WAITS = {"wait", "join", "settimeout", "acquire", "create_connection"}
DEADLINES = {"timeout", "deadline"}
# Times of a model, not of this machine, and those that `pace_here` multiplies.
MODELS = {"simulated", "NetworkOptions", "Pace"}
SIMULATION = Path("tests/simulation")
# What is over sooner is meant to expire.
SHORTEST = 1.0


def of_fixed_length(text):
    """Lines with a deadline of some seconds that does not know of the machine."""
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(r"monotonic\(\) \+ (?!seconds_here)", line):
            yield number
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or is_of_a_string(node.func):
            continue
        name = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
        given = [
            each.value for each in node.keywords if each.arg in DEADLINES and name not in MODELS
        ]
        given += node.args[-1:] if name in WAITS else []
        yield from (node.lineno for value in given if is_fixed(value))


def is_of_a_string(function):
    """`join` is."""
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Constant)


def is_fixed(value):
    if isinstance(value, ast.Name):
        return value.id.isupper()
    seconds = getattr(value, "value", None)
    return isinstance(seconds, (int, float)) and seconds is not True and seconds >= SHORTEST


def test_no_deadline_is_of_fixed_length():
    found = [
        f"{path}:{line}"
        for path in sorted(Path("tests").rglob("*.py"))
        # Virtual time does not depend on the machine.
        if path.name != Path(__file__).name and SIMULATION not in path.parents
        for line in of_fixed_length(path.read_text())
    ]
    assert found == [], "take seconds_here() of tests/support/speed.py"


def test_a_deadline_of_fixed_length_is_found():
    text = """\
        process.wait(30)
        subprocess.run(command, timeout=SECONDS)
        end = time.monotonic() + 20
        thread.join(seconds_here(30))
        child.wait(0.2)
        ", ".join(words.split())
        socket.create_connection(address, 5)
    """
    assert sorted(of_fixed_length(textwrap.dedent(text))) == [1, 2, 3, 7]
