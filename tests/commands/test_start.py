# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How the program starts: what it imports for what is asked of it, and what shells complete."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from switchgnn import __version__
from switchgnn.commands.application import COMMANDS, app
from tests.support.speed import seconds_here

# What some command needs and takes a while to import.
HEAVY = (
    *("grpc", "google.protobuf", "finsy", "numpy", "scipy", "sklearn", "networkx", "numba"),
    *("pymetis", "mtkahypar", "torch", "torch_geometric", "matplotlib", "scapy", "msgspec"),
    *("starlette", "uvicorn", "prometheus_client"),
)
WAYS = (["-m", "switchgnn"], ["-m", "switchgnn.commands"])
SHELLS = ("bash", "zsh", "fish")


def start(*words, way=("-m", "switchgnn"), **environment):
    return subprocess.run(
        [sys.executable, *way, *words],
        env={**os.environ, "COLUMNS": "80", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds_here(60),
    )


def imported(*words, **environment):
    """The modules of HEAVY that are there when the program ends, and what it printed."""
    program = (
        "import atexit, sys; from switchgnn.commands import main; "
        f"atexit.register(lambda: print('modules', *[each for each in {HEAVY!r} "
        "if each in sys.modules])); sys.argv = ['switchgnn', *sys.argv[1:]]; main()"
    )
    done = start(*words, way=("-c", program), **environment)
    assert done.returncode == 0, done.stderr
    printed, _, last = done.stdout.rpartition("modules")
    return last.split(), printed


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way[1])
def test_the_version_is_told(way):
    told = start("--version", way=way)
    assert told.stdout == f"switchgnn {__version__}\n"
    assert re.fullmatch(r"switchgnn \d+\.\d+\.\d+\S*\n", told.stdout)


def test_both_ways_are_one_program():
    shown = [start("--help", way=way).stdout for way in WAYS]
    assert shown[0] == shown[1]
    assert "Usage: switchgnn [OPTIONS] COMMAND" in shown[0]


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["--version"]], ids=lambda words: words[0])
def test_what_needs_no_command_imports_none(words):
    modules, printed = imported(*words)
    assert modules == []
    assert "switchgnn" in printed


def test_a_command_imports_what_it_needs():
    """Or the test above would see nothing whatever happened."""
    modules, _ = imported("plan", "--help")
    assert {"numpy", "msgspec"} <= set(modules)
    assert "torch" not in modules
    assert "matplotlib" not in modules


@pytest.mark.parametrize("command", ["run", "train"])
def test_without_a_page_nothing_of_it_is_imported(command):
    words = ("--graph", "karate") if command == "run" else ("--data", "karate", "--epochs", "1")
    options = ("--workers", "2", "--target", "embedded", "--fabric", "loopback")
    if command == "train" and importlib.util.find_spec("torch_geometric") is None:
        pytest.skip("PyTorch Geometric is not installed")
    modules, _ = imported(command, *words, *options)
    assert {"numpy", "grpc"} <= set(modules)
    assert not {"starlette", "uvicorn"} & set(modules)


@pytest.mark.parametrize("shell", SHELLS)
def test_commands_are_completed_without_importing_them(shell):
    modules, printed = imported(**completing(shell, "switchgnn s"))
    assert modules == []
    for each in COMMANDS:
        # zsh's format quotes names, fish's and zsh's have the line of the list, too.
        there = re.search(rf'(?m)^"?{each.name}\b|"{each.name}"', printed) is not None
        assert there == each.name.startswith("s"), printed


@pytest.mark.parametrize("shell", SHELLS)
def test_options_and_choices_are_completed(shell):
    def completed(line):
        asked = CliRunner().invoke(app, prog_name="switchgnn", env=completing(shell, line))
        assert asked.exit_code == 0
        return asked.output

    printed = completed("switchgnn run --back")
    assert "--background" in printed
    assert "--backend" in printed
    assert "--bandwidth" not in printed
    printed = completed("switchgnn run --fabric ")
    found = set(re.findall(r"\b(?:auto|mininet|loopback)\b", printed))
    assert found == {"auto", "mininet", "loopback"}


def completing(shell, line):
    """The variables by which a shell asks, as its script has them."""
    words = line.split(" ")
    asking = {"_SWITCHGNN_COMPLETE": f"complete_{shell}"}
    if shell == "bash":
        return asking | {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    return asking | {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_of_a_shell_asks_this_program(shell):
    script = start(_SWITCHGNN_COMPLETE=f"source_{shell}").stdout
    assert f"_SWITCHGNN_COMPLETE=complete_{shell}" in script
    assert re.search(r"switchgnn", script.replace("_switchgnn", ""))


@pytest.mark.parametrize("shell", SHELLS)
def test_show_completion_knows_the_shell_it_is_in(shell):
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell}")
    # Two commands: a shell that has one only becomes it.
    line = f"'{sys.executable}' -m switchgnn --show-completion; true"
    done = subprocess.run(
        [program, "-c", line], capture_output=True, text=True, check=True, timeout=seconds_here(60)
    )
    assert f"_SWITCHGNN_COMPLETE=complete_{shell}" in done.stdout


def test_bash_takes_the_script_and_completes(tmp_path):
    """The whole way: the script is read, and a word is completed."""
    bash = shutil.which("bash")
    assert bash is not None
    program = tmp_path / "switchgnn"
    program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -m switchgnn \"$@\"\n")
    program.chmod(0o755)
    lines = (
        'eval "$(_SWITCHGNN_COMPLETE=source_bash switchgnn)"',
        "COMP_WORDS=(switchgnn tra) COMP_CWORD=1",
        "_switchgnn_completion switchgnn",
        'echo "${COMPREPLY[@]}"',
    )
    done = subprocess.run(
        [bash, "--norc", "-euc", "\n".join(lines)],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=seconds_here(60),
    )
    assert done.stdout == "train\n"


def test_a_wrong_name_is_answered_with_a_near_one():
    done = CliRunner().invoke(app, ["trian"])
    assert done.exit_code == 2
    assert "Did you mean 'train'?" in done.output
