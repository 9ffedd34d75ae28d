# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What sources must say and must not ask: docstrings, calls of the system, deadlines of tests.

Public functions say what goes in, what comes out and what can go wrong; ruff checks the rest. Time
and randomness are handed to whatever an exchange runs through, so that a run can be repeated.
"""

import ast
import re
import textwrap
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BENCH = ROOT / "bench"
FOLDERS = ("bench", "controller", "host", "p4src", "switchgnn", "topologies")
FILES = sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))
# A docstring must say what each argument is where there are more than this.
_FEW_ARGUMENTS = 2
_COMMANDS = re.compile(r"\.(command|callback)\(")
_ERROR = "SwitchGNNError"
_WORDS = re.compile(r"\b(whoever|so many)\b", re.IGNORECASE)
_NOTHING = ("None", "Never", "NoReturn")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def error_names(files: Iterable[Path]) -> frozenset[str]:
    """Return the names of our errors that these files define, and of their base."""
    bases = {
        node.name: {base.id for base in node.bases if isinstance(base, ast.Name)}
        for file in files
        for node in ast.walk(_parse(file))
        if isinstance(node, ast.ClassDef)
    }
    known = {_ERROR}
    while more := {name for name, of in bases.items() if of & known} - known:
        known |= more
    return frozenset(known)


def offered(files: Iterable[Path]) -> frozenset[str]:
    """Return all names in lists ``__all__`` of these files."""
    return frozenset(
        name
        for file in files
        for node in _parse(file).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        for name in ast.literal_eval(node.value)
    )


def incomplete(file: Path, errors: frozenset[str], public: frozenset[str]) -> list[str]:
    """Return the sections that docstrings of public functions and classes of a file lack."""
    found = []
    for name, node in _public(_parse(file)):
        if name.partition(".")[0] not in public:
            continue
        documented = ast.get_docstring(node) or ""
        missing = [
            section
            for section in _needed(node, errors)
            if not any(f"{word}:" in documented.splitlines() for word in section.split("/"))
        ]
        found += [f"{file}:{node.lineno}: {name} has no {section}:" for section in missing]
    return found


def _public(tree: ast.Module) -> Iterator[tuple[str, Function | ast.ClassDef]]:
    for node in tree.body:
        if isinstance(node, (*Function.__args__, ast.ClassDef)) and not node.name.startswith("_"):
            yield node.name, node
            if isinstance(node, ast.ClassDef):
                for method in node.body:
                    if isinstance(method, Function) and not method.name.startswith("_"):
                        yield f"{node.name}.{method.name}", method


def _needed(node: Function | ast.ClassDef, errors: frozenset[str]) -> list[str]:
    if isinstance(node, ast.ClassDef):
        made = [it for it in node.body if isinstance(it, Function) and it.name == "__init__"]
        return ["Args"] if any(_arguments(it) > _FEW_ARGUMENTS for it in made) else []
    if _is_command(node) or _arguments(node) <= _FEW_ARGUMENTS:
        return []
    needed = ["Args"]
    if node.returns is None or ast.unparse(node.returns) not in _NOTHING:
        needed.append("Returns/Yields")
    if errors.intersection(_raised(node)):
        needed.append("Raises")
    return needed


def _is_command(node: Function) -> bool:
    """Whether its docstring is the help of a command."""
    return any(_COMMANDS.search(ast.unparse(each)) for each in node.decorator_list)


def _arguments(node: Function) -> int:
    known = node.args
    named = [it.arg for it in (*known.posonlyargs, *known.args, *known.kwonlyargs)]
    rest = [it for it in (known.vararg, known.kwarg) if it is not None]
    return len([name for name in named if name not in ("self", "cls")]) + len(rest)


def _raised(node: ast.AST) -> Iterator[str]:
    """Yield the names of errors that a function raises itself, not in nested functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (*Function.__args__, ast.Lambda)):
            continue
        if isinstance(child, ast.Raise) and child.exc is not None:
            raised = child.exc.func if isinstance(child.exc, ast.Call) else child.exc
            yield ast.unparse(raised).rpartition(".")[2]
        yield from _raised(child)


def strange_words(file: Path) -> list[str]:
    """Return where docstrings and comments of a file have one of _WORDS."""
    documented = (ast.Module, ast.ClassDef, *Function.__args__)
    texts = [
        (node.body[0].lineno, ast.get_docstring(node) or "")
        for node in ast.walk(_parse(file))
        if isinstance(node, documented) and ast.get_docstring(node)
    ]
    texts += _comments(file)
    return [
        f"{file}:{line}: {word}"
        for line, text in sorted(texts)
        for word in _WORDS.findall(" ".join(text.split()))
    ]


def _comments(file: Path) -> list[tuple[int, str]]:
    """Return the comments; consecutive lines are joined."""
    found: list[tuple[int, str]] = []
    last = 0
    with tokenize.open(file) as text:
        for token in tokenize.generate_tokens(text.readline):
            if token.type == tokenize.COMMENT:
                words = token.string.lstrip("# ")
                line = token.start[0]
                if found and line == last + 1:
                    found[-1] = (found[-1][0], f"{found[-1][1]} {words}")
                else:
                    found.append((line, words))
                last = line
    return found


def _parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def test_docstrings_have_their_sections():
    errors = error_names(FILES)
    assert "PlannerError" in errors
    public = offered(FILES)
    assert {"build_plan", "join"} < public
    assert [
        line
        for file in FILES
        if BENCH not in file.parents
        for line in incomplete(file, errors, public)
    ] == []


def test_docstrings_and_comments_are_in_plain_words():
    assert [line for file in FILES for line in strange_words(file)] == []


GOOD = '''
"""A module."""

__all__ = ["Thing", "nothing"]


class MineError(SwitchGNNError):
    """Ours."""


class Thing:
    def make(self, a: int, b: int, *, c: int) -> int:
        """Make one.

        Args:
            a: of three.

        Returns:
            It.

        Raises:
            MineError: never.
        """
        raise MineError("no")  # for many reasons

    def _own(self, a: int, b: int, c: int) -> int:
        return a


def nothing(a: int, b: int, c: int) -> None:
    """Do nothing.

    Args:
        a: of three.
    """

    def inside() -> None:
        raise MineError("no")

    raise ValueError("not ours")
'''


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("A module", "A module", None),
        ("one.\n\n        Args:\n            a: of three.\n", "one.\n", "Thing.make has no Args:"),
        ("        Returns:\n            It.\n", "", "Thing.make has no Returns/Yields:"),
        ("Returns:\n            It", "Yields:\n            It", None),
        ("Raises:\n            MineError: never.", "", "Thing.make has no Raises:"),
        ('raise ValueError("not ours")', 'raise other.MineError("no")', "nothing has no Raises:"),
        ("def nothing(", "@app.command()\ndef nothing(", None),
        ("Ours.", "Ours, and so\n    many others.", "so many"),
        ("# for many reasons", "# for so\n        # many reasons", "so many"),
    ],
)
def test_what_is_missing_is_found(tmp_path, old, new, found):
    file = tmp_path / "module.py"
    assert GOOD.count(old) == 1
    file.write_text(GOOD.replace(old, new))
    said = incomplete(file, error_names([file]), offered([file])) + strange_words(file)
    words = [line.partition(f"{file}:")[2].partition(": ")[2] for line in said]
    assert words[:1] == ([] if found is None else [found])


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
    # A limited link waits for its turn on the line.
    "host/wire/link.py": {"time", "select"},
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
