"""Public functions document what goes in, what comes out and what can go wrong."""

import ast
import re
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
_OFFERED = re.compile(r"^__all__ = (\[.*?\])", re.MULTILINE | re.DOTALL)
_ERROR = re.compile(r"^class (\w+Error)\(", re.MULTILINE)
_NOTHING = ("None", "Never", "NoReturn")


def names_in(files, pattern):
    return {found for file in files for found in pattern.findall(file.read_text(encoding="utf-8"))}


def offered(files):
    return {name for names in names_in(files, _OFFERED) for name in ast.literal_eval(names)}


def incomplete(file, errors, public):
    """Yield the sections that docstrings of public functions and classes of a file lack."""
    for name, node in _public(ast.parse(file.read_text(encoding="utf-8"))):
        documented = ast.get_docstring(node) or ""
        if name.partition(".")[0] not in public or _ELSEWHERE.search(documented):
            continue
        for section in _needed(node, errors):
            if not any(f"{word}:" in documented.splitlines() for word in section.split("/")):
                yield f"{file}:{node.lineno}: {name} has no {section}:"


def _public(tree, prefix=""):
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield prefix + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from _public(node, f"{node.name}.")


def _needed(node, errors):
    """Yield the sections that the docstring of a function or class needs."""
    if isinstance(node, ast.ClassDef):
        made = [it for it in node.body if getattr(it, "name", "") == "__init__"]
        yield from ["Args" for it in made if _arguments(it) > _FEW_ARGUMENTS]
        return
    # The docstring of a command is its help.
    if any(_COMMANDS.search(ast.unparse(each)) for each in node.decorator_list):
        return
    if _arguments(node) <= _FEW_ARGUMENTS:
        return
    yield "Args"
    if node.returns is None or ast.unparse(node.returns) not in _NOTHING:
        yield "Returns/Yields"
    raised = [it.exc for it in ast.walk(node) if isinstance(it, ast.Raise) and it.exc is not None]
    if {ast.unparse(getattr(exc, "func", exc)).rpartition(".")[2] for exc in raised} & errors:
        yield "Raises"


def _arguments(node):
    known = node.args
    named = [it.arg for it in (*known.posonlyargs, *known.args, *known.kwonlyargs)]
    rest = [it for it in (known.vararg, known.kwarg) if it is not None]
    return len([name for name in named if name not in ("self", "cls")]) + len(rest)


def test_docstrings_have_their_sections():
    errors, public = names_in(FILES, _ERROR), offered(FILES)
    assert "PlannerError" in errors
    assert {"build_plan", "join"} < public
    assert [line for file in FILES for line in incomplete(file, errors, public)] == []


GOOD = '''
__all__ = ["Thing"]


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
'''


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("Make one", "Make some", []),
        (
            "one.\n\n        Args:\n            a: of three.\n",
            "one.\n",
            ["Thing.make has no Args:"],
        ),
        ("        Returns:\n            It.\n", "", ["Thing.make has no Returns/Yields:"]),
        ("Raises:\n            MineError: never.", "", ["Thing.make has no Raises:"]),
        ("    def make(", "    @app.command()\n    def make(", []),
    ],
)
def test_what_is_missing_is_found(tmp_path, old, new, found):
    file = tmp_path / "module.py"
    assert GOOD.count(old) == 1
    file.write_text(GOOD.replace(old, new))
    said = incomplete(file, names_in([file], _ERROR), offered([file]))
    assert [line.partition(f"{file}:")[2].partition(": ")[2] for line in said] == found
