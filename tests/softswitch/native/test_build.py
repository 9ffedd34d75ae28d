"""Compilation, its cache, and the memory of a native engine."""

import json
import platform
import re
import shutil
import sys
from pathlib import Path

import pytest

from switchgnn.p4src import load_program
from switchgnn.softswitch import Backend, UnsupportedProgramError
from switchgnn.softswitch.lowering import loader as given_program
from switchgnn.softswitch.lowering.loader import GivenProgram
from switchgnn.softswitch.native import build, engine
from switchgnn.softswitch.native.engine import compile_ahead, native_library
from tests.softswitch.harness import NativeRig, config_bytes
from tests.support.markers import needs_compiler
from tests.support.processes import run_program
from tests.test_structure import read_tree

PACKAGE = "switchgnn.softswitch"
NO_NUMBERS = {"type": "parameters_vector", "value": []}
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


@pytest.mark.whole
@needs_compiler
def test_messages_are_in_the_library(tmp_path):
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
    assert set(native.library.messages()) == set(messages)


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


# Of 64-bit words, on vectors of 16 to 64 bytes.
ADD = re.compile(r"\bv?paddq\s.*%([xyz])mm")
WIDTHS = {"x": 128, "y": 256, "z": 512}
LANES, BANKS = 1024, 8
# The end of a loop over a slot, which compilers keep for some processors.
LOOP = re.compile(r"add\s+\$0x(\w+),(%\w+)\n.*cmp\s+\$0x(\w+),\2\n.*$")
JUMP = re.compile(r"\bj\w+\s")


def bits_added(code):
    """Bits added by vector instructions, times their loops."""
    bits = 0
    for add in ADD.finditer(code):
        loop = LOOP.search(JUMP.split(code[add.start() :], maxsplit=1)[0])
        times = int(loop[3], 16) // int(loop[1], 16) if loop else 1
        bits += times * WIDTHS[add[1]]
    return bits


@pytest.mark.whole
@needs_compiler
@pytest.mark.skipif(platform.machine() != "x86_64", reason="knows the names of x86's instructions")
@pytest.mark.skipif(not shutil.which("objdump"), reason="needs objdump, which comes with g++")
def test_the_lanes_of_a_slot_are_added_at_once():
    """By `add_by_words`; sums with carries use `adc`."""
    library = native_library(GivenProgram(load_program().json))
    told = run_program(["objdump", "-d", "--no-show-raw-insn", "-C", library], check=True).stdout
    # Compilers may split it into hot and cold parts.
    parts = told.split("<Program::ingress(")[1:]
    ingress = "".join(part.partition("\n\n")[0] for part in parts)
    assert ingress
    assert bits_added(ingress) >= BANKS * LANES
