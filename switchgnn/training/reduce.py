# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The all-reduce of a training through the switch, beside the neighbour sums of the same worker."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
import torch.distributed as dist

from switchgnn.host.direct.frames import PROTOCOL as DIRECT_PROTOCOL
from switchgnn.host.innetwork.exchange import plan_id
from switchgnn.host.links.split import kinds_from, split_link
from switchgnn.host.reduce.reducer import Reducer
from switchgnn.host.reduce.stream import ReduceStream
from switchgnn.host.transport import WorkerEnd
from switchgnn.host.wire.header import PROTOCOL, Kind
from switchgnn.host.wire.link import Link
from switchgnn.planner.plan.files import read_manifest
from switchgnn.training.gradients import collective


@dataclass(frozen=True, eq=False)
class SwitchSums:
    """One worker's all-reduces in the switch.

    Attributes:
        end: for the neighbour sums: it opens the other half of the link.
        link: the half of the all-reduces.
    """

    end: WorkerEnd
    reducer: Reducer
    link: Link


@contextmanager
def switch_sums(end: WorkerEnd, words: int) -> Iterator[SwitchSums]:
    """Share the link of a worker between neighbour sums and all-reduces, for the block.

    The workers agree on the first fragment in their process group.

    `words`: int32 of each number, 2 or 1.
    """
    whole = end.open_link(PROTOCOL, DIRECT_PROTOCOL)
    sums, reduces = split_link(whole, kinds_from(Kind.REDUCE))
    manifest = read_manifest(end.plan_folder())
    with sums, reduces:
        stream = ReduceStream(
            reduces,
            end.addresses,
            worker=end.worker,
            workers=end.workers,
            session=end.session,
            plan_id=plan_id(manifest),
            pace=end.pace,
            clock=end.clock,
            words=words,
        )
        stream.start(largest_of_all(stream.query().first))
        with Reducer(stream) as reducer:
            yield SwitchSums(replace(end, shared=sums), reducer, reduces)


def largest_of_all(number: int) -> int:
    """Return the largest number of all workers of the process group."""
    numbers = torch.tensor([number])
    with collective():
        dist.all_reduce(numbers, dist.ReduceOp.MAX)
    return int(numbers[0])
