"""Compilation, its cache, and the memory of a native engine."""

import sys
from pathlib import Path

import pytest

from switchgnn.p4src import load_program, load_tofino
from switchgnn.softswitch import Backend, UnsupportedProgramError
from switchgnn.softswitch.lowering import loader as given_program
from switchgnn.softswitch.lowering.loader import GivenProgram
from switchgnn.softswitch.native import build, engine
from switchgnn.softswitch.native.engine import compile_ahead
from tests.softswitch.harness import NativeRig, config_bytes
from tests.test_structure import read_tree

PACKAGE = "switchgnn.softswitch"
ROOT = Path(__file__).parents[3]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache with a fake compiler, which copies its input."""
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
    monkeypatch.setattr(given_program, "lower_program", refused)
    monkeypatch.setattr(given_program, "load_program", refused)
    assert engine.native_library(GivenProgram(document)) == first
    assert compile_ahead(document).backend is Backend.NATIVE
    with pytest.raises(UnsupportedProgramError):
        engine.native_library(GivenProgram(document + b" "))
    with pytest.raises(UnsupportedProgramError):
        compile_ahead(document + b" ", Backend.AUTO)


@pytest.mark.parametrize("what", ["compiler", "python", "translator"])
def test_another_one_compiles_again(what, cache, monkeypatch):
    document = config_bytes("tables")
    first = engine.native_library(GivenProgram(document))
    if what == "python":
        monkeypatch.setattr(sys, "version", "another")
    elif what == "compiler":
        text = (cache / "compiler").read_text()
        (cache / "compiler").write_text(text.replace("echo 1", "echo 2"))
    else:
        changed, read = build.SOFTSWITCH / "base" / "program.py", Path.read_bytes
        monkeypatch.setattr(
            Path, "read_bytes", lambda path: read(path) + b"# another\n" * (path == changed)
        )
    assert engine.native_library(GivenProgram(document)) != first
    monkeypatch.undo()


@pytest.mark.whole
def test_the_translator_is_all_that_translating_imports():
    tree = read_tree(ROOT)
    known = set(build.translator_files())
    wanted = [f"{PACKAGE}.lowering.loader", f"{PACKAGE}.native.source"]
    seen = set()
    while wanted:
        module = wanted.pop()
        if module.startswith(PACKAGE) and module not in seen:
            seen.add(module)
            wanted += tree.imports[module]
    missing = {each for each in seen if tree.files[each].resolve() not in known}
    assert {each for each in missing if tree.files[each].name != "__init__.py"} == set()
    assert len(seen) > 15


def test_more_frames_leave_than_are_moved_at_once():
    rig, unicast = NativeRig(config_bytes("fates")), 2
    sizes = [60_000, 1, 65_000, *range(1_000, 60_000, 1_000)]
    for number, size in enumerate(sizes):
        frame = bytes([unicast, 0, 0, 0, 0, 1 + number % 9]) + bytes([number]) * size
        rig.engine.receive(0, frame)
    left = rig.captured()
    assert [(port, frame[-size:]) for (port, frame), size in zip(left, sizes, strict=True)] == [
        (1 + number % 9, bytes([number]) * size) for number, size in enumerate(sizes)
    ]
    assert rig.captured() == []


def test_fields_that_nothing_reads_go_around():
    """The Tofino program keeps padding for its next pass."""
    assert compile_ahead(load_tofino().json, Backend.NATIVE).backend is Backend.NATIVE


@pytest.fixture(scope="module")
def registers():
    return NativeRig(load_program().json).state.registers


def test_arrays_have_their_own_memory(registers):
    for register in registers.values():
        assert not any(register.cells[:1]), "fresh, and nobody else has written here"
        size = len(register.cells)
        for place in (size - 1, size // 2):
            register.cells[place] = (1 << register.width) - 1
        register.cells[0] = 1
    for register in registers.values():
        assert register.cells[0] == 1
        if len(register.cells) > 1:
            assert register.cells[-1] == (1 << register.width) - 1
