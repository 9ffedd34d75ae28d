"""Lower bounds for any plan of an assignment, and the packets of other transports."""

from dataclasses import dataclass

import numpy as np

from switchgnn.base.array_types import Int32s, Int64s, Integers
from switchgnn.planner.arrays import (
    Compiled,
    distinct_pairs,
    indptr_of_keys,
    number_ids,
    number_pairs,
)
from switchgnn.planner.graphs.boundary import BoundaryEdges, holders

# A matching of more edges takes minutes, so it is left out and reported as such.
MATCHING_EDGES = 20_000_000


@dataclass(frozen=True, eq=False)
class PacketCounts:
    """Data packets of one exchange per fragment."""

    up: Int64s  # [W], sent by each worker
    down: Int64s  # [W], received by each worker

    @property
    def total(self) -> int:
        """All of them, up and down."""
        return int(self.up.sum() + self.down.sum())


def host_based(boundary: BoundaryEdges, workers: int) -> PacketCounts:
    """Count one copy of each source for each other worker that needs it, up and down."""
    sender, receiver = boundary.host_copies()
    return PacketCounts(_count(sender, workers), _count(receiver, workers))


def once_each(boundary: BoundaryEdges, workers: int) -> PacketCounts:
    """Count the least with multicast: each source once up, each destination once down."""
    return multicast_packets(boundary, np.ones(len(boundary), dtype=np.int32), workers)


def least_with_partial_sums(boundary: BoundaryEdges, workers: int) -> PacketCounts | None:
    """Count the fewest packets if workers may also send partial sums of their own.

    Up, a worker sends at least the minimum vertex cover of its edges, as large as their maximum
    matching (König); blocks can only add to that. Down, each destination comes at least once.
    """
    if len(boundary) > MATCHING_EDGES:
        return None
    from scipy.sparse import csr_matrix  # noqa: PLC0415 - slow to import
    from scipy.sparse.csgraph import maximum_bipartite_matching  # noqa: PLC0415

    sources, row = number_ids(boundary.source)
    # A destination counts once for each worker that sends to it.
    (sums, _), column = number_pairs(boundary.destination, boundary.source_worker)
    ones = np.ones(len(boundary), dtype=np.int8)
    edges = csr_matrix((ones, (row, column)), shape=(len(sources), len(sums)))
    matched = maximum_bipartite_matching(edges, perm_type="column") >= 0
    owner = holders(boundary.source, boundary.source_worker)[sources]
    return PacketCounts(_count(owner[matched], workers), once_each(boundary, workers).down)


def multicast_packets(boundary: BoundaryEdges, block: Integers, workers: int) -> PacketCounts:
    """Count each source once up and each destination once down in each of its blocks, int32[E]."""
    up = distinct_pairs(block, boundary.source)[1]
    down = distinct_pairs(block, boundary.destination)[1]
    return PacketCounts(
        _count(holders(boundary.source, boundary.source_worker)[up], workers),
        _count(holders(boundary.destination, boundary.destination_worker)[down], workers),
    )


def _count(owner: Integers, workers: int) -> Int64s:
    return np.bincount(owner, minlength=workers).astype(np.int64)


def simulate_pool(boundary: BoundaryEdges, slots: int, workers: int, seed: int) -> PacketCounts:
    """Simulate one exchange: sources in a random order, destinations compete for the slots.

    The contributions of a source arrive together, by ascending destination. The first one that
    finds a free slot takes it for its destination; the last one frees it. Contributions without a
    slot go to the worker of their destination. The product has a pool for each bank and overflows
    slightly more than this single pool. Sums and overflows count as packets down.
    """
    sources, source = number_ids(boundary.source)
    destinations, destination = number_ids(boundary.destination)
    holder = holders(destination, boundary.destination_worker)
    sender = holders(source, boundary.source_worker)
    fan_in = np.bincount(destination, minlength=len(destinations)).astype(np.int64)
    sent = _play(
        arrival_order(len(sources), seed),
        indptr_of_keys(source, len(sources)),
        destination,
        fan_in,
        slots,
    )
    down = np.bincount(holder, weights=sent, minlength=workers).astype(np.int64)
    up = np.bincount(sender, minlength=workers)
    return PacketCounts(up, down)


def arrival_order(sources: int, seed: int) -> Int64s:
    """Return the sources in order of arrival, numbered by their ids: int64[N]."""
    return np.random.default_rng(seed).permutation(sources)


@Compiled
def _play(order: Int64s, indptr: Int64s, destination: Int32s, fan_in: Int64s, slots: int) -> Int64s:
    """Return what leaves the switch for each destination: its sum, and overflows."""
    held = np.zeros(len(fan_in), dtype=np.bool_)
    sent = np.zeros(len(fan_in), dtype=np.int64)
    left = fan_in.copy()
    free = slots
    for source in order:
        for at in range(indptr[source], indptr[source + 1]):
            who = destination[at]
            left[who] -= 1
            if not held[who] and free > 0:
                held[who] = True
                free -= 1
            if not held[who]:
                sent[who] += 1
            elif left[who] == 0:
                sent[who] += 1
                free += 1
    return sent
