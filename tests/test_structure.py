"""The order of the rooms that docs/architecture.md promises, without circles, and budgets of size.

Modules are read and not run. Each check is tried on a small tree with a violation, too.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT_FOLDER = Path(__file__).parent.parent
PACKAGE = "switchgnn"
BENCH, TESTS = "bench", "tests"
# A benchmark measures it.
SIMULATION = "tests.simulation."
# A longer module holds more than one idea; a shorter one belongs to its only importer.
FEWEST_LINES, MOST_LINES = 60, 600
# Files that somebody has written: JSON counts where it is (in tests and in `compiled` it is made).
SOURCES = (".p4", ".py", ".h", ".cc", ".js", ".css", ".html", ".toml")
# What each room may import besides itself; modules of `switchgnn/` itself are ROOT.
ROOT, LAB = "switchgnn", "lab"
PARTS: Mapping[str, frozenset[str]] = {
    ROOT: frozenset(),
    "base": frozenset({ROOT}),
    "softswitch": frozenset({"base"}),
    "p4src": frozenset({"base"}),
    "planner": frozenset({"base"}),
    "controller": frozenset({"base", "planner", "p4src"}),
    "host": frozenset({"base", "planner"}),
    "profiles": frozenset({"base", "planner", "controller", "p4src"}),
    "topologies": frozenset({"base", "planner", "controller", "host", "softswitch"}),
    "training": frozenset({"base", "planner", "controller", "host", "p4src"}),
    "torch_backend": frozenset({"host", "training"}),
    "torch": frozenset({"base", "torch_backend", "training"}),
    "train": frozenset({"training"}),
    "dgl": frozenset({"base", "training"}),
    "capture": frozenset({"base", "host"}),
    "live": frozenset({"base", "controller", "host"}),
}
JOBS, COMMANDS = "jobs", "commands"
# A benchmark uses the soft switch through topologies.
_MOST = frozenset(PARTS) - {"softswitch"}
ORDER = {
    **PARTS,
    JOBS: frozenset(PARTS) - {"torch", "torch_backend", "train", "dgl", "capture"},
    COMMANDS: frozenset(PARTS) | {JOBS},
    LAB: frozenset(PARTS) | {JOBS, COMMANDS},
    BENCH: _MOST | {JOBS, COMMANDS, LAB},
}
# A switch that knows nothing of SwitchGNN has little of ours.
_FOR_A_SWITCH = ("errors", "native", "files", "udp_socket", "options")
ONLY = {"softswitch": frozenset(f"{PACKAGE}.base.{name}" for name in _FOR_A_SWITCH)}


@dataclass(frozen=True)
class Tree:
    """The modules of a checkout."""

    # of each module, by its dotted name; a package: that of its `__init__.py`
    files: Mapping[str, Path]
    imports: Mapping[str, frozenset[str]]  # of each module, those of `files` that it imports
    # of each module, the names that it imports from elsewhere
    foreign: Mapping[str, frozenset[str]]


def read_tree(root: Path) -> Tree:
    """Read all modules of a checkout except its tests."""
    files = dict(_modules(root))
    found = {name: set(_imported(name, file)) for name, file in files.items()}
    imports, foreign = {}, {}
    for name, words in found.items():
        known = {known for word in words for known in [_module(word, files)] if known}
        imports[name] = frozenset(known - {name})
        foreign[name] = frozenset(word for word in words if _module(word, files) is None)
    return Tree(files, imports, foreign)


def _modules(root: Path) -> Iterator[tuple[str, Path]]:
    for folder in sorted(path for path in root.iterdir() if path.is_dir()):
        if folder.name == PACKAGE or folder.name == BENCH:
            prefix: tuple[str, ...] = ()
        elif (root / PACKAGE / folder.name).is_symlink():
            prefix = (PACKAGE,)
        else:
            continue
        for file in sorted(folder.rglob("*.py")):
            steps = [*prefix, *file.relative_to(root).with_suffix("").parts]
            yield ".".join(steps[:-1] if steps[-1] == "__init__" else steps), file


def _imported(name: str, file: Path) -> Iterator[str]:
    """Yield the dotted names of all imports of a file, also inside functions."""
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = ""
            if node.level:
                steps = package.split(".")
                start = ".".join(steps[: len(steps) - node.level + 1])
            module = ".".join(filter(None, (start, node.module)))
            yield from (f"{module}.{alias.name}" for alias in node.names)


def _module(word: str, files: Mapping[str, Path]) -> str | None:
    """Return the module that `word` names, or that defines it."""
    if word in files:
        return word
    parent = word.rpartition(".")[0]
    return parent if parent in files else None


def module_circles(tree: Tree) -> list[str]:
    """Return modules that import each other, directly or through others."""
    return [f"modules: {' - '.join(circle)}" for circle in _circles(tree.imports)]


def folder_circles(tree: Tree) -> list[str]:
    """Return entries of one folder that need each other; its `__init__.py` may need all."""
    folders = {name.rpartition(".")[0] for name in tree.files} - {""}
    found = []
    for folder in sorted(folders):
        needs: dict[str, set[str]] = {}
        for name, others in tree.imports.items():
            child = _child(folder, name)
            if child is not None:
                needed = {_child(folder, other) for other in others} - {None, child}
                needs.setdefault(child, set()).update(filter(None, needed))
        found += [f"{folder}: {' - '.join(circle)}" for circle in _circles(needs)]
    return found


def floor_circles(tree: Tree) -> list[str]:
    """Return packages of one room that need each other; the room's own modules are one package."""
    found = []
    for room in sorted(set(ORDER) - {BENCH, ROOT}):
        folder = f"{PACKAGE}.{room}"
        packages = {_child(folder, name) for name in tree.files if name.count(".") > 2} - {None}
        needs: dict[str, set[str]] = {}
        for name, others in tree.imports.items():
            floors = [_child(folder, each) for each in (name, *others)]
            own, *needed = [floor if floor in packages else floor and room for floor in floors]
            if own is not None:
                needs.setdefault(own, set()).update(filter(None, set(needed) - {own}))
        found += [f"{folder}: {' - '.join(circle)}" for circle in _circles(needs)]
    return found


def _child(folder: str, name: str) -> str | None:
    """Return the entry of the folder that a module is, or is in."""
    if not name.startswith(f"{folder}."):
        return None
    return name[len(folder) + 1 :].partition(".")[0]


def _circles(needs: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return strongly connected components of two or more."""
    reached = {name: _reach(name, needs) for name in needs}
    groups = {
        tuple(sorted(other for other in reached[name] if name in reached.get(other, ())))
        for name in needs
    }
    return [list(group) for group in sorted(groups) if len(group) > 1]


def _reach(name: str, needs: Mapping[str, Iterable[str]]) -> set[str]:
    found: set[str] = set()
    left = [name]
    while left:
        for other in needs.get(left.pop(), ()):
            if other not in found:
                found.add(other)
                left.append(other)
    return found


def against_the_order(tree: Tree) -> list[str]:
    """Return imports of a part that comes later in ORDER."""
    found = []
    for name, others in tree.imports.items():
        part = part_of(name)
        for other in others:
            if part not in ORDER:
                found.append(f"{part} is no part that ORDER knows")
            elif part_of(other) != part and (
                part_of(other) not in ORDER[part] or other not in ONLY.get(part, (other,))
            ):
                found.append(f"{name} imports {other}")
    return sorted(set(found))


def part_of(name: str) -> str:
    steps = name.split(".")
    if name == f"{PACKAGE}.__main__":
        return COMMANDS  # where Python wants it, but all it does is to run them
    return steps[1] if steps[0] == PACKAGE and len(steps) > 1 and _is_part(steps) else steps[0]


def _is_part(steps: list[str]) -> bool:
    # Files of the package's own folder, such as errors.py, belong to no part.
    return len(steps) > 2 or steps[1] in ORDER


def of_tests_or_bench(tree: Tree) -> list[str]:
    """Return imports of tests and benchmarks; a benchmark may import others and the simulation."""
    return sorted(
        f"{name} imports {word}"
        for name in tree.files
        for word in tree.foreign[name] | tree.imports[name]
        if word.split(".")[0] in (TESTS, BENCH)
        and not (part_of(name) == BENCH and word.startswith((f"{BENCH}.", SIMULATION)))
    )


def misplaced_modules(tree: Tree) -> list[str]:
    """Return modules that are too long, or short with a single importer."""
    importers = Counter(
        other for name, others in tree.imports.items() if part_of(name) != BENCH for other in others
    )
    found = []
    for name, file in tree.files.items():
        text = file.read_text(encoding="utf-8")
        lines = len(text.splitlines())
        # A command is found by its name, and imported late; a class of a control as its P4 file.
        command = "typer.Typer(" in text or ".controls." in name
        if part_of(name) == BENCH or file.name in ("__init__.py", "__main__.py") or command:
            continue
        if lines > MOST_LINES:
            found.append(f"{name} has {lines} lines")
        elif lines < FEWEST_LINES and importers[name] == 1:
            found.append(f"{name} has {lines} lines and one importer")
    return sorted(found)


@dataclass(frozen=True)
class Size:
    files: int
    lines: int


def size_of(root: Path, parts: Iterable[str], more: tuple[str, ...] = ()) -> Size:
    """Count files and lines without generated ones; `more` are suffixes besides SOURCES."""
    files = [file for part in parts for file in _sources(root / part, (*SOURCES, *more))]
    return Size(len(files), sum(_lines(file) for file in files))


def _sources(path: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for file in sorted(path.rglob("*")):
        inside = file.relative_to(path).parts
        linked = any((path / Path(*inside[:depth])).is_symlink() for depth in range(1, len(inside)))
        if file.is_file() and file.suffix in suffixes and "compiled" not in inside and not linked:
            yield file


def _lines(file: Path) -> int:
    return len(file.read_text(encoding="utf-8").splitlines())


PRODUCT = ("controller", "host", "p4src", PACKAGE, "topologies")
# "Read the core" in README.md: every user runs it, and every contributor reads it.
CORE = (
    *("p4src", "controller", "host/innetwork", "host/wire"),
    *(f"{PACKAGE}/planner/{name}.py" for name in ("build", "graphs/graph", "graphs/boundary")),
    *(f"{PACKAGE}/planner/{name}" for name in ("plan", "blocks/mlgp.py", "partition/metis.py")),
    *(f"{PACKAGE}/planner/sending/{name}.py" for name in ("order", "packets")),
)
# A baseline, another target, and what operators read and do beside installs, with several jobs on a
# switch.
NOT_CORE = (
    "p4src/strawman",
    "p4src/tofino",
    *(
        f"controller/{name}.py"
        for name in ("metrics", "watch", "show", "admission", "jobs", "controls/one_bank")
    ),
)
# Only an issue that says so may raise a number here: a change that does not fit makes room first.
MOST_LINES_OF = {"product": 65_000, "core": 14_500, "tests": 58_000, "docs": 6_500}


@pytest.fixture(scope="module")
def tree():
    return read_tree(ROOT_FOLDER)


def test_all_parts_are_read(tree):
    read = {name.split(".")[1] for name in tree.files if name.count(".") > 1}
    modules = {"p4src", "dgl", "torch", "torch_backend", "train"}
    assert set(ORDER) - {PACKAGE, BENCH} - read <= modules
    assert f"{PACKAGE}.p4src.program" in tree.files
    assert tree.imports[f"{PACKAGE}.controller.base.plan"]
    assert f"{PACKAGE}.base.errors" in tree.imports[f"{PACKAGE}.host.base.errors"]


def test_no_module_imports_itself_through_others(tree):
    assert module_circles(tree) == []


def test_no_files_and_folders_of_a_folder_need_each_other(tree):
    assert folder_circles(tree) == []


def test_the_packages_of_a_room_stand_on_each_other(tree):
    assert floor_circles(tree) == []


def test_no_part_knows_a_later_one(tree):
    assert against_the_order(tree) == []


def test_nothing_imports_tests_and_the_product_no_benchmarks(tree):
    assert of_tests_or_bench(tree) == []


def test_modules_hold_one_idea_each(tree):
    assert misplaced_modules(tree) == []


def lines_of(root: Path) -> dict[str, int]:
    """Count the lines of each entry of MOST_LINES_OF."""
    core, aside = (size_of(root, parts).lines for parts in (CORE, NOT_CORE))
    return {
        "product": size_of(root, PRODUCT, (".json",)).lines,
        "core": core - aside,
        "tests": size_of(root, (TESTS,)).lines,
        "docs": size_of(root, ("docs",), (".md",)).lines,
    }


# Until it reaches its number, a room does not grow beyond these; lower them as it shrinks.
MOST_FOR_NOW = {"product": 75_907, "core": 14_243, "tests": 62_492, "docs": 6_500}
MOST_FILES = {"product": 433, "core": 93}


def test_the_host_in_scapy_fits_a_lesson():
    assert len((ROOT_FOLDER / "host/scapy_host/host.py").read_text().splitlines()) <= 200


def test_no_room_grows_meanwhile():
    lines = lines_of(ROOT_FOLDER)
    assert {name: lines[name] for name, most in MOST_FOR_NOW.items() if lines[name] > most} == {}
    core, aside = (size_of(ROOT_FOLDER, parts).files for parts in (CORE, NOT_CORE))
    files = {"product": size_of(ROOT_FOLDER, PRODUCT).files, "core": core - aside}
    assert {name: files[name] for name, most in MOST_FILES.items() if files[name] > most} == {}


# Strict: the mark goes in the commit that reaches the number.
UNREACHED = pytest.mark.xfail(reason="the tree is being cut down to these numbers", strict=True)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("product", marks=UNREACHED),
        "core",
        pytest.param("tests", marks=UNREACHED),
        "docs",
    ],
)
def test_no_room_has_more_lines_than_its_budget(name, capsys):
    lines, most = lines_of(ROOT_FOLDER)[name], MOST_LINES_OF[name]
    with capsys.disabled():
        sys.stdout.write(f"\n{name}: {lines:,} lines of {most:,}\n")
    assert lines <= most


def classes_by_name(tree: Tree) -> dict[str, list[str]]:
    """Return the modules of each name that several classes have; nested classes do not count."""
    found: dict[str, list[str]] = {}
    for name, file in tree.files.items():
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(name)
    return {name: modules for name, modules in found.items() if len(modules) > 1}


def test_no_two_classes_have_one_name(tree):
    assert classes_by_name(tree) == {}


# A tree without any violation; `host` is linked into the package, as in the checkout.
CLEAN = {
    "switchgnn/__init__.py": "",
    "switchgnn/base/arrays.py": "",
    "switchgnn/base/errors.py": "class SwitchGNNError(Exception): ...",
    "switchgnn/planner/__init__.py": "from switchgnn.planner.build import plan",
    "switchgnn/planner/build.py": "from switchgnn.planner.cut import metis, refine",
    "switchgnn/planner/choice.py": "",
    "switchgnn/planner/order.py": "import switchgnn.planner.cut.refine",
    "switchgnn/planner/cut/__init__.py": "",
    "switchgnn/planner/cut/metis.py": "from ...base.errors import SwitchGNNError",
    "switchgnn/planner/cut/refine.py": "from switchgnn.planner.cut.metis import cut",
    "host/__init__.py": "",
    "host/worker.py": "def work():\n    from switchgnn.planner import plan",
    "bench/__init__.py": "",
    "bench/measure.py": "import switchgnn.host.worker",
    "tests/test_all.py": "import bench.measure",
}


def plant(root, changes):
    for name, text in {**CLEAN, **changes}.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (root / "switchgnn" / "host").symlink_to(Path("..", "host"))
    return read_tree(root)


METIS = "switchgnn/planner/cut/metis.py"


@pytest.mark.parametrize(
    ("file", "text", "found"),
    [
        ("bench/measure.py", "import switchgnn.host.worker", {}),
        (
            METIS,
            "def late():\n    from switchgnn.planner.cut import refine",
            {"module_circles": "metis - ", "folder_circles": "metis - refine"},
        ),
        (
            METIS,
            "from ..order import first",
            {"module_circles": "", "folder_circles": "cut - order", "floor_circles": ""},
        ),
        (METIS, "from switchgnn.planner.choice import first", {"floor_circles": "cut - planner"}),
        (
            "switchgnn/base/arrays.py",
            "import switchgnn.host.worker",
            {"folder_circles": "", "against_the_order": ""},
        ),
        (
            "switchgnn/softswitch/switch.py",
            "import switchgnn.base.arrays\nfrom switchgnn.base.errors import SwitchGNNError",
            {"against_the_order": "switchgnn.softswitch.switch imports switchgnn.base.arrays"},
        ),
        (
            "switchgnn/colours/red.py",
            "import json, switchgnn.base",
            {"against_the_order": "colours is no"},
        ),
        (
            "host/worker.py",
            "from tests.test_all import x",
            {"of_tests_or_bench": "host.worker imports tests"},
        ),
        (
            "host/worker.py",
            "from tests.simulation.soak import Soak",
            {"of_tests_or_bench": "host.worker imports tests"},
        ),
        (
            "bench/measure.py",
            "import tests.test_all",
            {"of_tests_or_bench": "measure imports tests"},
        ),
        ("bench/measure.py", "from tests.simulation.soak import Soak", {}),
    ],
)
def test_a_violation_is_found(tmp_path, file, text, found):
    tree = plant(tmp_path, {file: text})
    checks = (module_circles, folder_circles, floor_circles, against_the_order, of_tests_or_bench)
    said = {check.__name__: check(tree) for check in checks if check(tree)}
    assert said.keys() == found.keys()
    assert all(found[name] in lines[0] for name, lines in said.items())


@pytest.mark.parametrize(
    ("lines", "importers", "found"),
    [
        (FEWEST_LINES - 1, 1, ["switchgnn.host.link has 59 lines and one importer"]),
        (FEWEST_LINES - 1, 2, []),
        (MOST_LINES, 1, []),
        (MOST_LINES + 1, 2, ["switchgnn.host.link has 601 lines"]),
    ],
)
def test_a_misplaced_module_is_found(tmp_path, lines, importers, found):
    users = {f"host/user_{n}.py": "import switchgnn.host.link" for n in range(importers)}
    tree = plant(tmp_path, {**users, "host/link.py": "\n" * lines})
    assert [each for each in misplaced_modules(tree) if "link" in each] == found
    assert size_of(tmp_path, ("host",)) == Size(3 + importers, lines + 2 + importers)
