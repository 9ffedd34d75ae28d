"""The recipes of CONTRIBUTING.md and the exercises of docs/course.md, in a copy of the tree."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.levels import simulator_missing
from tests.support.processes import run_program

ROOT = Path(__file__).parent.parent.parent
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
COURSE = (ROOT / "docs" / "course.md").read_text()
STEP = re.compile(r"^```(bash|diff)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# What the steps need; all of it but what is made again.
PARTS = (
    *("bench", "controller", "deploy", "examples", "host", "p4src", "switchgnn", "tests"),
    "topologies",
    "pyproject.toml",
)
COMPILER = "p4c-bm2-ss"
NO_SIMULATIONS = simulator_missing()


def recipes():
    _, _, text = GUIDE.partition("\n## Recipes\n")
    text, *_ = re.split(r"^## ", text, flags=re.MULTILINE)
    _, *sections = re.split(r"^### ", text, flags=re.MULTILINE)
    return [pytest.param(STEP.findall(section), id=section.splitlines()[0]) for section in sections]


def missing(command, left_out):
    """Why a command cannot run here, after those that were left out; None: it can."""
    if command.startswith("switchgnn figures"):
        return NO_SIMULATIONS
    needs_compiler = "switchgnn.p4src.build" in command
    if left_out:
        return "nothing was compiled"
    if needs_compiler and shutil.which(COMPILER) is None:
        return f"{COMPILER} is not on the PATH"
    return None


def change(tree, diff):
    """Apply a diff without line numbers: what it shows of a file is in there exactly once."""
    for part in re.split(r"^(?=--- a/)", diff, flags=re.MULTILINE)[1:]:
        head, *hunks = re.split(r"^@@.*\n", part, flags=re.MULTILINE)
        old_name, new_name = re.findall(r"^(?:--- a|\+\+\+ b)/(\S+)$", head, re.MULTILINE)
        assert old_name == new_name
        text = (tree / new_name).read_text()
        for hunk in hunks:
            lines = [(line[:1] or " ", line[1:]) for line in hunk.splitlines()]
            before = "".join(f"{line}\n" for sign, line in lines if sign != "+")
            after = "".join(f"{line}\n" for sign, line in lines if sign != "-")
            assert text.count(before) == 1, f"{new_name} does not hold once:\n{before}"
            text = text.replace(before, after)
        (tree / new_name).write_text(text)


def run(tree, command):
    """Run a command as after `. .venv/bin/activate` in the checkout."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(tree),
    }
    command = re.sub(r"^(! )?switchgnn ", r"\1python -m switchgnn.commands ", command)
    told = run_program(["bash", "-euc", command], cwd=tree, env=environment, seconds=200)
    assert told.returncode == 0, f"{command}\n{told.stdout}{told.stderr}"
    return told.stdout


@pytest.fixture
def tree(tmp_path):
    # With compiled modules and functions, which are looked for beside the sources.
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, tmp_path / part, symlinks=True)
        else:
            shutil.copy(ROOT / part, tmp_path / part)
    return tmp_path


def test_every_recipe_ends_with_a_check():
    assert len(recipes()) == 7
    for recipe in recipes():
        (steps,) = recipe.values
        assert {kind for kind, _ in steps} >= {"bash"}
        assert any("python -m pytest" in text for _, text in steps)


@pytest.mark.parametrize("steps", recipes())
def test_recipe(steps, tree):
    left_out = []
    for kind, text in steps:
        if kind == "diff":
            change(tree, text)
            continue
        for command in text.splitlines():
            if reason := missing(command, left_out):
                left_out.append(f"{command}: {reason}")
            else:
                run(tree, command)
    if left_out:
        pytest.skip(f"all but: {'; '.join(left_out)}")


@pytest.mark.parametrize("exercise", ["Order", "Duplicates"])
def test_exercise(exercise, tree):
    (section,) = re.findall(rf"^## {exercise}.*?(?=^## |\Z)", COURSE, re.MULTILINE | re.DOTALL)
    last = None
    for _, text in STEP.findall(section):
        for command in text.replace(
            "make tests TEST_OPTIONS=", "eval python -m pytest "
        ).splitlines():
            last = run(tree, command)
    assert last.splitlines()[-1].startswith("Passed: ")


def test_a_solution_that_is_none_does_not_pass(tree):
    run(tree, "switchgnn run --graph karate --workers 3 --features 8 --rounds 1 --pcap one")
    assert "Not yet" in run(tree, "! python examples/course/grade.py order one one")
    (tree / "none.xml").write_text(
        '<testsuite><testcase name="test_case[embedded-udp-dedup.RepeatedAtOnce]"/></testsuite>'
    )
    grade = "! python examples/course/grade.py dedup none.xml dedup.RepeatedAtOnce"
    assert "Not yet" in run(tree, grade)
