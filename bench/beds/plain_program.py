# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The program that figure ``plain`` compares with: one slot per pass, 32 registers.

``p4/plain_banks.p4`` takes the place of the product's banks. Its compilation is
committed in ``p4/compiled``; ``python -m bench.beds.plain_program`` repeats it.
"""

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from switchgnn.p4src.build import COMPILER, compile_program
from switchgnn.p4src.program import (
    NAME,
    SOURCE_FOLDER,
    Program,
    StaleProgramError,
    load_program,
)
from switchgnn.planner import SwitchPart

_FOLDER = Path(__file__).resolve().parents[1] / "p4"
_BANKS = _FOLDER / "plain_banks.p4"
_COMPILED = _FOLDER / "compiled"
_DIGEST = "plain_banks.sha256"
# With one bank p4c uses shorter aliases than the names that the controller expects.
_ALIASES = {"value0": "bank0.value", "events": "bank0.events"}


def plain_program() -> Program:
    """Return the program, compiled now if p4c is installed, or else as it was committed.

    Raises:
        StaleProgramError: p4c is missing, and a source has changed since the commit.
    """
    if shutil.which(COMPILER) is None:
        return _load(_COMPILED)
    with tempfile.TemporaryDirectory() as folder:
        _compile(Path(folder))
        return _load(Path(folder))


def plain_switch_part(part: SwitchPart) -> SwitchPart:
    """Return the same contributions with one destination per entry, all in bank 0."""
    banks = part.entry_slot.shape[1]
    entry, bank = np.nonzero(part.entry_expected)
    block, source = part.entry_block[entry], part.entry_source[entry]
    first = np.ones(len(entry), dtype=np.bool_)
    first[1:] = (block[1:] != block[:-1]) | (source[1:] != source[:-1])
    positions = np.arange(len(entry))
    slot = np.zeros((len(entry), banks), dtype=np.uint32)
    expected = np.zeros((len(entry), banks), dtype=np.uint16)
    # Slot s of bank b becomes slot 8s + b.
    slot[:, 0] = part.entry_slot[entry, bank] * banks + bank
    expected[:, 0] = part.entry_expected[entry, bank]
    return replace(
        part,
        entry_block=block,
        entry_source=source,
        entry_hop=(positions - np.maximum.accumulate(np.where(first, positions, 0))).astype(
            np.uint16
        ),
        entry_last=np.append(first[1:], True),
        entry_count=part.entry_count[entry],
        entry_slot=slot,
        entry_expected=expected,
        result_bank=np.zeros_like(part.result_bank),
        result_slot=part.result_slot * banks + part.result_bank,
    )


def _load(folder: Path) -> Program:
    program = load_program(folder)
    digest = folder / _DIGEST
    if not digest.exists() or digest.read_text().strip() != _banks_digest():
        raise StaleProgramError(
            f"{folder} is older than {_BANKS.name}: run `python -m bench.beds.plain_program` "
            "(needs p4c)."
        )
    # Its own cookie prevents that a switch with it seems to run the product's program.
    return replace(program, digest=hashlib.sha256(program.json).hexdigest())


def _compile(folder: Path) -> None:
    # The path is relative to the P4 sources, where p4c runs, and needs no quoting in a shell.
    banks = os.path.relpath(_BANKS, SOURCE_FOLDER.resolve())
    compile_program(folder, defines=(rf"BANKS_FILE=\"{banks}\"",))
    (folder / _DIGEST).write_text(_banks_digest() + "\n")
    p4info = folder / f"{NAME}.p4info.txtpb"
    text = p4info.read_text()
    for short, alias in _ALIASES.items():
        text = text.replace(f'alias: "{short}"', f'alias: "{alias}"')
    p4info.write_text(text)
    # The file is written as one line, which is half the size: it is not meant to be read.
    compiled = folder / f"{NAME}.json"
    compiled.write_text(json.dumps(json.loads(compiled.read_text()), separators=(",", ":")) + "\n")


def _banks_digest() -> str:
    return hashlib.sha256(_BANKS.read_bytes()).hexdigest()


if __name__ == "__main__":
    _compile(_COMPILED)
