# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The compiled P4 program as it is committed beside its sources.

``compiled/`` holds what p4c made of the sources, and the digest of the sources
it was made from, so that a machine without p4c can run the program and tell
whether the compilation is up to date.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from switchgnn.errors import SwitchGNNError

SOURCE_FOLDER = Path(__file__).parent
COMPILED_FOLDER = SOURCE_FOLDER / "compiled"
STRAWMAN_FOLDER = SOURCE_FOLDER / "strawman"
STRAWMAN_SOURCES = (SOURCE_FOLDER, STRAWMAN_FOLDER)
NAME = "switchgnn"
# Registers of a bank, in the product's program and in the strawman's.
_ONE_CELL_PER_SLOT = (".state", ".free_slots")


class StaleProgramError(SwitchGNNError):
    """The committed compilation is missing or older than the P4 sources."""


@dataclass(frozen=True)
class Program:
    """One compiled P4 program.

    Attributes:
        json: p4c's output for BMv2, the device configuration of P4Runtime.
        p4info: P4Info in protobuf text format.
        digest: SHA-256 (hex) of the P4 sources; a plan names it.
        compiler: version of the p4c that compiled it.
        slots: the aggregators of all banks together.
    """

    json: bytes
    p4info: str
    digest: str
    compiler: str
    slots: int


def sources_digest(*folders: Path) -> str:
    """Return the SHA-256 (hex) over the names and contents of all ``.p4`` files.

    Args:
        folders: where they are; those of the product's program if none is given.
    """
    total = hashlib.sha256()
    paths = (path for folder in folders or (SOURCE_FOLDER,) for path in sorted(folder.glob("*.p4")))
    for path in paths:
        total.update(path.name.encode() + b"\0")
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def load_program(
    folder: Path = COMPILED_FOLDER, name: str = NAME, *, sources: tuple[Path, ...] = ()
) -> Program:
    """Return the committed compilation.

    Args:
        folder: where it is.
        name: of its files.
        sources: the folders of its P4 sources, as for ``sources_digest``.

    Raises:
        StaleProgramError: a file is missing, or the P4 sources have changed since.
    """
    try:
        origin = json.loads((folder / f"{name}.origin.json").read_text())
        compiled = (folder / f"{name}.json").read_bytes()
        program = Program(
            json=compiled,
            p4info=(folder / f"{name}.p4info.txtpb").read_text(),
            digest=origin["sources"],
            compiler=origin["compiler"],
            slots=_count_slots(compiled),
        )
    except FileNotFoundError as error:
        raise StaleProgramError(
            f"The compiled P4 program lacks {error.filename}: run `make p4` (needs p4c)."
        ) from error
    if program.digest != sources_digest(*sources):
        raise StaleProgramError(
            f"The compiled P4 program in {folder} is older than the P4 sources: "
            "run `make p4` (needs p4c)."
        )
    return program


def load_strawman() -> Program:
    """Return the committed compilation of the strawman, which hands its slots out itself.

    Raises:
        StaleProgramError: a file is missing, or the P4 sources have changed since.
    """
    return load_program(STRAWMAN_FOLDER / "compiled", sources=STRAWMAN_SOURCES)


def _count_slots(compiled: bytes) -> int:
    registers = json.loads(compiled)["register_arrays"]
    return sum(
        register["size"] for register in registers if register["name"].endswith(_ONE_CELL_PER_SLOT)
    )
