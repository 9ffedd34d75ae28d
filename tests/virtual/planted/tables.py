"""Mistakes in the tables of a switch, for a plan of three workers."""

from dataclasses import replace

import numpy as np

from switchgnn.planner.graphs.graph import FIRST_RESERVED_ID

WORKERS = 3


def drop_a_contribution(part):
    """One source's contribution to one slot is dropped, and a stranger's added instead.

    Without the stranger the count would be short, and the worker would sum itself.
    """
    entry, bank = _shared_slot(part)
    involved = part.entry_source[_same_slot(part, entry, bank)]
    strangers = (part.entry_block == part.entry_block[entry]) & ~np.isin(
        part.entry_source, involved
    )
    return _replace_contribution(part, entry, bank, int(np.flatnonzero(strangers)[0]))


def add_one_twice(part):
    entry, bank = _shared_slot(part)
    others = [other for other in np.flatnonzero(_same_slot(part, entry, bank)) if other != entry]
    return _replace_contribution(part, entry, bank, int(others[0]))


def _replace_contribution(part, entry, bank, other):
    """Take one contribution away and give the source of entry `other` one more."""
    expected = part.entry_expected.copy()
    wanted = expected[entry, bank]
    expected[entry, bank] = 0
    source = part.entry_source[other]
    hops = part.entry_hop[
        (part.entry_block == part.entry_block[other]) & (part.entry_source == source)
    ]
    last = part.entry_last.copy()
    last[(part.entry_block == part.entry_block[other]) & (part.entry_source == source)] = False
    slot = np.zeros((1, expected.shape[1]), dtype=part.entry_slot.dtype)
    slot[0, bank] = part.entry_slot[entry, bank]
    more = np.zeros((1, expected.shape[1]), dtype=expected.dtype)
    more[0, bank] = wanted
    return replace(
        part,
        entry_block=np.append(part.entry_block, part.entry_block[other]),
        entry_source=np.append(part.entry_source, source),
        entry_hop=np.append(part.entry_hop, np.uint16(hops.max() + 1)),
        entry_last=np.append(last, True),
        entry_count=np.append(part.entry_count, part.entry_count[other]),
        entry_slot=np.vstack([part.entry_slot, slot]),
        entry_expected=np.vstack([expected, more]),
        entry_row=np.vstack([part.entry_row, np.zeros_like(more, dtype=np.uint8)]),
    )


def swap_two_destinations(part):
    """Two slots of one worker with equal Counts exchange their vertices."""
    vertex = part.result_vertex.copy()
    counts = {}
    for row in range(len(vertex)):
        at = np.flatnonzero(
            (part.entry_block == part.result_block[row])
            & (part.entry_slot[:, part.result_bank[row]] == part.result_slot[row])
            & (part.entry_expected[:, part.result_bank[row]] > 0)
        )
        key = (int(part.result_worker[row]), len(at))
        if key in counts:
            other = counts[key]
            vertex[[row, other]] = vertex[[other, row]]
            return replace(part, result_vertex=vertex)
        counts[key] = row
    raise AssertionError("no two slots to swap")


def refuse_a_partial_sum(part):
    """No entry expects a worker's partial sum."""
    at = np.flatnonzero(part.entry_source >= FIRST_RESERVED_ID)[0]
    names = [name for name in vars(part) if name.startswith("entry_")]
    return replace(part, **{name: np.delete(getattr(part, name), at, axis=0) for name in names})


def give_a_partial_sum_to_another(part):
    owner = part.source_worker.copy()
    at = np.flatnonzero(part.source_vertex >= FIRST_RESERVED_ID)[0]
    owner[at] = (owner[at] + 1) % WORKERS
    return replace(part, source_worker=owner)


def _shared_slot(part):
    """An entry that is the source's last, and a bank whose slot has several sources."""
    for entry, bank in np.argwhere(part.entry_expected > 1):
        if part.entry_last[entry] and part.entry_expected[entry].astype(bool).sum() > 1:
            return int(entry), int(bank)
    raise AssertionError("no slot with several sources")


def _same_slot(part, entry, bank):
    return (
        (part.entry_block == part.entry_block[entry])
        & (part.entry_slot[:, bank] == part.entry_slot[entry, bank])
        & (part.entry_expected[:, bank] > 0)
    )
