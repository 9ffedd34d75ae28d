# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Finds where a program asks the system for time, randomness or sleep, in its syntax tree."""

import ast
from pathlib import Path

# Modules whose results differ from run to run, or that wait.
MODULES = frozenset(
    {"asyncio", "datetime", "sched", "secrets", "select", "selectors", "signal", "time", "uuid"}
)
# Names in them that are harmless: pure functions of their arguments.
SEEDED = {"random": {"Random"}, "numpy.random": {"Generator", "default_rng"}}
NAMES = frozenset({"os.getpid", "os.getrandom", "os.times", "os.urandom", "threading.Timer"})
# String hashes differ between processes.
BUILTINS = frozenset({"hash"})


def system_calls(file):
    """Yield (line, name) of the system calls in a file."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    aliases = dict(_aliases(tree))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update((node.lineno, name) for name in _imported(node) if _is_system(name))
        elif isinstance(node, ast.Attribute):
            name = _dotted(node, aliases)
            if name and _is_system(name):
                found.add((node.lineno, name))
        elif isinstance(node, ast.Call):
            found.update((node.lineno, name) for name in _unseeded(node, aliases))
    return sorted(found)


def _imported(node):
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
    if name.partition(".")[0] in MODULES or name in NAMES:
        return True
    module, _, last = name.rpartition(".")
    return module in SEEDED and last not in SEEDED[module]


def _unseeded(node, aliases):
    """A generator without a seed is seeded by the system."""
    function = node.func
    if isinstance(function, ast.Name) and function.id in BUILTINS:
        yield function.id
    name = (
        aliases.get(function.id) if isinstance(function, ast.Name) else _dotted(function, aliases)
    )
    module, _, last = (name or "").rpartition(".")
    if module in SEEDED and last in SEEDED[module] and not node.args and not node.keywords:
        yield f"{name}()"
