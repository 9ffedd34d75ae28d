# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""One worker of a job, in the user's own script."""

from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch_geometric.data import Data

from switchgnn.training.gradients import GradientSums, collective
from switchgnn.training.job import Job
from switchgnn.training.layers.models import distribute
from switchgnn.training.partition import Partition
from switchgnn.training.sums import RemoteSum


def gather_rows(rows: Tensor, vertices: Tensor, total: int, to: int) -> Tensor | None:
    """Return the rows of all vertices, [total, ...], on the CPU of one rank, and None elsewhere.

    Args:
        rows: [n, ...], one row per vertex of this worker, on any device.
        vertices: int64[n], their ids in the whole graph.
        total: the number of vertices of the whole graph.
        to: the receiving rank.
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
            ids = torch.empty(size, dtype=torch.int64)
            values = rows.new_empty(size, *rows.shape[1:])
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


class Worker:
    """A worker that has joined its job; made by ``join``.

    Args:
        job: what all workers share.
        folder: of the job.
        partition: the worker's part of the graph.
        remote: the sums over remote neighbours.
        first: the rank of worker 0.
        session: the number of this session on the switches.
        seed: of dropout.

    Attributes:
        number: its number.
        data: its part of the graph, a ``Data`` of PyTorch Geometric: ``x``, ``y``, the edges
            within the worker as ``edge_index``, ``train_mask``, ``val_mask``, ``test_mask``, and
            in ``n_id`` the ids of its vertices in the whole graph.
        classes: the number of classes.
        remote: also has the clock and the ledger of the exchanges.
    """

    def __init__(
        self,
        job: Job,
        folder: Path,
        partition: Partition,
        remote: RemoteSum,
        *,
        first: int,
        session: int,
        seed: int,
    ) -> None:
        self.job = job
        self.folder = folder
        self.number = partition.worker
        self.classes = partition.classes
        self.session = session
        self.data = _data_of(partition)
        self.partition = partition
        self.remote = remote
        self._first = first
        self._seed = seed
        self._sums = GradientSums(first)

    @property
    def workers(self) -> int:
        """Number of workers."""
        return self.partition.workers

    def wrap(self, model: nn.Module, *, precompute: bool = True) -> nn.Module:
        """Make a model of PyG layers compute on this part what it computes on the whole graph.

        All workers get the weights of worker 0. Call the model with ``data.x`` and
        ``data.edge_index``, on any device, on all workers the same number of times.

        Args:
            model: built with GCNConv, SAGEConv (mean, sum) and GINConv layers; changed in place.
            precompute: whether the sums of inputs that do not change are exchanged once and kept.

        Returns:
            The same model.

        Raises:
            UnsupportedLayerError: a layer needs more than one sum of per-source rows.
        """
        distribute(*(model, self.partition, self.remote), seed=self._seed, precompute=precompute)
        self._sums.spread_model(model)
        return model

    def mean(self, total: Tensor, count: int | None = None) -> Tensor:
        """Return this worker's share of a mean over all workers.

        The shares add up to the mean, and their gradients to its gradient.

        Args:
            total: [] or [1], a sum over this worker's vertices, or their labels.
            count: the divisor, the same on all workers; None: the training vertices of the whole
                graph, times the classes if the data set is multi-label.
        """
        if count is None:
            count = self.job.train * (self.classes if self.job.multilabel else 1)
        return total / count

    def reduce(self, model: nn.Module, loss: Tensor | None = None) -> float:
        """Replace the gradients of a model by their sums over all workers.

        Args:
            model: after `backward`, on all workers.
            loss: this worker's share of the loss, which is sent with the gradients.

        Returns:
            The sum of the losses of all workers; 0 without any.
        """
        share = torch.zeros(1) if loss is None else loss.detach().reshape(1)
        return self._sums.add_gradients(model.parameters(), share)

    def sum(self, values: Tensor) -> Tensor:
        """Return the sums of values over all workers; the same shape and type."""
        return self._sums.add(values.detach().clone())

    def gather(self, rows: Tensor) -> Tensor | None:
        """Return the rows of all vertices in the order of their ids.

        Args:
            rows: [n, ...], one row per vertex of this worker.

        Returns:
            [V, ...] on worker 0 and its CPU, None on the others.
        """
        vertices = torch.from_numpy(self.partition.vertices)
        return gather_rows(rows, vertices, self.job.vertices, self._first)


def _data_of(partition: Partition) -> Data:
    return Data(
        x=torch.from_numpy(partition.features),
        y=torch.from_numpy(partition.labels),
        edge_index=torch.from_numpy(partition.edges),
        train_mask=torch.from_numpy(partition.train),
        val_mask=torch.from_numpy(partition.validation),
        test_mask=torch.from_numpy(partition.test),
        n_id=torch.from_numpy(partition.vertices),
    )
