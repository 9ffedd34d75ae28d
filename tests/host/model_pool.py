# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The model switch with slots that are handed out first come, first served."""

import numpy as np

from switchgnn.host.wire.header import Header, Kind
from tests.host.model_switch import ModelSwitch, undisturbed

RELEASED = 0xFFFF


class ModelPool(ModelSwitch):
    """`limits` says how many slots each bank has."""

    def __init__(self, switch_part, workers, plan, disturb=undisturbed, *, limits):
        super().__init__(switch_part, workers, plan, disturb)
        self.limits = limits
        self.bank = {
            (int(block), int(vertex)): int(bank)
            for block, bank, vertex in zip(
                switch_part.result_block,
                switch_part.result_bank,
                switch_part.result_vertex,
                strict=True,
            )
        }
        self.counts = {}
        self.held = {}
        self.overflowed = 0
        self.keep_slots = False

    def forget(self):
        """Restart, from within `disturb`, which has the lock."""
        super().forget()
        self.counts.clear()
        self.held.clear()

    def _add(self, place, feature, vertex, owner, expected, lanes):
        source = feature.src_id
        key = (*place, vertex)
        seen = self.counts.get(key, 0)
        if seen >= expected:
            return
        self.counts[key] = seen = seen + 1
        bank = self.bank[place[1], vertex]
        held = self.held.setdefault((*place, bank), set())
        if vertex not in held and len(held) >= self.limits[bank]:
            self.overflowed += 1
            self._send(owner, self._header(Kind.FEATURE, place, source, vertex, 1), bytes_of(lanes))
            return
        held.add(vertex)
        sources, total = self.sums.get(key, ([], np.zeros_like(lanes)))
        self.sums[key] = sources, total = [*sources, source], total + lanes
        if seen == expected:
            header = self._header(Kind.SUM, place, sum(sources) % 2**32, vertex, len(sources))
            self._send(owner, header, bytes_of(total))
            if not self.keep_slots:
                held.discard(vertex)

    def _take_request(self, worker, header, place):
        owner, _ = self.destination.get((place[1], header.dst_id), (None, 0))
        if owner != worker:
            return
        key = (*place, header.dst_id)
        if header.kind is Kind.FETCH:
            self.counts[key] = RELEASED
            bank = self.bank[place[1], header.dst_id]
            self.held.setdefault((*place, bank), set()).discard(header.dst_id)
            self._send(self.owner[header.src_id], header, b"")
            return
        missing = header._replace(kind=Kind.MISSING, count=self.counts.get(key, 0))
        self._send(worker, missing, b"")

    def _header(self, kind, place, source, vertex, count):
        return Header(
            kind=kind,
            src_id=source,
            dst_id=vertex,
            count=count,
            round=place[0],
            block_id=place[1],
            fragment=place[2],
        )


def bytes_of(lanes):
    return lanes.astype(">i4").tobytes()


def split(slots, banks=8):
    """How many of the slots each bank has."""
    return [slots // banks + (bank < slots % banks) for bank in range(banks)]
