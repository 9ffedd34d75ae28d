# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Rows that matter little are sent less often (the importance of nodes in DGS, with a cache).

A row is as important as the sum of |gradient * value| over its columns: to first order, the change
of the loss without it. Each worker decides by itself which of its rows rest: for the others they
have not changed.
"""

from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# In each epoch whose number is a multiple of this one, no row rests.
EVERY = 4


class Tell(Protocol):
    """Tells a transport which rows rest, as ``InNetworkExchange.rest`` does."""

    def __call__(self, site: int, vertices: NDArray[np.bool_] | None) -> None:
        """Take bool[n], the vertices of a site that rest; None: none does."""


class Rest:
    """The rows of one worker that rest.

    Args:
        share: of the worker's vertices those that rest, 0 < share < 1, rounded down.
        tell: is called before each forward exchange.
    """

    def __init__(self, share: float, tell: Tell) -> None:
        self._share = share
        self._tell = tell
        self._resting: dict[int, NDArray[np.bool_]] = {}
        self._all_are_due = False

    def begin_epoch(self, epoch: int) -> None:
        """Begin an epoch, the first of which is 1."""
        self._all_are_due = epoch % EVERY == 0

    def before(self, site: int, sent_as: int) -> None:
        """Tell which rows rest in the next forward exchange of a site.

        `sent_as`: the site of its rows in the exchange, where only some columns are sent.
        """
        self._tell(sent_as, None if self._all_are_due else self._resting.get(site))

    def note(self, site: int, rows: Tensor, gradient: Tensor) -> None:
        """Choose the rows of a site that rest from now on.

        `rows`, `gradient`: [n, F], those that go into the sum. Rows of the same importance rest in
        their order.
        """
        importance = (rows * gradient).abs().sum(dim=1, dtype=torch.float64).cpu().numpy()
        least = np.argsort(importance, kind="stable")[: int(self._share * len(importance))]
        resting = np.zeros(len(importance), dtype=np.bool_)
        resting[least] = True
        self._resting[site] = resting
