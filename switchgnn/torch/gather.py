# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Brings the rows of all workers together, in the ids of the whole graph."""

import torch
import torch.distributed as dist
from torch import Tensor

from switchgnn.training.meeting import collective


def gather_rows(rows: Tensor, vertices: Tensor, total: int, to: int) -> Tensor | None:
    """Return the rows of all vertices on one rank, and None elsewhere.

    Args:
        rows: [n, ...], one row per vertex of this worker, on any device.
        vertices: int64[n], their ids in the whole graph.
        total: the number of vertices of the whole graph.
        to: the rank that gets them.

    Returns:
        [total, ...] on the CPU, row v is that of vertex v; on that rank only.

    Raises:
        LostWorkerError: another worker has failed.
    """
    rows = rows.detach().cpu().contiguous()
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return _placed([(vertices, rows)], total)
    with collective():
        found = _exchange(rows, vertices, to)
    return _placed(found, total) if found else None


def _exchange(rows: Tensor, vertices: Tensor, to: int) -> list[tuple[Tensor, Tensor]]:
    """Return the vertices and rows of all workers on one rank, and nothing elsewhere."""
    mine = torch.tensor([len(rows)])
    sizes = [torch.zeros_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(sizes, mine)
    if dist.get_rank() != to:
        dist.send(vertices.contiguous(), to)
        dist.send(rows, to)
        return []
    found = [(vertices, rows)]
    for rank, size in enumerate(map(int, sizes)):
        if rank != to:
            ids, values = (
                torch.empty(size, dtype=torch.int64),
                rows.new_empty(size, *rows.shape[1:]),
            )
            dist.recv(ids, rank)
            dist.recv(values, rank)
            found.append((ids, values))
    return found


def _placed(found: list[tuple[Tensor, Tensor]], total: int) -> Tensor:
    rows = found[0][1]
    whole = rows.new_zeros(total, *rows.shape[1:])
    for ids, values in found:
        whole[ids] = values
    return whole
