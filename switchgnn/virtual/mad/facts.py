# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker may know of a plan, and make use of when it has gone mad."""

from collections.abc import Iterable
from dataclasses import dataclass

from switchgnn.host.innetwork.exchange import plan_id
from switchgnn.planner.plan.plan import Plan, SwitchPart
from switchgnn.virtual.network.fields import words_of


@dataclass(frozen=True)
class Facts:
    """What frames about a plan are made of.

    Attributes:
        workers, blocks: how many there are.
        words: of the fragments of a row.
        plan_id: the first 32 bits of the plan's digest.
        owner: worker of each source, vertex or partial sum.
        counts: the Count of every (block, source) that is sent.
        sums: (block, vertex) of every sum, with its worker and its count.
    """

    workers: int
    blocks: int
    words: tuple[int, ...]
    plan_id: int
    owner: dict[int, int]
    counts: dict[tuple[int, int], int]
    sums: dict[tuple[int, int], tuple[int, int]]


def facts_of(plan: Plan, width: int, more: Iterable[SwitchPart] = ()) -> Facts:
    """Return the facts of a plan.

    Args:
        plan: the plan.
        width: columns of each row.
        more: parts of other switches, of which the sources count, too.

    Returns:
        The facts.
    """
    part = plan.switch
    counts: dict[tuple[int, int], int] = {}
    for each in (part, *more):
        entries = zip(each.entry_block, each.entry_source, each.entry_count, strict=True)
        counts.update({(int(block), int(source)): int(n) for block, source, n in entries})
    results = zip(
        part.result_block.tolist(),
        part.result_vertex.tolist(),
        part.result_worker.tolist(),
        part.result_expected.tolist(),
        strict=True,
    )
    return Facts(
        workers=plan.manifest.workers,
        blocks=plan.manifest.blocks,
        words=words_of(width, plan.manifest.lanes),
        plan_id=plan_id(plan.manifest),
        owner=dict(zip(part.source_vertex.tolist(), part.source_worker.tolist(), strict=True)),
        counts=counts,
        sums={(block, vertex): (worker, count) for block, vertex, worker, count in results},
    )
