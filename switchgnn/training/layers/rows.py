"""Rows of any vertices of the graph, from the workers that hold them."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional

from switchgnn.training.base.errors import TrainingError, collective
from switchgnn.training.base.steps import SharedSteps
from switchgnn.training.data.partition import Partition
from switchgnn.training.exchange.sums import with_adjoint
from switchgnn.training.layers.halo import Copying

# Sends rows of a CPU tensor and returns those that arrive. The first list has the number of rows to
# each rank, the second one that from each; rows are in the order of ranks.
Exchange = Callable[[Tensor, list[int], list[int]], Tensor]


def over_gloo(
    attending: Callable[[], AbstractContextManager[None]], steps: SharedSteps
) -> Exchange:
    """Return the exchange of the process group; `attending`, `steps`: as for ``GradientSums``."""

    def exchange(rows: Tensor, give: list[int], take: list[int]) -> Tensor:
        if not dist.is_initialized() or dist.get_world_size() == 1:
            return rows
        found = rows.new_empty(sum(take), *rows.shape[1:])
        words = f"the exchange of rows of {list(rows.shape[1:])} numbers of {rows.dtype}"
        steps.enter(words, attending)
        with attending(), collective():
            sent = _bytes(found), _bytes(rows)
            steps.wait(dist.all_to_all_single(*sent, take, give, async_op=True))
        return found

    return exchange


def _bytes(rows: Tensor) -> Tensor:
    # Gloo does not have all types.
    return rows.contiguous().unsqueeze(1).flatten(1).view(torch.uint8)


class VertexRows:
    """Rows of any vertices, for workers that make the same calls in the same order."""

    def __init__(self, partition: Partition, exchange: Exchange) -> None:
        self.exchange = exchange
        self._own, self._incoming = torch.from_numpy(partition.vertices), partition.incoming
        self._total, self._workers = partition.total_vertices, partition.workers
        self._masters = partition.own
        # Known from the first call on: int32[V], where each vertex comes if they are sorted by
        # rank, then by row; int32[workers + 1], where the vertices of each rank begin and end.
        self._places: tuple[Tensor, Tensor] | None = None

    def take(self, h: Tensor, ids: Tensor) -> Tensor:
        """Return [*ids.shape, ...], rows of all workers' `h` [n, ...]; see ``Worker.rows``."""
        self._check(h, ids)
        request, index = self._request(ids)
        found = with_adjoint(h, request.fetch, request.add_back)
        rows = found.index_select(0, index.flatten().to(h.device))
        return rows.view(ids.shape + h.shape[1:])

    def copying(self) -> Copying | None:
        """Return the copies of the rows of remote neighbours; None: the job does not know them."""
        if self._incoming is None:
            return None
        request, index = self._request(torch.from_numpy(self._incoming[0]))
        between = np.stack([index.numpy(), self._incoming[1]])
        return Copying(between, request.fetch, request.add_back)

    def _request(self, ids: Tensor) -> tuple["_Request", Tensor]:
        """Return a request for the rows of these ids, and which of them is that of each id."""
        place, bounds = self._places = self._places or self._find_places()
        # A repeated id travels once.
        distinct, index = torch.unique(place[ids.cpu()], return_inverse=True)
        counts, once = torch.searchsorted(distinct, bounds).diff(), [1] * self._workers
        take, give = counts.tolist(), self.exchange(counts, once, once).tolist()
        wanted = self.exchange(distinct - bounds[:-1].repeat_interleave(counts), take, give)
        return _Request(wanted.long(), give, take, len(self._own), self.exchange), index

    def _check(self, h: Tensor, ids: Tensor) -> None:
        if h.shape[:1] != self._own.shape:
            raise TrainingError(
                f"rows() needs a row for each of the worker's {len(self._own)} vertices, and the "
                f"tensor is {list(h.shape)}."
            )
        if ids.dtype != torch.int64:
            raise TrainingError(f"rows() needs the ids of vertices as int64, not {ids.dtype}.")
        outside = ids[(ids < 0) | (ids >= self._total)]
        if len(outside):
            raise TrainingError(
                f"rows() was asked for vertex {int(outside[0])}, and the graph has the vertices 0 "
                f"to {self._total - 1}."
            )

    def _find_places(self) -> tuple[Tensor, Tensor]:
        workers, once = self._workers, [1] * self._workers
        counts = [self._masters] * workers
        sizes = self.exchange(torch.tensor(counts), once, once)
        own = self._own[: self._masters].repeat(workers)
        vertices = self.exchange(own, counts, sizes.tolist())
        place = torch.empty(self._total, dtype=torch.int32)
        place[vertices] = torch.arange(self._total, dtype=torch.int32)
        return place, functional.pad(sizes.cumsum(0), (1, 0)).int()


@dataclass(frozen=True, eq=False)
class _Request:
    """Which of this worker's n rows go to the ranks, and how many come from each."""

    rows: Tensor  # int64[s], sorted by the rank that they go to
    give: list[int]  # how many go to each rank
    take: list[int]  # how many come from each rank
    size: int  # n
    exchange: Exchange

    def fetch(self, h: Tensor) -> Tensor:
        wanted = h.index_select(0, self.rows.to(h.device)).cpu()
        return self.exchange(wanted, self.give, self.take).to(h.device)

    def add_back(self, gradients: Tensor) -> Tensor:
        """Return [n, ...], the sums of the gradients of fetched rows; the adjoint of `fetch`."""
        found = self.exchange(gradients.cpu(), self.take, self.give)
        total = found.new_zeros(self.size, *found.shape[1:]).index_add_(0, self.rows, found)
        return total.to(gradients.device)
