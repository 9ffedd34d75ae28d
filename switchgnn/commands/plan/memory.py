# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a plan takes of the memory of its switches, for people."""

import re
from collections.abc import Iterable
from dataclasses import replace

from rich import box
from rich.table import Table

from switchgnn.controller.plan import Use
from switchgnn.profiles import PlanMemory

_KILO, _MEGA = 1e3, 1e6
# A plan has little to do with what is smaller: ports, addresses, barriers.
_SHOWN_BYTES = 1_000


def memory_table(memory: PlanMemory) -> Table:
    """Return the large tables and registers, and the sums of all."""
    title = f"memory of the {'fullest ' if memory.switches > 1 else ''}switch"
    table = Table(title=title, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("", no_wrap=True)
    for name in ("number", "room", "bits each", "size"):
        table.add_column(name, justify="right")
    for kind, uses, total in (
        ("table", memory.tables, memory.table_bytes),
        ("register", _banks_together(memory.registers), memory.register_bytes),
    ):
        for use in uses:
            if use.bytes >= _SHOWN_BYTES or not use.fits:
                table.add_row(
                    f"{kind} {use.name}",
                    f"{use.number:,}",
                    "-" if use.room is None else f"{use.room:,}",
                    f"{use.bits:,}",
                    _size(use.bytes),
                )
        table.add_row(f"all {kind}s", "", "", "", _size(total))
    return table


def _banks_together(registers: Iterable[Use]) -> list[Use]:
    """Return the registers of all banks that hold the same as one."""
    found: dict[str, Use] = {}
    for use in registers:
        name = re.sub(r"^bank\d+\.", "banks.", use.name)
        known = found.get(name, replace(use, name=name, number=0, room=0))
        room = None if known.room is None or use.room is None else known.room + use.room
        found[name] = replace(known, number=known.number + use.number, room=room)
    return list(found.values())


def _size(number: float) -> str:
    return f"{number / _MEGA:,.2f} MB" if number >= _MEGA else f"{number / _KILO:,.2f} kB"
