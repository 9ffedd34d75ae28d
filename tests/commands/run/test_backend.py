# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`--backend`: what the embedded switch runs the program as, and what reports say of it."""

import json
from dataclasses import dataclass

import pytest
from typer.testing import CliRunner

from switchgnn.base.native import find_compiler
from switchgnn.commands.application import app
from switchgnn.commands.doctor import examine
from switchgnn.commands.shared.console import ran_as
from switchgnn.p4src import load_program
from switchgnn.softswitch.errors import SoftSwitchError
from switchgnn.softswitch.native.build import VARIABLE, Backend, backend_here
from switchgnn.softswitch.native.engine import compile_ahead
from tests.support.commands import forks_elsewhere, switchgnn
from tests.support.markers import some_of
from tests.support.native import needs_compiler

BACKENDS = ["python", pytest.param("native", marks=needs_compiler)]
HERE = ("--target", "embedded", "--fabric", "loopback")
SMALL = {
    "run": ("--graph", "karate", "--workers", 2, "--rounds", 1),
    "train": ("--data", "karate", "--workers", 2, "--epochs", 1),
    "soak": ("--minutes", 0, "--seed", 3),
}


@pytest.fixture
def no_compiler(monkeypatch, tmp_path):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.whole
@pytest.mark.parametrize(
    ("command", "backend"),
    # Each command with one of them.
    some_of(lambda command, backend: command % 2 == backend, list(SMALL), BACKENDS),
)
def test_reports_say_what_ran(command, backend):
    if command == "train":
        pytest.importorskip("torch_geometric")
    done = switchgnn(command, *SMALL[command], *HERE, "--backend", backend, "--json")
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["backend"] == backend
    assert report["compile_seconds"] >= 0
    assert backend == "native" or report["compile_seconds"] == 0


@pytest.mark.whole
def test_the_option_counts_more_than_the_environment(monkeypatch, tmp_path):
    """And the switch itself is told."""
    forks_elsewhere(monkeypatch)
    monkeypatch.setenv(VARIABLE, "native")
    words = ["run", *map(str, SMALL["run"]), *HERE, "--backend", "python"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "the program runs as python code" in " ".join(result.output.split())


@pytest.mark.parametrize("command", SMALL)
def test_another_switch_has_no_back_end(command):
    if command == "train":
        pytest.importorskip("torch_geometric")
    words = [command, *map(str, SMALL[command]), "--target", "bmv2", "--backend", "python"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code != 0
    assert "BMv2 interprets the program, so there is no --backend python" in str(result.exception)


@pytest.mark.parametrize("command", ["run", "soak"])
def test_native_code_needs_a_compiler(command, no_compiler):
    words = [command, *map(str, SMALL[command]), *HERE, "--backend", "native"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code != 0
    said = f"{result.output} {result.exception}"
    assert "apt-get install g++, or use --backend python" in " ".join(said.split())


def test_what_is_not_asked_for_is_what_the_environment_says(monkeypatch):
    monkeypatch.setenv(VARIABLE, "python")
    assert backend_here(None) is Backend.PYTHON
    assert backend_here(Backend.NATIVE) is Backend.NATIVE
    monkeypatch.setenv(VARIABLE, "rust")
    with pytest.raises(
        SoftSwitchError, match=r"unknown back end, 'rust'.*use one of native, python, auto"
    ):
        backend_here(None)


def found(name="embedded switch"):
    (finding,) = (each for each in examine() if each.name == name)
    return finding.found


@needs_compiler
def test_doctor_says_what_auto_takes():
    assert found() == f"--backend auto takes native, compiled by {find_compiler()}"


def test_doctor_says_why_auto_takes_python(no_compiler):
    assert found() == "--backend auto takes python: there is no C++ compiler"


@pytest.fixture
def open_cache(monkeypatch, tmp_path):
    """A cache that everybody may write to."""
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    return cache


@needs_compiler
def test_doctor_says_why_a_cache_is_not_trusted(open_cache):
    assert found().startswith("--backend auto takes python: The cache ")
    assert f"others may write to {open_cache}." in found()


@needs_compiler
def test_a_report_says_why_a_cache_is_not_trusted(open_cache):
    ahead = compile_ahead(load_program().json, Backend.AUTO)
    told = Told(ahead.backend.value, ahead.reason, ahead.seconds)
    assert ran_as(told).startswith("; the program runs as python code")
    assert f"others may write to {open_cache}." in ran_as(told)


@dataclass(frozen=True)
class Told:
    backend: str
    backend_reason: str | None
    compile_seconds: float
