"""Bundles: frames that carry several rows of one worker in a block, in sending order."""

from dataclasses import dataclass, replace

import numpy as np

from switchgnn.base.array_types import Int32s, Int64s, UInt8s, UInt32s
from switchgnn.planner.base.arrays import rank_within
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.graphs.graph import FIRST_BUNDLE_ID
from switchgnn.planner.sending.order import SendOrder
from switchgnn.planner.sending.packets import Packets, keys_of, ones


@dataclass(frozen=True, eq=False)
class Bundles:
    """The bundles of all blocks, and their additions; C edges as in Packets."""

    edges: BoundaryEdges  # the sources are bundles: rank in the block · workers + worker
    row: UInt8s  # [C], the row of the bundle that each edge adds
    count: Int64s  # [C], all 1: a row is one contribution
    numbers: Int32s  # [N], all bundles, ascending
    senders: Int32s  # [N], the worker of each


def make_bundles(
    packets: Packets, order: SendOrder, owner: Int32s, *, workers: int, rows: int
) -> Bundles:
    """Put the packets of each worker in each block into bundles, `rows` at a time.

    `owner` is int32[S], the sender of each packet in `order`.
    """
    rank = rank_within((owner, order.block))
    number = rank // rows * workers + owner
    if number.max(initial=0) + FIRST_BUNDLE_ID >= 2**32:
        raise PlannerError(
            f"{number.max() // workers + 1} bundles of one worker in one block are more than there "
            "are ids; give the switch fewer slots."
        )
    keys = keys_of(order.block, order.source)
    by_key = np.argsort(keys)
    at = by_key[np.searchsorted(keys, keys_of(packets.block, packets.edges.source), sorter=by_key)]
    numbers = np.unique(number).astype(np.int32)
    return Bundles(
        edges=replace(packets.edges, source=number[at].astype(np.int32)),
        row=(rank[at] % rows).astype(np.uint8),
        count=ones(len(at)),
        numbers=numbers,
        senders=numbers % workers,
    )


def bundle_ids(number: Int32s) -> UInt32s:
    """Return the Src_ids of bundles."""
    ids: UInt32s = number.astype(np.uint32) + np.uint32(FIRST_BUNDLE_ID)
    return ids
