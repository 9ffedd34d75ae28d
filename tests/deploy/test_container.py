# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The container file copies what an installation needs, and starts what is installed."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.deploy.test_units import DEPLOY, switch_options
from tests.support.installed import HOOKS, MADE

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = DEPLOY.parent
FILE = DEPLOY / "Containerfile"
LINES = re.sub(r"\\\n", " ", FILE.read_text()).splitlines()
STEPS = [line.split(maxsplit=1) for line in LINES if line and not line.startswith("#")]


def given(kind):
    return [words for name, words in STEPS if name == kind]


def test_it_begins_with_a_python_that_the_project_runs_on():
    [base] = given("FROM")
    minor = re.fullmatch(r"python:(3\.\d+)-slim-\w+", base)[1]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"Programming Language :: Python :: {minor}" in project["classifiers"]


def test_what_is_copied_is_there():
    for words in given("COPY"):
        for source in words.split()[:-1]:
            assert (ROOT / source).exists(), source


def test_it_starts_the_switch_with_options_that_it_has():
    [line] = given("ENTRYPOINT")
    program, command, *words = json.loads(line)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert program in project["scripts"]
    assert command == "switch"
    options = switch_options([*words, "--port", "1=eth:enp1s0"])
    [volume] = given("VOLUME")
    assert Path(volume) == Path(options["state"]).parent
    [port] = given("EXPOSE")
    assert options["grpc"].endswith(f":{port}")


def test_the_commands_in_its_head_are_those_of_the_page():
    page = (ROOT / "docs/switches.md").read_text()
    comments = [line for line in FILE.read_text().splitlines() if line.startswith("#")]
    head = " ".join(line.strip("#\\ ") for line in comments)
    commands = [line for line in page.splitlines() if line.startswith("podman ")]
    assert len(commands) == 2
    for command in commands:
        assert shlex.split(command), command
        assert " ".join(command.split()) in " ".join(head.split()), command


@pytest.mark.full
def test_what_is_copied_is_enough_for_an_installation(tmp_path):
    pytest.importorskip("setuptools", "77.0.3", reason="setuptools is too old, or missing")
    tree = tmp_path / "src"
    tree.mkdir()
    for words in given("COPY"):
        *sources, place = words.split()
        for source in sources:
            target = tree / source if place == "./" else tree / place
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, target, symlinks=True, ignore=MADE)
            else:
                shutil.copy(ROOT / source, target)
    out = tmp_path / "out"
    out.mkdir()
    subprocess.run([sys.executable, "-c", HOOKS.format("wheel"), str(out)], cwd=tree, check=True)
    [wheel] = out.iterdir()
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "switchgnn/commands/switch.py" in names
    assert "switchgnn/p4src/compiled/switchgnn.json" in names
    assert any(name.startswith("switchgnn/softswitch/native/runtime/") for name in names)
