# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The paper's model of a block's packets through the switch (section 3.2.1)."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.sending.gamr import SendOrder


@dataclass(frozen=True, eq=False)
class Arrivals:
    """The packets of all blocks in the order in which they reach the switch.

    Attributes:
        block: int32[S], ascending; the place of a packet among those of its block is its turn.
        packet: int64[E], for each served edge (or partial sum) the packet that serves it.
        result: int64[E], and the sum that it contributes to, numbered from 0 without gaps
            over all blocks.
    """

    block: NDArray[np.int32]
    packet: NDArray[np.int64]
    result: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Flow:
    """What happens over time; the steps of a block follow those of the block before it.

    Attributes:
        completion: int64[B], z of each block: the steps until the last sum has left.
        largest_queue: int64[B], the largest Q(t) of each block.
        block_indptr: int64[B + 1], the steps of each block in the arrays below.
        queue: int64[T], Q(t): sums that wait to leave after step t.
        occupancy: int64[T], slots that hold an unfinished sum after step t.
    """

    completion: NDArray[np.int64]
    largest_queue: NDArray[np.int64]
    block_indptr: NDArray[np.int64]
    queue: NDArray[np.int64]
    occupancy: NDArray[np.int64]

    @property
    def steps(self) -> int:
        """The steps of all blocks, one after another."""
        return int(self.completion.sum())


def multicast_arrivals(
    boundary: BoundaryEdges, block: NDArray[np.int32], sends: SendOrder
) -> Arrivals:
    """Return the arrivals when every edge is served by the feature of its source.

    Args:
        boundary: the boundary edges, length E.
        block: int32[E].
        sends: the sources of each block, in sending order.

    Returns:
        The packets in sending order, and the sums that they contribute to.
    """
    sent = (sends.block.astype(np.int64) << 32) | sends.source
    order = np.argsort(sent)
    key = (block.astype(np.int64) << 32) | boundary.source
    packet = order[np.searchsorted(sent, key, sorter=order)]
    sums = np.unique((block.astype(np.int64) << 32) | boundary.destination, return_inverse=True)[1]
    return Arrivals(sends.block, packet, sums.reshape(-1))


def simulate_flow(arrivals: Arrivals, rate: int = 1) -> Flow:
    """Work out completion time, queue and slots over time, as in section 3.2.1.

    In each step at most `rate` packets enter the switch and `rate` leave it. A sum is complete
    in the step in which its last packet enters, and may leave in the same step:

        Q(t) = max(f(t) + Q(t - 1) - rate, 0)    with f(t) the sums that step t completes
        z = ceil(n / rate) + ceil(Q(ceil(n / rate)) / rate)

    Q(t) is worked out here as the running sum of f - rate above its running minimum. Behind
    the last arrival the queue drains; those steps are part of the arrays.

    Args:
        arrivals: in which order the packets enter, and what they complete.
        rate: k of the paper.
    """
    steps, indptr = packet_steps(arrivals.block, rate)
    when = steps[arrivals.packet]
    results = int(arrivals.result.max(initial=-1)) + 1
    last = np.zeros(results, dtype=np.int64)
    np.maximum.at(last, arrivals.result, when)
    first = np.full(results, int(indptr[-1]), dtype=np.int64)
    np.minimum.at(first, arrivals.result, when)
    return flow_of_sums(first, last, indptr, rate)


def packet_steps(
    block: NDArray[np.integer], rate: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return in which steps packets enter, in one numbering as if no block had to drain.

    Args:
        block: integers[S], of each packet in the order of arrival, ascending from 1.
        rate: packets per step.

    Returns:
        (int64[S], the step of each packet; int64[B + 1], the steps of each block)
    """
    blocks = int(block.max(initial=0))
    bounds = np.searchsorted(block, np.arange(1, blocks + 2))
    indptr = np.concatenate([[0], np.cumsum(-(-np.diff(bounds) // rate))]).astype(np.int64)
    step = (np.arange(len(block)) - bounds[block - 1]) // rate
    return indptr[block - 1] + step, indptr


def flow_of_sums(
    first: NDArray[np.int64], last: NDArray[np.int64], indptr: NDArray[np.int64], rate: int
) -> Flow:
    """Do what `simulate_flow` does, for sums whose first and last steps are known.

    Args:
        first: int64[R], as packet_steps numbers them.
        last: int64[R].
        indptr: int64[B + 1], the steps of each block.
        rate: sums that leave per step.

    Returns:
        What happens over time.
    """
    completed = np.bincount(last, minlength=int(indptr[-1]))
    held = np.cumsum(np.bincount(first, minlength=int(indptr[-1])) - completed)

    queues, occupancies = [], []
    for low, high in pairwise(indptr.tolist()):
        queue = _queue(completed[low:high], rate)
        drain = np.maximum(queue[-1] - rate * np.arange(1, -(-queue[-1] // rate) + 1), 0)
        queues += [queue, drain]
        occupancies += [held[low:high], np.zeros(len(drain), dtype=np.int64)]
    completion = np.array(
        [len(one) + len(two) for one, two in zip(queues[::2], queues[1::2], strict=True)],
        dtype=np.int64,
    )
    nothing = np.zeros(0, dtype=np.int64)
    return Flow(
        completion=completion,
        largest_queue=np.array([queue.max() for queue in queues[::2]], dtype=np.int64),
        block_indptr=np.concatenate([[0], np.cumsum(completion)]).astype(np.int64),
        queue=np.concatenate([nothing, *queues]),
        occupancy=np.concatenate([nothing, *occupancies]),
    )


def _queue(completed: NDArray[np.int64], rate: int) -> NDArray[np.int64]:
    """Return Q(t) of one block, for each step in which packets enter."""
    level = np.cumsum(completed - rate)
    queue: NDArray[np.int64] = level - np.minimum(np.minimum.accumulate(level), 0)
    return queue
