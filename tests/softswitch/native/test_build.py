# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A program that was compiled once is known by its document, and nothing is translated again."""

import errno
import json
import sys
from pathlib import Path

import pytest

from switchgnn.softswitch import loader as given_program
from switchgnn.softswitch.errors import UnsupportedProgramError
from switchgnn.softswitch.loader import GivenProgram
from switchgnn.softswitch.native import build, engine
from switchgnn.softswitch.native.build import Backend
from switchgnn.softswitch.native.engine import compile_ahead
from tests.softswitch.harness import config_bytes
from tests.support.native import needs_compiler
from tests.support.structure import read_tree

PACKAGE = "switchgnn.softswitch"
NO_NUMBERS = {"type": "parameters_vector", "value": []}
ROOT = Path(__file__).parents[3]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache in which a stand-in for the compiler keeps what it is given."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiler = tmp_path / "compiler"
    compiler.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = --version ]; then echo 1; exit; fi\n'
        'while [ "$1" != -o ]; do shift; done; cp "${2%/*}"/*.h "$2"\n'
    )
    compiler.chmod(0o700)
    monkeypatch.setenv("CXX", str(compiler))
    return tmp_path


def refused(*_):
    raise UnsupportedProgramError("this", "the test", "nothing")


def test_what_was_compiled_is_not_translated_again(cache, monkeypatch):
    document = config_bytes("tables")
    first = engine.native_library(GivenProgram(document))
    monkeypatch.setattr(engine, "program_source", refused)
    monkeypatch.setattr(given_program, "compile_program", refused)
    monkeypatch.setattr(given_program, "load_program", refused)
    assert engine.native_library(GivenProgram(document)) == first
    assert compile_ahead(document).backend is Backend.NATIVE
    with pytest.raises(UnsupportedProgramError):
        engine.native_library(GivenProgram(document + b" "))
    # Nor does Python run what it cannot translate.
    with pytest.raises(UnsupportedProgramError):
        compile_ahead(document + b" ", Backend.AUTO)


def test_a_cache_that_cannot_be_written_is_named(cache, monkeypatch, caplog):
    """Or who has a compiler would not know why everything is slow."""

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(build, "compiled_once", full)
    document = config_bytes("tables")
    assert compile_ahead(document, Backend.AUTO).backend is Backend.PYTHON
    assert "runs as Python: Cannot keep the compiled program" in caplog.text
    assert "No space left" in caplog.text
    with pytest.raises(build.NoCompilerError, match="No space left"):
        compile_ahead(document, Backend.NATIVE)


@pytest.mark.parametrize("pattern", build.TRANSLATOR)
def test_another_translator_translates_again(pattern, cache, monkeypatch):
    document = config_bytes("tables")
    first = engine.native_library(GivenProgram(document))
    changed = next(iter(sorted(build.SOFTSWITCH.glob(pattern))))
    read = Path.read_bytes

    def read_changed(path):
        return read(path) + (b"# another\n" if path == changed else b"")

    monkeypatch.setattr(Path, "read_bytes", read_changed)
    assert engine.native_library(GivenProgram(document)) != first
    monkeypatch.undo()


@pytest.mark.parametrize("what", ["compiler", "python"])
def test_another_compiler_or_python_compiles_again(what, cache, monkeypatch):
    document = config_bytes("tables")
    first = engine.native_library(GivenProgram(document))
    if what == "python":
        monkeypatch.setattr(sys, "version", "another")
    else:
        text = (cache / "compiler").read_text()
        (cache / "compiler").write_text(text.replace("echo 1", "echo 2"))
    assert engine.native_library(GivenProgram(document)) != first


def test_the_translator_is_all_that_translating_imports():
    """So that none of it can change without a new library."""
    tree = read_tree(ROOT)
    known = set(build.translator_files())
    wanted = [
        f"{PACKAGE}.loader",
        f"{PACKAGE}.native.translation.program_source",
    ]
    seen = set()
    while wanted:
        module = wanted.pop()
        if module.startswith(PACKAGE) and module not in seen:
            seen.add(module)
            wanted += tree.imports[module]
    missing = {each for each in seen if tree.files[each].resolve() not in known}
    # Packages, which have a docstring and what they export.
    assert {each for each in missing if tree.files[each].name != "__init__.py"} == set()
    assert len(seen) > 15


@pytest.mark.whole
@needs_compiler
def test_messages_are_in_the_library(tmp_path):
    """Whatever they say: a program is anybody's."""
    messages = ['"; #error\n', "é\\x22 ??/ */ %s {}", ""]
    document = json.loads(config_bytes("fates"))
    logs = [
        {"op": "log_msg", "parameters": [{"type": "string", "value": each}, NO_NUMBERS]}
        for each in messages
    ]
    action = next(each for each in document["actions"] if each["primitives"])
    action["primitives"] += logs
    given = GivenProgram(json.dumps(document).encode())
    native = engine.load_native(given)
    # Once for each place where the action is.
    assert set(native.library.messages()) == set(messages)
