# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Reads what switches say, by clients that only read."""

from collections.abc import Sequence
from contextlib import suppress

from switchgnn.controller.counters import SlotsInUse, read_slots_in_use
from switchgnn.controller.errors import ControllerError
from switchgnn.controller.metrics import Reading, SwitchMetrics
from switchgnn.controller.p4runtime.client import P4RuntimeClient


class Switches:
    """Some switches.

    Args:
        clients: of each, to read only; they are opened when they are needed, again when a switch
            is back.
        bank_slots: for each, how many slots of each bank its plan uses, at most; empty: nobody
            knows, or it would not say which are in use.
    """

    def __init__(self, clients: Sequence[P4RuntimeClient], bank_slots: Sequence[int] = ()) -> None:
        self._clients = clients
        self._bank_slots = bank_slots
        self._metrics = SwitchMetrics(clients, interval=0.0, with_tables=False)

    def read(self) -> tuple[list[Reading | None], list[SlotsInUse | None]]:
        """Return what each says now, and its slots; None: it does not say."""
        readings = self._metrics.readings()
        slots = [
            None if reading is None else self._slots(place)
            for place, reading in enumerate(readings)
        ]
        return readings, slots

    def up(self) -> list[bool]:
        """Tell of each whether it answered, also without a program."""
        return self._metrics.up()

    def close(self) -> None:
        """Disconnect."""
        with suppress(ControllerError):
            self._metrics.close()

    def _slots(self, switch: int) -> SlotsInUse | None:
        if not self._bank_slots or not self._bank_slots[switch]:
            return None
        with suppress(ControllerError):
            return read_slots_in_use(self._clients[switch], self._bank_slots[switch])
        return None
