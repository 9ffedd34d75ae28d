"""The edges of a worker's part, and copies of the rows of its vertices' remote neighbours.

Workers send each other copies of rows. Backward, the gradients of the copies return and are added
up.
"""

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from switchgnn.base.array_types import Int64s
from switchgnn.planner.base.direction import Direction
from switchgnn.training.base.errors import UnsupportedLayerError
from switchgnn.training.data.partition import Partition
from switchgnn.training.exchange.sums import Linear, RemoteSum, with_adjoint
from switchgnn.training.layers.forward import Anywhere


class PartEdges:
    """The edges within a worker's part, which layers must be called with.

    `add`: replaces a tensor by its sum over all workers, and returns it; None: there are no others.
    """

    def __init__(self, partition: Partition, add: Callable[[Tensor], Tensor] | None = None) -> None:
        self.partition = partition
        # what to call a model of PyG with
        self.usual = (
            f"the part's {partition.edges.shape[1]:,} edges, `data.edge_index`, as a tensor"
        )
        self._own = Anywhere(torch.from_numpy(partition.edges))
        self._known: Callable[[], object] = lambda: None
        self._version, self._found = -1, False
        # A part without such edges looks the same in both directions: others know which it is.
        self._silent = not (partition.edges[0] != partition.edges[1]).any()
        self._add, self._agreed = None if partition.undirected else add, dict[str, bool]()
        if self._add is not None and not self._add(torch.tensor([float(self._silent)])).item():
            self._add = None

    def reverse(
        self,
        called: str,
        graph: Any,  # noqa: ANN401
        edges: Callable[[], object],
        hint: str,
    ) -> bool:
        """Return whether edges are those of the part from target to source; refuse any others.

        On an undirected graph, these are the same. `graph`: what has the edges, a tensor or a
        graph of DGL; one that was compared is not compared again. `edges`: returns them,
        int64[2, E], in any order. `hint`: what to call the model with.
        """
        counted = isinstance(graph, Tensor) and not graph.is_inference()
        version = graph._version if counted else 0
        if self._known() is not graph or self._version != version:
            found = self._compared(edges())
            if found is None:
                raise UnsupportedLayerError(
                    f"{called} was given other edges than those of this worker's part, or of its "
                    f"reverse: call the model with {hint}."
                )
            self._known, self._version, self._found = weakref.ref(graph), version, found
        if self._add is not None and called not in self._agreed:
            self._agreed[called] = bool(self._add(torch.tensor([float(self._found)])).item())
        return self._agreed.get(called, self._found) if self._silent else self._found

    def _compared(self, edges: object) -> bool | None:
        if not isinstance(edges, Tensor):
            return None
        (own,) = self._own.on(edges.device)
        if edges.shape != own.shape or edges.is_floating_point():
            return None
        rows = len(self.partition.vertices)
        for reverse, mine in ((False, own), (True, own.flip(0))):
            if torch.equal(edges, mine) or torch.equal(_sorted(edges, rows), _sorted(mine, rows)):
                return reverse and not self.partition.undirected
        return None


def check_row_count(called: str, rows: Tensor, expected: int) -> None:
    """Refuse rows that are not one per vertex of this worker."""
    found = len(rows) if rows.dim() else 0
    if found != expected:
        raise UnsupportedLayerError(
            f"{called} was given {found:,} rows for a part of {expected:,} vertices: give one row "
            "for each id in `data.n_id`, such as `table.weight[data.n_id]`."
        )


def _sorted(edges: Tensor, rows: int) -> Tensor:
    return (edges[0] * rows + edges[1]).sort().values


@dataclass(frozen=True, eq=False)
class Copying:
    """How copies of the rows of remote neighbours are had."""

    # int64[2, B], the edges from copies to the rows that they are neighbours of
    between: Int64s
    fetch: Linear  # returns copies [R, F] of all workers' rows [n, F]
    # its adjoint: returns the sums [n, F] of what all workers have for their copies [R, F]
    add_back: Linear


def copies_over(remote: RemoteSum) -> Copying | None:
    """Return the copies of a transport; None: it has none."""
    between = remote.transport.copied_edges
    if between is None:
        return None

    def exchanged(direction: Direction, rows: Tensor) -> Tensor:
        return remote.result(remote.submit(rows, direction, None), rows.device).to(rows.dtype)

    return Copying(between, *(partial(exchanged, direction) for direction in Direction))


class Halo:
    """Copies of the rows of remote neighbours, after a worker's own rows.

    `copying`: None: there are no other workers.
    """

    def __init__(self, partition: Partition, copying: Copying | None) -> None:
        self.rows, self.size = len(partition.vertices), -1
        edges = partition.edges
        if copying is not None:
            shift = np.array([[self.rows], [0]])
            edges = np.concatenate([edges, copying.between + shift], axis=1)
        self._edges = Anywhere(torch.from_numpy(edges))
        self._copying = copying
        self._vertices = Anywhere(torch.from_numpy(partition.vertices))
        self._all_ids: Anywhere | None = None

    def edges(self, device: torch.device) -> Tensor:
        """Return the edges of the part, then those from copies, int64[2, E]."""
        return self._edges.on(device)[0]

    def extend(self, rows: Tensor) -> Tensor:
        """Return own rows [n, ...] followed by copies, [n + R, ...]; whole numbers below 2^24."""
        if self._copying is None:
            self.size = self.rows
            return rows
        values = rows if rows.is_floating_point() else rows.float()
        both = self._copying.fetch, self._copying.add_back
        copies = with_adjoint(values.reshape(self.rows, -1), *both)
        self.size = self.rows + len(copies)
        return torch.cat([rows, copies.view(-1, *rows.shape[1:]).to(rows.dtype)])

    def total(self, values: Tensor) -> Tensor:
        """Return those of own rows, [n], plus those of their copies at all workers, of [n + R]."""
        if self._copying is None:
            return values
        return values[: self.rows] + self._copying.add_back(values[self.rows :, None])[:, 0]

    def ids(self, device: torch.device) -> Tensor:
        """Return the ids of vertices and copies in the whole graph, int64[n + R]."""
        if self._all_ids is None:
            (own,) = self._vertices.on(torch.device("cpu"))
            # Two numbers that float32 holds exactly.
            digits = self.extend(torch.stack([own >> 20, own & 0xFFFFF], dim=1))
            self._all_ids = Anywhere((digits[:, 0] << 20) + digits[:, 1])
        return self._all_ids.on(device)[0]
