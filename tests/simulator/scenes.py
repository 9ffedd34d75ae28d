"""Exchanges made by hand: a few packets whose times can be worked out on paper."""

from dataclasses import dataclass
from itertools import chain

import numpy as np

from switchgnn.host.direct.framing import Framing
from switchgnn.host.direct.kinds import copies
from switchgnn.host.direct.schedule import count_rows
from switchgnn.host.wire.header import LANES, Kind
from switchgnn.lab.simulator.request import NetworkOptions
from switchgnn.lab.simulator.setup import Setup, boundary_of_plan, host_setup
from switchgnn.planner import build_plan

# Picoseconds at 100 Gbit/s, where a byte takes 80, and of a link's delay.
BYTE, DELAY = 80, 2_000_000
FEATURE, BARRIER, ACK = 188 * BYTE, 88 * BYTE, 60 * BYTE
LAST = 1 << 31
# A padded fragment of one row in each frame between hosts, as the switch needs it; and rows up to
# an MTU of 1,500.
FRAGMENT, PACKED = Framing(None), Framing()
FIRST_BLOCK = 1


@dataclass(frozen=True)
class Sent:
    """A packet of a worker; passes are lists of rows."""

    worker: int
    passes: list[list[int]]
    count: int = 1
    block: int = FIRST_BLOCK


@dataclass(frozen=True)
class Row:
    """A destination of a block."""

    worker: int
    expected: int
    bank: int = 0
    block: int = FIRST_BLOCK
    vertex: int = 0


def planned(graph, **kind):
    return build_plan(graph, **{"workers": 5, "slots": 64, "program": "0" * 64, **kind})


def hosts_alone(rows):
    """Rows between hosts, of one fragment each."""
    return host_setup(np.array(rows), LANES, NetworkOptions().pace, FRAGMENT)


def scene(workers, rows, packets, *, blocks=1, fragments=1, bank_slots=(), pools=1):
    """The arrays of an exchange; packets of a worker and block in the order given."""
    shares = [(w, b) for w in range(workers) for b in range(1, blocks + 1)]
    sent = [p for share in shares for p in packets if (p.worker, p.block) == share]
    received = [
        [index for index, row in enumerate(rows) if (row.worker, row.block) == share]
        for share in shares
    ]
    words = [
        [row | (LAST if row == of_pass[-1] else 0) for of_pass in p.passes for row in of_pass]
        for p in sent
    ]
    lengths = [len(each) for each in words]
    of_share = [sum((p.worker, p.block) == share for p in sent) for share in shares]
    arrays = {
        "send_indptr": indptr(of_share),
        "packet_count": np.array([p.count for p in sent], dtype=np.uint16),
        "packet_bare": np.zeros(len(sent), dtype=np.uint8),
        "packet_start": indptr(lengths)[:-1],
        "packet_length": np.array(lengths, dtype=np.uint32),
        "contribution": np.array([*chain(*words)], dtype=np.uint32),
        "row_expected": np.array([row.expected for row in rows], dtype=np.uint16),
        "row_worker": np.array([row.worker for row in rows], dtype=np.uint8),
        "row_vertex": np.array([row.vertex for row in rows], dtype=np.uint32),
        "row_bank": np.array([row.bank for row in rows], dtype=np.uint8),
        "sum_indptr": indptr([1] * len(rows)),
        "sum_worker": np.array([row.worker for row in rows], dtype=np.uint8),
        "receive_row": np.array([*chain(*received)], dtype=np.uint32),
        "receive_indptr": indptr([len(share) for share in received]),
    }
    return Setup(workers, False, arrays, blocks, fragments, tuple(bank_slots), pools=pools)


def three_sums(workers=3, **more):
    """Complete at the same time, all for worker 2."""
    packets = [Sent(worker, [[0, 1, 2]]) for worker in (0, 1)]
    return scene(workers, [Row(2, 2)] * 3, packets, **more)


def indptr(sizes):
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64)


def arrivals(run, kind, *, at_switch):
    """(picoseconds, worker, id) of the packets of a kind that have arrived there, in order."""
    return [
        (each.picoseconds, each.worker, each.id)
        for each in run.trace
        if each.kind == kind and each.at_switch == at_switch
    ]


def features_at_switch(run):
    return arrivals(run, Kind.FEATURE, at_switch=True)


def sums_at_workers(run):
    return arrivals(run, Kind.SUM, at_switch=False)


def acks_at_workers(run):
    return arrivals(run, Kind.ACK, at_switch=False)


def copies_of_plan(plan):
    return count_rows(boundary_of_plan(plan), plan.manifest.workers, copies).rows
