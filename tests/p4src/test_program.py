# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The committed compilation is that of the sources."""

import shutil
from pathlib import Path

import pytest

from switchgnn.p4src.build import (
    COMPILER,
    compile_program,
    compile_strawman,
    compiler_version,
)
from switchgnn.p4src.program import (
    COMPILED_FOLDER,
    NAME,
    SOURCE_FOLDER,
    STRAWMAN_FOLDER,
    STRAWMAN_SOURCES,
    StaleProgramError,
    load_program,
    load_strawman,
    sources_digest,
)

needs_p4c = pytest.mark.skipif(
    shutil.which(COMPILER) is None, reason=f"{COMPILER} is not on the PATH"
)


def test_the_digest_is_that_of_the_sources():
    assert load_program().digest == sources_digest()


def test_the_digest_of_the_strawman_is_that_of_all_its_sources(tmp_path):
    assert load_strawman().digest == sources_digest(*STRAWMAN_SOURCES)
    changed = tmp_path / "strawman"
    shutil.copytree(STRAWMAN_FOLDER, changed)
    (changed / "pool.p4").write_text("// Nothing.\n")
    with pytest.raises(StaleProgramError, match="make p4"):
        load_program(changed / "compiled", sources=(SOURCE_FOLDER, changed))


def test_the_default_memory_is_ten_megabytes():
    assert load_program().slots == 10 * 2**20 // 128


def test_a_changed_source_is_noticed(tmp_path, monkeypatch):
    sources = tmp_path / "p4src"
    shutil.copytree(SOURCE_FOLDER, sources)
    source = sources / "sizes.p4"
    source.write_text(source.read_text().replace("10485760", "10485888"))
    monkeypatch.setattr("switchgnn.p4src.program.sources_digest", lambda: sources_digest(sources))
    with pytest.raises(StaleProgramError, match="make p4"):
        load_program()


def test_a_missing_compilation_is_noticed(tmp_path):
    with pytest.raises(StaleProgramError, match="make p4"):
        load_program(tmp_path)


@needs_p4c
@pytest.mark.parametrize(
    ("compile_it", "committed"),
    [(compile_program, COMPILED_FOLDER), (compile_strawman, STRAWMAN_FOLDER / "compiled")],
)
def test_a_rebuild_gives_the_same(tmp_path, compile_it, committed):
    compile_it(tmp_path)
    if compiler_version() != load_program().compiler:
        pytest.skip("another version of p4c made the committed compilation")
    for path in sorted(Path(committed).iterdir()):
        if path.name.startswith(f"{NAME}."):
            assert (tmp_path / path.name).read_text() == path.read_text(), path.name


@needs_p4c
def test_a_warning_is_an_error(tmp_path):
    from switchgnn.p4src.build import CompileError  # noqa: PLC0415

    sources = tmp_path / "p4src"
    shutil.copytree(SOURCE_FOLDER, sources)
    top = sources / f"{NAME}.p4"
    top.write_text(
        top.read_text().replace(
            "#include <core.p4>", "#include <core.p4>\nconst bit<8> UNUSED = 1;"
        )
    )
    with pytest.raises(CompileError, match="UNUSED"):
        compile_program(tmp_path / "out", source=top)
