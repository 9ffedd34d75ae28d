"""The cache in training: how much a row must change before it is sent again, and skipped rows.

With a cache, a row is sent if its largest change exceeds epsilon times its largest number, or that
of an average row (CDFGNN, section 4; ``LeastChange``). Epsilon may follow the training accuracy
(equations 6 and 7): while the accuracy rises, old rows do little harm, and epsilon grows; where it
falls, epsilon shrinks. The equations as printed have the two cases the other way round than their
text, and this module follows the text.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from switchgnn.base.array_types import Bools
from switchgnn.host.base.compression import Compression, Savings
from switchgnn.host.links.transport import Transport
from switchgnn.training.base.compression import FIRST, CompressionOptions

LEAST, MOST = 0.001, 0.3
# Changes of accuracy that count: a small fall, but only a larger rise.
_FALL, _RISE = 0.001, 0.02
# The mean of the accuracies so far keeps this share in each epoch.
_KEPT = 0.8
# A step changes epsilon by a factor, but by no more than this.
_GROWTH, _SHRINKAGE, _STEP = 1.05, 0.9, 0.01
# In each epoch whose number is a multiple of this one, no row is skipped.
EVERY = 4


class Compressing(Transport, Protocol):
    """A transport with compression."""

    epsilon: float  # of its cache; it may change between exchanges
    savings: Savings  # what it has left out so far

    def compress(self, compression: Compression) -> None:
        """Begin to compress, before the first exchange."""


@dataclass
class FollowingEpsilon:
    """Epsilon as a function of the accuracies so far."""

    epsilon: float = FIRST  # LEAST <= epsilon <= MOST
    # the moving mean of the accuracies; None before the first
    mean: float | None = field(default=None, init=False)

    def note(self, accuracy: float) -> float:
        """Return epsilon after another epoch with an accuracy, 0 <= accuracy <= 1.

        The accuracy is compared with the mean of those before; the first one changes nothing.
        """
        if self.mean is None:
            self.mean = accuracy
            return self.epsilon
        if accuracy > self.mean + _RISE:
            self.epsilon = min(self.epsilon * _GROWTH, self.epsilon + _STEP, MOST)
        elif accuracy < self.mean - _FALL:
            self.epsilon = max(self.epsilon * _SHRINKAGE, self.epsilon - _STEP, LEAST)
        self.mean = _KEPT * self.mean + (1 - _KEPT) * accuracy
        return self.epsilon


class SkippedRows:
    """The rows of one worker that are sent less often (the importance of nodes in DGS).

    A row is as important as the sum of |gradient * value| over its columns: to first order, the
    change of the loss without it. Each worker skips a share of its own rows, rounded down: for the
    others they have not changed. `tell`: the transport's `skip`.
    """

    def __init__(self, share: float, tell: Callable[[int, Bools | None], None]) -> None:
        self._share = share
        self._tell = tell
        self._skipped: dict[int, Bools] = {}
        self._all_are_due = False

    def begin_epoch(self, epoch: int) -> None:
        """Begin an epoch, the first of which is 1."""
        self._all_are_due = epoch % EVERY == 0

    def before(self, tensor_id: int, sent_as: int) -> None:
        """Skip rows in the next forward exchange of a tensor, which is `sent_as` another."""
        self._tell(sent_as, None if self._all_are_due else self._skipped.get(tensor_id))

    def note(self, tensor_id: int, rows: Tensor, gradient: Tensor) -> None:
        """Choose the rows to skip from now on, by a tensor's rows and their gradients, [n, F]."""
        importance = (rows * gradient).abs().sum(dim=1, dtype=torch.float64).cpu().numpy()
        least = np.argsort(importance, kind="stable")[: int(self._share * len(importance))]
        skipped = np.zeros(len(importance), dtype=np.bool_)
        skipped[least] = True
        self._skipped[tensor_id] = skipped


class CacheControl:
    """The cache of one worker's transport, in training."""

    def __init__(self, transport: Compressing, options: CompressionOptions) -> None:
        self._transport = transport
        self._cached = options.caches
        self._following = FollowingEpsilon(options.epsilon) if options.follows else None
        # the rows that are sent less often; None: all are sent that have changed
        self.skipped = SkippedRows(options.rest, transport.skip) if options.rest else None
        if self._cached:
            transport.epsilon = options.epsilon

    @property
    def follows(self) -> bool:
        """Whether epsilon follows the accuracy."""
        return self._following is not None

    @property
    def epsilon(self) -> float | None:
        """Epsilon now; None without a cache."""
        return self._transport.epsilon if self._cached else None

    @property
    def savings(self) -> Savings:
        """What was left out so far."""
        return self._transport.savings

    def forget(self, tensor_ids: Iterable[int]) -> None:
        """Drop all that is kept of some tensors, as all workers must between the same exchanges."""
        for tensor_id in tensor_ids:
            self._transport.forget(tensor_id)

    def note(self, accuracy: float) -> None:
        """Take the training accuracy of an epoch, over all workers."""
        if self._following is not None:
            self._transport.epsilon = self._following.note(accuracy)
