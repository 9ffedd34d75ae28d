# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What docstrings and comments leave out or should not say, read from the files."""

import ast
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

# A docstring must say what each argument is where there are more than this.
FEW_ARGUMENTS = 2
COMMANDS = re.compile(r"\.(command|callback)\(")
ERROR = "SwitchGNNError"
WORDS = re.compile(r"\b(whoever|so many)\b", re.IGNORECASE)
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
    known = {ERROR}
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
        return ["Args"] if any(_arguments(it) > FEW_ARGUMENTS for it in made) else []
    if _is_command(node) or _arguments(node) <= FEW_ARGUMENTS:
        return []
    needed = ["Args"]
    if node.returns is None or ast.unparse(node.returns) not in _NOTHING:
        needed.append("Returns/Yields")
    if errors.intersection(_raised(node)):
        needed.append("Raises")
    return needed


def _is_command(node: Function) -> bool:
    """Whether its docstring is the help of a command."""
    return any(COMMANDS.search(ast.unparse(each)) for each in node.decorator_list)


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
    """Return where docstrings and comments of a file have one of WORDS."""
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
        for word in WORDS.findall(" ".join(text.split()))
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
