"""Compile the P4 programs with p4c: the product's and the strawman's. ``make p4`` runs it."""

import json
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from switchgnn.base.errors import SwitchGNNError
from switchgnn.p4src.program import STRAWMAN, SWITCHGNN, TOFINO, ProgramFiles

COMPILER = "p4c-bm2-ss"


class CompileError(SwitchGNNError):
    """p4c is missing, failed, or warned."""


def compile_program(files: ProgramFiles) -> None:
    """Compile a program into the folder of its compilation.

    Nothing in the result depends on where the sources are.
    """
    # The Tofino program's sources have what only the chip's uses; differences in the product's are
    # read.
    sharing, own = files.main.name == TOFINO.main.name, files.main.name == SWITCHGNN.main.name
    if shutil.which(COMPILER) is None:
        raise CompileError(
            f"{COMPILER} is not on the PATH: install p4lang/p4c with its BMv2 backend."
        )
    with tempfile.TemporaryDirectory() as scratch:
        raw = Path(scratch) / "raw.json"
        p4info = Path(scratch) / "p4info.txtpb"
        # In the folder of the main file and by its bare name, which p4c copies into its output.
        result = subprocess.run(
            [
                COMPILER,
                *("--std", "p4-16", "--arch", "v1model"),
                *(("--Wdisable=unused", "--Wdisable=removed") if sharing else ()),
                *("-o", str(raw)),
                *("--p4runtime-files", str(p4info)),
                files.main.name,
            ],
            cwd=files.main.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode or result.stderr.strip():
            raise CompileError(
                f"Compiling {files.main.name} with p4c failed:\n{result.stderr.strip()}"
            )
        files.compiled.mkdir(parents=True, exist_ok=True)
        compiled = json.loads(raw.read_text(), object_hook=_without_source_position)
        layout: dict[str, Any] = {"indent": 1} if own else {"separators": (",", ":")}
        files.json.write_text(json.dumps(compiled, **layout) + "\n")
        files.p4info.write_text(p4info.read_text())
    origin = {"sources": files.digest(), "compiler": compiler_version()}
    files.origin.write_text(json.dumps(origin, indent=1) + "\n")


def compiler_version() -> str:
    """Return the version of the p4c on the PATH, or ``unknown``."""
    result = subprocess.run([COMPILER, "--version"], capture_output=True, text=True, check=False)
    output = result.stdout + result.stderr
    version = [line for line in output.splitlines() if line.startswith("Version")]
    return version[0].split()[1] if version else "unknown"


def _without_source_position(node: dict[str, Any]) -> dict[str, Any]:
    # They are two thirds of the file, change with every edit, and no target reads them.
    node.pop("source_info", None)
    return node


def main(folder: Path = SWITCHGNN.compiled) -> None:
    """Compile the product's program into FOLDER, and the others beside their sources."""
    try:
        for files in (replace(SWITCHGNN, compiled=folder), STRAWMAN, TOFINO):
            compile_program(files)
    except SwitchGNNError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from error


if __name__ == "__main__":
    typer.run(main)
