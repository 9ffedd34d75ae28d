# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The order of the parts that docs/architecture.md promises, and no circles in it.

Each check is tried on a small tree with a violation, too.
"""

import sys
from pathlib import Path

import pytest

from tests.support.structure import (
    BENCH,
    FEWEST_LINES,
    MOST_LINES,
    ORDER,
    PACKAGE,
    Size,
    against_the_order,
    folder_circles,
    misplaced_modules,
    module_circles,
    of_tests_or_bench,
    read_tree,
    size_of,
)

ROOT = Path(__file__).parent.parent
PRODUCT = ("controller", "host", "p4src", PACKAGE, "topologies")
# "Read the core" in README.md: every user runs it, and every contributor reads it.
CORE = (
    *("p4src", "controller", "host/innetwork", "host/wire"),
    *(f"{PACKAGE}/planner/{name}.py" for name in ("build", "graphs/graph", "graphs/boundary")),
    *(f"{PACKAGE}/planner/{name}" for name in ("plan", "blocks/mlgp.py", "partition/metis.py")),
    *(f"{PACKAGE}/planner/sending/{name}.py" for name in ("order", "packets")),
)
NOT_CORE = ("controller/metrics.py", "controller/watch.py", "host/wire/faults.py")
# Growth is a decision: raise a number here only together with a reason in the commit.
MOST_OF_PRODUCT, MOST_OF_CORE = Size(462, 81_300), Size(110, 15_900)


@pytest.fixture(scope="module")
def tree():
    return read_tree(ROOT)


def test_all_parts_are_read(tree):
    read = {name.split(".")[1] for name in tree.files if name.count(".") > 1}
    assert set(ORDER) - {PACKAGE, BENCH} - read <= {"p4src", "torch", "train"}
    assert f"{PACKAGE}.p4src.program" in tree.files
    assert tree.imports[f"{PACKAGE}.controller.plan"]
    assert f"{PACKAGE}.base.errors" in tree.imports[f"{PACKAGE}.host.errors"]


def test_no_module_imports_itself_through_others(tree):
    assert module_circles(tree) == []


def test_no_files_and_folders_of_a_folder_need_each_other(tree):
    assert folder_circles(tree) == []


def test_no_part_knows_a_later_one(tree):
    assert against_the_order(tree) == []


def test_nothing_imports_tests_and_the_product_no_benchmarks(tree):
    assert of_tests_or_bench(tree) == []


def test_modules_hold_one_idea_each(tree):
    assert misplaced_modules(tree) == []


def test_the_product_and_its_core_stay_within_their_budgets(capsys):
    product, core, aside = (size_of(ROOT, parts) for parts in (PRODUCT, CORE, NOT_CORE))
    core = Size(core.files - aside.files, core.lines - aside.lines)
    with capsys.disabled():
        sys.stdout.write(f"\nproduct: {product}, core: {core}\n")
    assert product.files <= MOST_OF_PRODUCT.files
    assert product.lines <= MOST_OF_PRODUCT.lines
    assert core.files <= MOST_OF_CORE.files
    assert core.lines <= MOST_OF_CORE.lines


# A tree without any violation; `host` is linked into the package, as in the checkout.
CLEAN = {
    "switchgnn/__init__.py": "",
    "switchgnn/base/errors.py": "class SwitchGNNError(Exception): ...",
    "switchgnn/planner/__init__.py": "from switchgnn.planner.build import plan",
    "switchgnn/planner/build.py": "from switchgnn.planner.cut import metis, ptscotch",
    "switchgnn/planner/cut/__init__.py": "",
    "switchgnn/planner/cut/metis.py": "from switchgnn.base.errors import SwitchGNNError",
    "switchgnn/planner/cut/ptscotch.py": "from switchgnn.planner.cut.metis import cut",
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


def all_checks(tree, root):
    return {
        "module": module_circles(tree),
        "folder": folder_circles(tree),
        "order": against_the_order(tree),
        "tests": of_tests_or_bench(tree),
    }


def test_a_clean_tree_is_clean(tmp_path):
    tree = plant(tmp_path, {})
    assert "switchgnn.host.worker" in tree.imports["bench.measure"]
    assert not any(all_checks(tree, tmp_path).values())


@pytest.mark.parametrize(
    ("file", "text", "found"),
    [
        (
            "switchgnn/planner/cut/metis.py",
            "def late():\n    from switchgnn.planner.cut import ptscotch",
            {
                "module": ["modules: switchgnn.planner.cut.metis - switchgnn.planner.cut.ptscotch"],
                "folder": ["switchgnn.planner.cut: metis - ptscotch"],
            },
        ),
        (
            "switchgnn/planner/cut/metis.py",
            "from ..names import NAME\nfrom switchgnn.base.errors import SwitchGNNError",
            {},
        ),
        (
            "switchgnn/planner/cut/metis.py",
            "from switchgnn.planner.order import first",
            {"folder": ["switchgnn.planner: cut - order"]},
        ),
        (
            "switchgnn/planner/cut/metis.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import switchgnn.host.link",
            {
                "folder": ["switchgnn: host - planner"],
                "order": ["switchgnn.planner.cut.metis imports switchgnn.host.link"],
            },
        ),
        (
            "switchgnn/base/errors.py",
            "from ..planner.cut import metis",
            {
                "module": ["modules: switchgnn.base.errors - switchgnn.planner.cut.metis"],
                "folder": ["switchgnn: base - planner"],
                "order": ["switchgnn.base.errors imports switchgnn.planner.cut.metis"],
            },
        ),
        (
            "switchgnn/softswitch/switch.py",
            "import switchgnn.base.arrays\nfrom switchgnn.base.errors import SwitchGNNError",
            {"order": ["switchgnn.softswitch.switch imports switchgnn.base.arrays"]},
        ),
        (
            "switchgnn/colours/red.py",
            "import switchgnn.base.errors",
            {"order": ["colours is no part that ORDER knows"]},
        ),
        (
            "host/worker.py",
            "from tests.test_all import everything",
            {"tests": ["switchgnn.host.worker imports tests.test_all.everything"]},
        ),
        (
            "host/worker.py",
            "from bench import measure",
            {
                "module": ["modules: bench.measure - switchgnn.host.worker"],
                "order": ["switchgnn.host.worker imports bench.measure"],
                "tests": ["switchgnn.host.worker imports bench.measure"],
            },
        ),
        (
            "bench/measure.py",
            "import tests.test_all",
            {"tests": ["bench.measure imports tests.test_all"]},
        ),
    ],
)
def test_a_violation_is_found(tmp_path, file, text, found):
    others = {
        "host/link.py": "",
        "switchgnn/base/arrays.py": "",
        "switchgnn/planner/names.py": "NAME = 1",
        "switchgnn/planner/cut/shards.py": "",
        "switchgnn/planner/order.py": "import switchgnn.planner.cut.shards",
    }
    tree = plant(tmp_path, {**others, file: text})
    assert {what: said for what, said in all_checks(tree, tmp_path).items() if said} == found


@pytest.mark.parametrize(
    ("lines", "importers", "found"),
    [
        (FEWEST_LINES - 1, 1, ["switchgnn.host.link has 59 lines and one importer"]),
        (FEWEST_LINES, 1, []),
        (FEWEST_LINES - 1, 2, []),
        (MOST_LINES, 2, []),
        (MOST_LINES + 1, 2, ["switchgnn.host.link has 601 lines"]),
    ],
)
def test_a_misplaced_module_is_found(tmp_path, lines, importers, found):
    long = "\n" * FEWEST_LINES
    files = {name: text + long for name, text in CLEAN.items() if not name.endswith("__init__.py")}
    files["host/link.py"] = "\n" * lines
    for number in range(importers):
        files[f"host/user_{number}.py"] = "import switchgnn.host.link" + long
    assert misplaced_modules(plant(tmp_path, files)) == found


def test_sizes_count_sources_once(tmp_path):
    plant(tmp_path, {"p4src/ingress.p4": "1\n2\n", "p4src/compiled/a.py": "1\n"})
    product = size_of(tmp_path, ("host", "p4src"))
    assert product == Size(3, 4)
    assert size_of(tmp_path, (PACKAGE,)) == Size(7, 5)
