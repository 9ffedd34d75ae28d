# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The order of the parts that docs/architecture.md promises, and no circles in it.

Each check is tried on a small tree with a violation, too.
"""

from pathlib import Path

import pytest

from tests.support.structure import (
    BENCH,
    MOST_FILES,
    ORDER,
    PACKAGE,
    against_the_order,
    folder_circles,
    full_folders,
    module_circles,
    of_tests_or_bench,
    read_tree,
)

ROOT = Path(__file__).parent.parent
PARTS = (BENCH, "controller", "host", "topologies", PACKAGE)


@pytest.fixture(scope="module")
def tree():
    return read_tree(ROOT)


def test_all_parts_are_read(tree):
    read = {name.split(".")[1] for name in tree.files if name.count(".") > 1}
    assert set(ORDER) - {PACKAGE, BENCH} - read <= {"p4src"}
    assert f"{PACKAGE}.p4src.program" in tree.files
    assert tree.imports[f"{PACKAGE}.controller.plan"]
    assert f"{PACKAGE}.errors" in tree.imports[f"{PACKAGE}.host.errors"]


def test_no_module_imports_itself_through_others(tree):
    assert module_circles(tree) == []


def test_no_files_and_folders_of_a_folder_need_each_other(tree):
    assert folder_circles(tree) == []


def test_no_part_knows_a_later_one(tree):
    assert against_the_order(tree) == []


def test_nothing_imports_tests_and_the_product_no_benchmarks(tree):
    assert of_tests_or_bench(tree) == []


def test_no_folder_is_too_full():
    assert full_folders(ROOT, PARTS) == []


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
        "full": full_folders(root, ("host", "bench", PACKAGE)),
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
            "from .planner.cut import metis",
            {
                "module": ["modules: switchgnn.base.errors - switchgnn.planner.cut.metis"],
                "folder": ["switchgnn: errors - planner"],
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


def test_a_full_folder_is_found(tmp_path):
    present = sum(name.count("/") == 1 and name.startswith("host") for name in CLEAN)
    files = {f"host/file_{number}.py": "" for number in range(MOST_FILES - present)}
    full = full_folders(tmp_path, ("host",)) if plant(tmp_path, files) else None
    assert full == []
    (tmp_path / "host" / "one_more.txt").touch()
    assert full_folders(tmp_path, ("host",)) == [f"host has {MOST_FILES + 1} files"]
