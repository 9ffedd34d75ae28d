# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The models are compiled once, and what is missing is said in a sentence."""

import importlib.metadata
import subprocess
import sys

import pytest

from switchgnn.base.native import find_compiler
from switchgnn.lab.simulator import NetworkOptions, SimulatorError, run_simulation
from switchgnn.lab.simulator import compile as compiling
from switchgnn.lab.simulator.compile import MODELS, compiled_models, find_wheel
from tests.support.speed import seconds_here

from .scenes import Row, Sent, scene


def test_ns3_may_be_missing(monkeypatch):
    def nothing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", nothing)
    with pytest.raises(SimulatorError, match=r"ns-3, which is not installed: pip install"):
        find_wheel()


def test_a_compiler_may_be_missing(monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SimulatorError, match="needs a C\\+\\+ compiler"):
        compiled_models()
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(SimulatorError, match="no-such-compiler is not on the PATH"):
        compiled_models()


def test_a_compiler_that_fails_is_quoted(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CXX", "false")
    with pytest.raises(SimulatorError, match="cannot compile the models"):
        compiled_models()
    left = [path.suffix for path in (tmp_path / "switchgnn" / "simulator").iterdir()]
    assert left == [".lock"]


def test_what_lies_in_the_current_folder_is_not_compiled(monkeypatch, tmp_path):
    """A compiler looks there first for what a unit from standard input includes."""
    wrapper = tmp_path / "preprocessor"
    wrapper.write_text(
        f"#!/bin/sh\n{find_compiler()} -x c++ -E - | grep -o from_.*_else >&2\nexit 1\n"
    )
    wrapper.chmod(0o755)
    for path in MODELS.rglob("*.cc"):
        theirs = tmp_path / path.relative_to(MODELS)
        theirs.parent.mkdir(parents=True, exist_ok=True)
        theirs.write_text("int from_somebody_else;\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CXX", str(wrapper))
    with pytest.raises(SimulatorError) as refused:
        compiled_models()
    assert "from_somebody_else" not in str(refused.value)


@pytest.mark.full
def test_several_processes_compile_once(monkeypatch, tmp_path):
    """A compiler that takes down each call; three processes begin together."""
    calls = tmp_path / "calls"
    wrapper = tmp_path / "slow-g++"
    wrapper.write_text(f'#!/bin/sh\necho call >> {calls}\nexec {find_compiler()} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CXX", str(wrapper))
    code = "from switchgnn.lab.simulator.compile import compiled_models; print(compiled_models())"
    started = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    told = {process.communicate(timeout=seconds_here(100))[0] for process in started}
    assert len(told) == 1
    assert calls.read_text() == "call\n"


def test_other_models_are_compiled_anew(monkeypatch, tmp_path):
    before = compiled_models()
    (tmp_path / "main.cc").write_text("int main() { return 7; }\n")
    monkeypatch.setattr(compiling, "MODELS", tmp_path)
    after = compiled_models()
    try:
        assert after != before
        with pytest.raises(SimulatorError, match="ended with code 7"):
            run_simulation(scene(2, [Row(1, 1)], [Sent(0, [[0]])]), NetworkOptions())
    finally:
        after.unlink()
        after.with_suffix(".lock").unlink()
