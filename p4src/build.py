# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Compiles the P4 program with p4c; ``make p4`` runs it."""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import typer

from switchgnn.errors import SwitchGNNError
from switchgnn.p4src.program import (
    COMPILED_FOLDER,
    NAME,
    SOURCE_FOLDER,
    STRAWMAN_FOLDER,
    STRAWMAN_SOURCES,
    sources_digest,
)

COMPILER = "p4c-bm2-ss"


class CompileError(SwitchGNNError):
    """p4c is missing, failed, or warned."""


def compile_program(
    folder: Path,
    *,
    source: Path = SOURCE_FOLDER / f"{NAME}.p4",
    defines: tuple[str, ...] = (),
    sources: tuple[Path, ...] = (),
    indent: int | None = 1,
) -> None:
    """Compile ``source`` into ``folder`` as NAME.json, NAME.p4info.txtpb, NAME.origin.json.

    Args:
        folder: where the compilation goes.
        source: the top file.
        defines: for the preprocessor.
        sources: the folders of all P4 sources, as for ``sources_digest``.
        indent: of NAME.json; None puts all into one line.

    Raises:
        CompileError: p4c is not on the PATH, or it printed an error or a warning.
    """
    if shutil.which(COMPILER) is None:
        raise CompileError(
            f"{COMPILER} is not on the PATH: install p4lang/p4c with its BMv2 backend."
        )
    with tempfile.TemporaryDirectory() as scratch:
        raw = Path(scratch) / "raw.json"
        p4info = Path(scratch) / "p4info.txtpb"
        result = subprocess.run(
            [
                COMPILER,
                *("--std", "p4-16", "--arch", "v1model"),
                *("-I", str(SOURCE_FOLDER)),
                *(f"-D{define}" for define in defines),
                *("-o", str(raw)),
                *("--p4runtime-files", str(p4info)),
                source.name,
            ],
            cwd=source.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode or result.stderr.strip():
            raise CompileError(f"p4c is not content with {source.name}:\n{result.stderr.strip()}")
        folder.mkdir(parents=True, exist_ok=True)
        compiled = _without_source_positions(json.loads(raw.read_text()))
        (folder / f"{NAME}.json").write_text(json.dumps(compiled, indent=indent) + "\n")
        (folder / f"{NAME}.p4info.txtpb").write_text(p4info.read_text())
    origin = {"sources": sources_digest(*sources), "compiler": compiler_version()}
    (folder / f"{NAME}.origin.json").write_text(json.dumps(origin, indent=1) + "\n")


def compile_strawman(folder: Path = STRAWMAN_FOLDER / "compiled") -> None:
    """Compile the program with the strawman's banks into ``folder``.

    Raises:
        CompileError: as ``compile_program``.
    """
    # p4c hands the define to a shell.
    banks = rf"BANKS_FILE=\"{STRAWMAN_FOLDER.name}/banks.p4\""
    # One line: it is half the size, and the differences to read are the product's.
    compile_program(folder, defines=(banks, "STRAWMAN"), sources=STRAWMAN_SOURCES, indent=None)


def compiler_version() -> str:
    """Return the version line of the p4c on the PATH."""
    result = subprocess.run([COMPILER, "--version"], capture_output=True, text=True, check=False)
    output = result.stdout + result.stderr
    version = [line for line in output.splitlines() if line.startswith("Version")]
    return version[0].split()[1] if version else "unknown"


def _without_source_positions(node: Any) -> Any:  # noqa: ANN401
    # They are two thirds of the file, change with every edit, and no target reads them.
    if isinstance(node, dict):
        return {
            key: _without_source_positions(value)
            for key, value in node.items()
            if key != "source_info"
        }
    if isinstance(node, list):
        return [_without_source_positions(value) for value in node]
    return node


def main(folder: Path = COMPILED_FOLDER) -> None:
    """Compile the P4 program into FOLDER, and the strawman beside its sources."""
    try:
        compile_program(folder)
        compile_strawman()
    except SwitchGNNError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from error


if __name__ == "__main__":
    typer.run(main)
