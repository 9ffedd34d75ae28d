# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Child processes import nothing from the current folder."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from switchgnn.base.machine import module_of, python_program

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGES = ("switchgnn", "controller", "host", "topologies", "p4src")
# The relay ends at once: it has no cables, and its input is at its end.
RELAY = "switchgnn.topologies.relay"


@pytest.fixture
def foreign(tmp_path):
    """A folder with modules that shadow others, and the file that they write."""
    trace = tmp_path / "ran"
    for name in ("json", "select", "runpy", "numpy", "switchgnn"):
        (tmp_path / f"{name}.py").write_text(f"open({str(trace)!r}, 'a').write({name!r})\n")
    return tmp_path, trace


def run_in(folder, command):
    environment = {"PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_lies_in_the_current_folder_is_not_run(foreign):
    folder, trace = foreign
    ended = run_in(folder, python_program(RELAY))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ready\n", "")
    assert not trace.exists()


def test_python_alone_would_run_it(foreign):
    folder, trace = foreign
    run_in(folder, [sys.executable, "-m", RELAY])
    assert trace.exists()


def test_the_arguments_arrive(tmp_path):
    (tmp_path / "told.py").write_text("import sys; print(sys.argv[1:], __name__)")
    command = python_program("told", "one", "two words")
    environment = {"PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert ended.stdout == "['one', 'two words'] __main__\n"
    assert module_of(command) == ["told", "one", "two words"]
    assert module_of(["mnexec", *command]) is None


def test_nobody_starts_a_module_in_another_way():
    files = [
        path for name in PACKAGES for path in (REPOSITORY / name).rglob("*.py") if path.is_file()
    ]
    assert len(files) > 100
    starting = [
        path.relative_to(REPOSITORY).as_posix()
        for path in files
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value == "-m"
    ]
    assert starting == ["switchgnn/base/machine.py"]
