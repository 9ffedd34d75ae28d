"""The committed compilations are those of the sources."""

import json
import shutil
from dataclasses import replace

import pytest

from bench import tofino
from bench.testbeds.plain_program import PLAIN, compile_plain_program
from switchgnn.p4src import build, load_program, load_strawman, load_tofino, program
from switchgnn.p4src.program import SOURCE_FOLDER, STRAWMAN, SWITCHGNN, TOFINO, ProgramFiles
from tests.support.markers import full

needs_p4c = pytest.mark.skipif(
    shutil.which(build.COMPILER) is None, reason=f"{build.COMPILER} is not on the PATH"
)


def compiling(files):
    return lambda folder: build.compile_program(replace(files, compiled=folder))


PROGRAMS = {each: compiling(each) for each in (SWITCHGNN, STRAWMAN, TOFINO)}
PROGRAMS[PLAIN] = compile_plain_program


def name_of(files):
    return files.main.stem if isinstance(files, ProgramFiles) else None


def names(files):
    return {path.name for path in files.sources()}


def a_copy(tmp_path, files):
    copy = tmp_path / "p4src"
    shutil.copytree(SOURCE_FOLDER, copy)
    main, compiled = (path.relative_to(SOURCE_FOLDER) for path in (files.main, files.compiled))
    return ProgramFiles(copy / main, copy / compiled)


def test_the_digest_is_that_of_the_sources():
    assert load_program().digest == SWITCHGNN.digest()
    assert load_strawman().digest == STRAWMAN.digest()
    assert load_tofino().digest == TOFINO.digest()
    assert load_program(PLAIN).digest == PLAIN.digest()
    assert len({files.digest() for files in PROGRAMS}) == len(PROGRAMS)


def test_every_source_belongs_to_a_program():
    everything = {path.resolve() for path in SOURCE_FOLDER.glob("**/*.p4")}
    files = SWITCHGNN, STRAWMAN, TOFINO, tofino.CHIP
    assert {path for each in files for path in each.sources()} == everything


def test_the_chip_runs_what_is_tested():
    chip = names(tofino.CHIP)
    assert chip - names(TOFINO) == {"chip.p4", tofino.CHIP.main.name}
    assert names(TOFINO) - chip == {"emulated.p4", "emulation.p4"}


def test_the_strawman_has_banks_of_its_own():
    assert names(SWITCHGNN) - names(STRAWMAN) == {"switchgnn.p4"}
    assert names(STRAWMAN) - names(SWITCHGNN) == {"strawman.p4"}
    assert {path.parent.name for path in STRAWMAN.sources() if path.stem == "banks"} == {"strawman"}


@pytest.mark.parametrize("files", [SWITCHGNN, STRAWMAN], ids=name_of)
@pytest.mark.parametrize(
    ("source", "belongs_to"),
    [
        ("headers.p4", {SWITCHGNN, STRAWMAN}),
        ("banks.p4", {SWITCHGNN}),
        ("strawman/banks.p4", {STRAWMAN}),
    ],
    ids=["sizes", "banks", "strawman-banks"],
)
def test_a_changed_source_is_noticed(tmp_path, files, source, belongs_to):
    copy = a_copy(tmp_path, files)
    changed = tmp_path / "p4src" / source
    changed.write_text(changed.read_text() + "// More.\n")
    if files in belongs_to:
        with pytest.raises(program.StaleProgramError, match="make p4"):
            load_program(copy)
    else:
        load_program(copy)


def test_a_missing_source_is_noticed(tmp_path):
    copy = a_copy(tmp_path, SWITCHGNN)
    (tmp_path / "p4src" / "dedup.p4").unlink()
    with pytest.raises(program.StaleProgramError, match=r"dedup\.p4"):
        load_program(copy)


def test_a_missing_compilation_is_noticed(tmp_path):
    with pytest.raises(program.StaleProgramError, match="make p4"):
        load_program(replace(SWITCHGNN, compiled=tmp_path))


@pytest.mark.parametrize("files", PROGRAMS, ids=name_of)
def test_no_path_of_a_machine_is_in_a_compilation(files):
    compiled = files.json.read_text()
    assert json.loads(compiled)["program"] == files.main.name
    assert "source_info" not in compiled


@needs_p4c
@pytest.mark.whole
@pytest.mark.parametrize(
    "committed",
    [
        pytest.param(files, id=files.main.stem, marks=[] if files is SWITCHGNN else [full])
        for files in PROGRAMS
    ],
)
def test_a_rebuild_gives_the_same(tmp_path, committed):
    PROGRAMS[committed](tmp_path)
    if build.compiler_version() != load_program(committed).compiler:
        pytest.skip("another version of p4c made the committed compilation")
    rebuilt = replace(committed, compiled=tmp_path)
    assert rebuilt.json.read_text() == committed.json.read_text()
    assert rebuilt.p4info.read_text() == committed.p4info.read_text()
    assert rebuilt.origin.read_text() == committed.origin.read_text()


@pytest.mark.whole
@needs_p4c
def test_a_warning_is_an_error(tmp_path):
    copy = a_copy(tmp_path, SWITCHGNN)
    copy.main.write_text(
        copy.main.read_text().replace(
            '#include "banks.p4"', '#include "banks.p4"\nconst bit<8> UNUSED = 1;'
        )
    )
    with pytest.raises(build.CompileError, match="UNUSED"):
        build.compile_program(replace(copy, compiled=tmp_path / "out"))
