"""The program that figure ``banks`` compares with: one slot per pass, 32 registers.

``p4/plain.p4`` is its main file. Its compilation is committed in ``p4/compiled``;
``python -m bench.testbeds.plain_program`` repeats it.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from switchgnn.p4src.build import compile_program
from switchgnn.p4src.program import Program, ProgramFiles, load_program
from switchgnn.planner import SwitchPart

_FOLDER = Path(__file__).resolve().parents[1] / "p4"
PLAIN = ProgramFiles(_FOLDER / "plain.p4", _FOLDER / "compiled")
# With one bank p4c uses shorter aliases than the names that the controller expects.
_ALIASES = {"value0": "bank0.value", "events": "bank0.events"}


def plain_program() -> Program:
    """Return the committed compilation of the program."""
    return load_program(PLAIN)


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
        entry_row=np.zeros_like(expected, dtype=np.uint8),
        result_bank=np.zeros_like(part.result_bank),
        result_slot=part.result_slot * banks + part.result_bank,
    )


def compile_plain_program(folder: Path = PLAIN.compiled) -> None:
    """Compile the program into ``folder``, with the aliases that the controller knows."""
    files = replace(PLAIN, compiled=folder)
    compile_program(files)
    text = files.p4info.read_text()
    for short, alias in _ALIASES.items():
        text = text.replace(f'alias: "{short}"', f'alias: "{alias}"')
    files.p4info.write_text(text)


if __name__ == "__main__":
    compile_plain_program()
