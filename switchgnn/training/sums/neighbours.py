# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Sums over all neighbours inside autograd: a sparse product, and an exchange beside it."""

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor

from switchgnn.planner.direction import Direction
from switchgnn.training.sums.remote_sum import RemoteSum


class LocalSum:
    """Sums over the neighbours on this worker, as products with a sparse matrix.

    PyTorch multiplies CSR matrices with MKL, which takes indices of 32 bits. The transposed
    matrix of the backward pass is kept as well.

    Args:
        edges: int64[2, E], (source, destination); an edge that occurs twice counts twice.
        shape: the number of destinations and that of sources.
    """

    def __init__(self, edges: NDArray[np.int64], shape: tuple[int, int]) -> None:
        source, destination = edges
        ones = np.ones(len(source), dtype=np.float32)
        matrix = csr_matrix((ones, (destination, source)), shape=shape)
        self._matrices = {
            Direction.FORWARD: _tensor(matrix),
            Direction.BACKWARD: _tensor(matrix.T.tocsr()),
        }

    def sums(self, rows: Tensor, direction: Direction) -> Tensor:
        """Return the sums of rows, one for each end of an edge, [ends, F].

        Args:
            rows: [n, F], one for each start of an edge in this direction.
            direction: forward or backward.
        """
        # There are no sparse products of shorter floats everywhere.
        dtype = torch.promote_types(rows.dtype, torch.float32)
        matrix = self._matrices[direction]
        if (matrix.device, matrix.dtype) != (rows.device, dtype):
            matrix = self._matrices[direction] = matrix.to(rows.device, dtype)
        return (matrix @ rows.to(dtype)).to(rows.dtype)


def _tensor(matrix: csr_matrix) -> Tensor:
    with warnings.catch_warnings():
        # PyTorch calls its CSR tensors beta, and says that it does not check what SciPy made.
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr),
            torch.from_numpy(matrix.indices),
            torch.from_numpy(matrix.data),
            matrix.shape,
        )


class NeighbourSum:
    """Sums over all neighbours of each of this worker's vertices.

    The exchange runs while the local neighbours are added. The backward pass sums the gradients
    over the transposed edges in the same way; rows without a gradient have none.

    Args:
        local: sums over the neighbours on this worker.
        remote: sums over the others; None: there are none.
    """

    def __init__(self, local: LocalSum, remote: RemoteSum | None) -> None:
        self._local = local
        self._remote = remote

    def __call__(self, rows: Tensor) -> Tensor:
        """Return [n, F], the sums of [n, F].

        Raises:
            SwitchGNNError: the exchange failed.
        """
        sums: Tensor = _Sum.apply(rows, self)  # type: ignore[no-untyped-call]
        return sums

    def directed(self, rows: Tensor, direction: Direction) -> Tensor:
        """Return the sums over the neighbours of one direction, without autograd."""
        if self._remote is None:
            return self._local.sums(rows, direction)
        exchange = self._remote.submit(rows, direction)
        sums = self._local.sums(rows, direction)
        return sums.add_(self._remote.result(exchange))


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, neighbours: NeighbourSum) -> Tensor:  # noqa: ANN401
        ctx.neighbours = neighbours
        return neighbours.directed(rows, Direction.FORWARD)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # noqa: ANN401
        return ctx.neighbours.directed(gradient, Direction.BACKWARD), None
