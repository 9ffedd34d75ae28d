"""The compiled P4 programs as they are committed beside their sources.

``compiled/`` holds what p4c made of the sources, and the digest of the sources
it was made from, so that a machine without p4c can run the program and tell
whether the compilation is up to date.
"""

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.network_file import Target

SOURCE_FOLDER = Path(__file__).parent
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)
# Registers of a bank, in the product's program and in the strawman's.
_POOLED = ".free_slots"
_ONE_CELL_PER_SLOT = (".state", _POOLED)
# A register with a cell for each slot of a bank that the all-reduce has; the strawman has none.
_REDUCE_SLOTS = ".fragment_tag"
# A register of the Tofino program has two lanes; 16 of them hold the 32 numbers of a slot.
_PAIR, _PAIRS = ".lanes.lanes", 16


class StaleProgramError(SwitchGNNError):
    """A file of a program is missing, or the compilation is older than the P4 sources."""


@dataclass(frozen=True)
class ProgramFiles:
    """Where the files of one P4 program are."""

    main: Path  # the main file, which includes the other sources
    compiled: Path  # the folder of the committed compilation

    @property
    def json(self) -> Path:
        """The device configuration for BMv2."""
        return self.compiled / f"{self.main.stem}.json"

    @property
    def p4info(self) -> Path:
        """P4Info in protobuf text format."""
        return self.compiled / f"{self.main.stem}.p4info.txtpb"

    @property
    def origin(self) -> Path:
        """What the compilation was made from: the sources' digest and the compiler's version."""
        return self.compiled / f"{self.main.stem}.origin.json"

    def sources(self) -> tuple[Path, ...]:
        """Return the main file and every file that it includes, directly or not, each once.

        Files in angle brackets are the compiler's own and are left out.
        """
        found: list[Path] = []
        _add_with_included(self.main.resolve(), found)
        return tuple(found)

    def digest(self) -> str:
        """Return the SHA-256 (hex) over the names and contents of all sources."""
        total = hashlib.sha256()
        for path in self.sources():
            total.update(path.name.encode() + b"\0")
            total.update(hashlib.sha256(path.read_bytes()).digest())
        return total.hexdigest()


SWITCHGNN = ProgramFiles(SOURCE_FOLDER / "switchgnn.p4", SOURCE_FOLDER / "compiled")
STRAWMAN = ProgramFiles(
    SOURCE_FOLDER / "strawman" / "strawman.p4", SOURCE_FOLDER / "strawman" / "compiled"
)
# The Tofino program's controls on v1model.
TOFINO = ProgramFiles(
    SOURCE_FOLDER / "tofino" / "emulated.p4", SOURCE_FOLDER / "tofino" / "compiled"
)


@dataclass(frozen=True)
class Program:
    """One compiled P4 program."""

    json: bytes  # p4c's output for BMv2, the device configuration of P4Runtime
    p4info: str  # P4Info in protobuf text format
    digest: str  # SHA-256 (hex) of the P4 sources; a plan names it
    compiler: str  # version of the p4c that compiled it
    slots: int  # the aggregators of all banks together, of 32 numbers each


def load_program(files: ProgramFiles = SWITCHGNN) -> Program:
    """Return the committed compilation of a program, by default the product's.

    StaleProgramError: a file is missing, or the P4 sources have changed since.
    """
    try:
        origin = json.loads(files.origin.read_text())
        compiled = files.json.read_bytes()
        program = Program(
            json=compiled,
            p4info=files.p4info.read_text(),
            digest=origin["sources"],
            compiler=origin["compiler"],
            slots=_count_slots(compiled),
        )
    except FileNotFoundError as error:
        raise StaleProgramError(
            f"The compiled P4 program lacks {error.filename}: run `make p4` (needs p4c)."
        ) from error
    if program.digest != files.digest():
        raise StaleProgramError(
            f"The compiled P4 program in {files.compiled} is older than the P4 sources: "
            "run `make p4` (needs p4c)."
        )
    return program


def load_strawman() -> Program:
    """Return the committed compilation of the strawman; see ``load_program``."""
    return load_program(STRAWMAN)


def load_tofino() -> Program:
    """Return the committed compilation of the Tofino program for v1model; see ``load_program``."""
    return load_program(TOFINO)


def program_of(target: str) -> Program:
    """Return the program of a switch, a `Target` or a choice among them; see ``load_program``."""
    return load_tofino() if target == Target.TOFINO else load_program()


def program_named(digest: str) -> Program:
    """Return the program that a plan names by its digest: the Tofino one, or the product's."""
    return load_program(TOFINO if digest == TOFINO.digest() else SWITCHGNN)


def _add_with_included(path: Path, found: list[Path]) -> None:
    if path in found:
        return
    found.append(path)
    try:
        text = path.read_text()
    except FileNotFoundError as error:
        raise StaleProgramError(
            f"The P4 source {path} is missing: take it from the repository again."
        ) from error
    for name in _INCLUDE.findall(text):
        # What the main file includes is beside it, and asking for links takes most of the time.
        _add_with_included(Path(os.path.normpath(path.parent / name)), found)


def _count_slots(compiled: bytes) -> int:
    registers = json.loads(compiled)["register_arrays"]
    banks = [each for each in registers if each["name"].endswith(_ONE_CELL_PER_SLOT)]
    pooled = any(each["name"].endswith(_POOLED) for each in banks)
    reserved = sum(each["size"] for each in registers if each["name"].endswith(_REDUCE_SLOTS))
    wide = max(1, sum(_PAIR in each["name"] for each in registers) // _PAIRS)
    return sum(wide * (each["size"] - (0 if pooled else reserved)) for each in banks)
