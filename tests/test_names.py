"""Every file that documents, comments and docstrings name exists."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("bench", "controller", "deploy", "docs", "examples", "host", "p4src", "switchgnn")
GLOSSARY = ROOT / "docs/glossary.md"
FOLDERS = [ROOT / name for name in (*ROOMS, "tests", "topologies")]
CODE = (".py", ".h", ".cc", ".p4", ".js")
NAMED = re.compile(r"(?<![\w/<.:-])(?:\.{1,2}/)*([\w/-]*\w\.(?:py|p4|h|cc|js|lua|pml))\b")
QUOTED = re.compile(r"`([^`\n]+)`")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# Placeholders, and headers of the kernel and of other projects.
ELSEWHERE = re.compile(
    r"(.*/)?FILE\.(py|p4)|mine\.py|linux/.*|(mau/)?memories\.h|device\.h|parmetis\.h"
)


def files(*suffixes: str) -> list[Path]:
    """Return the files of the checkout that have one of these suffixes."""
    inside = [file for folder in FOLDERS for file in folder.rglob("*")]
    return sorted(
        file for file in (*ROOT.glob("*"), *inside) if file.suffix in suffixes and file.is_file()
    )


@pytest.fixture(scope="module")
def known() -> frozenset[str]:
    """All files, each by its name, by its path, and by every shorter path."""
    steps = [file.relative_to(ROOT).parts for file in files(*CODE, ".lua", ".pml")]
    return frozenset("/".join(each[n:]) for each in steps for n in range(len(each)))


def unknown_files(text: str, known: frozenset[str]) -> list[str]:
    """Return the files that a text names and nobody has."""
    return [
        name
        for name in NAMED.findall(text)
        if name.removeprefix("switchgnn/") not in known
        and name not in known
        and not ELSEWHERE.fullmatch(name)
    ]


def comments(file: Path) -> Iterator[str]:
    """Yield the comments of a file, and the docstrings of Python."""
    text = file.read_text(encoding="utf-8")
    if file.suffix != ".py":
        yield from COMMENT.findall(text)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            yield ast.get_docstring(node) or ""


def test_files_that_documents_name_exist(known):
    assert {
        str(page.relative_to(ROOT)): missing
        for page in files(".md")
        if page != GLOSSARY  # It has earlier names, too.
        for missing in [unknown_files(" ".join(QUOTED.findall(page.read_text())), known)]
        if missing
    } == {}


def test_files_that_comments_name_exist(known):
    assert {
        str(file.relative_to(ROOT)): missing
        for file in files(*CODE)
        for missing in [unknown_files("\n".join(comments(file)), known)]
        if missing
    } == {}


def test_a_wrong_name_is_found(tmp_path):
    known = frozenset({"host/wire/link.py", "wire/link.py", "link.py"})
    text = "see link.py, host/wire/link.py, ../wire/link.py, host/link.py and links.py"
    assert unknown_files(text, known) == ["host/link.py", "links.py"]
    file = tmp_path / "some.py"
    file.write_text('"""Like old.py."""\nnone = "older.py"  # as in oldest.py\n')
    assert unknown_files(" ".join(comments(file)), known) == ["oldest.py", "old.py"]


def test_folders_that_the_gate_tests_exist():
    named = re.findall(r"\btests/[\w/]+", (ROOT / ".ci/run").read_text())
    assert len(named) > 5
    assert [name for name in named if not list(ROOT.glob(f"{name}*"))] == []


def test_earlier_names_stay_away():
    rows = re.findall(r"^\|.*\| (`.*) \|$", GLOSSARY.read_text(), re.MULTILINE)
    earlier = [name for row in rows for name in QUOTED.findall(row)]
    assert len(earlier) > 10
    word = re.compile(rf"(?<![\w/])({'|'.join(map(re.escape, earlier))})(?!\w)")
    found = {
        str(file.relative_to(ROOT)): word.findall(file.read_text())
        for file in files(*CODE)
        if "tests" not in file.relative_to(ROOT).parts
    }
    assert {name: words for name, words in found.items() if words} == {}
