"""Tables that `printed.py` makes from the sources: the core path, and the tree of errors."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_PRODUCT = ("switchgnn", "p4src", "controller", "host", "topologies")
_BASE = "SwitchGNNError"
# Where to begin, what it is, and the entries of CORE in tests/test_structure.py.
_CORE = (
    ("p4src/ingress.p4", "the P4 program; its `apply` is a table of contents", ("p4src",)),
    (
        "controller/install.py",
        "a plan becomes tables; `controls/` has a class per P4 control",
        ("controller",),
    ),
    (
        "host/innetwork/exchange.py",
        "a worker's rounds: blocks, windows, barriers, sums",
        ("host/innetwork",),
    ),
    ("host/wire/header.py", "the packet format, links, the native receive path", ("host/wire",)),
    (
        "switchgnn/planner/build.py",
        "graph to plan: partition, blocks, order, slots",
        ("switchgnn/planner",),
    ),
)


def core_table() -> str:
    """Return the rows of the core path with its lines, to the nearest hundred."""
    from tests.test_structure import CORE, MOST_LINES_OF, NOT_CORE, size_of  # noqa: PLC0415

    def lines(entries: Iterable[str]) -> int:
        rooms = tuple(entries)
        parts = [part for part in CORE if part.startswith(rooms)]
        aside = [part for part in NOT_CORE if part.startswith(rooms)]
        return size_of(_ROOT, parts).lines - size_of(_ROOT, aside).lines

    rows = [
        f"| [{file}]({file}) | {what} | {round(lines(entries), -2):,} |"
        for file, what, entries in _CORE
    ]
    total = f"| | at most {MOST_LINES_OF['core']:,} (`tests/test_structure.py`) | |"
    return "\n".join(("| begin with | | lines |", "|---|---|---|", *rows, total))


def error_tree() -> str:
    """Return all errors of the product as nested lists, each below its base."""
    bases, where, what = {}, {}, {}
    for name, node, file in _classes():
        bases[name] = [ast.unparse(base) for base in node.bases]
        where[name] = file.relative_to(_ROOT).as_posix()
        what[name] = (ast.get_docstring(node) or "").partition("\n")[0]

    def below(base: str, depth: int) -> Iterator[str]:
        for name in sorted(name for name, of in bases.items() if base in of):
            yield f"{'    ' * depth}- `{name}` ({where[name]}): {what[name]}"
            yield from below(name, depth + 1)

    return "\n".join(below(_BASE, 0))


def _classes() -> Iterator[tuple[str, ast.ClassDef, Path]]:
    for room in _PRODUCT:
        for file in sorted((_ROOT / room).rglob("*.py")):
            # The package links to the other rooms.
            if not any(each.is_symlink() for each in (file, *file.parents)):
                for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                    if isinstance(node, ast.ClassDef):
                        yield node.name, node, file
