"""Public functions document what goes in, what comes out and what can go wrong."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("controller", "host", "p4src", "switchgnn", "topologies")
FILES = sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))
# A docstring documents each argument where there are more than this.
_FEW_ARGUMENTS = 2
_COMMANDS = re.compile(r"\.(command|callback)\(")
# What a method adds to that of its base is not said again.
_ELSEWHERE = re.compile(r"\bSee ``\w+(\.\w+)?``|; see ``\w+(\.\w+)?``")
_ERROR = "SwitchGNNError"
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
        if _ELSEWHERE.search(documented):
            continue
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


def _parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def test_docstrings_have_their_sections():
    errors, public = error_names(FILES), offered(FILES)
    assert "PlannerError" in errors
    assert {"build_plan", "join"} < public
    assert [line for file in FILES for line in incomplete(file, errors, public)] == []


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
        raise MineError("no")

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
    ],
)
def test_what_is_missing_is_found(tmp_path, old, new, found):
    file = tmp_path / "module.py"
    assert GOOD.count(old) == 1
    file.write_text(GOOD.replace(old, new))
    said = incomplete(file, error_names([file]), offered([file]))
    words = [line.partition(f"{file}:")[2].partition(": ")[2] for line in said]
    assert words == ([] if found is None else [found])
