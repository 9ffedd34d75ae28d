# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How much a row must change before it is sent again, and whether that follows the accuracy.

With a cache, a row is sent if its largest change exceeds epsilon times its largest number, or that
of an average row (CDFGNN, section 4; ``LeastChange``). Epsilon may follow the training accuracy
(equations 6 and 7): while the accuracy rises, old rows do little harm, and epsilon grows; where it
falls, epsilon shrinks. The equations as printed have the two cases the other way round than their
text, and this module follows the text.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from switchgnn.host.compression import Compression, Savings
from switchgnn.training.fewer import FIRST, FewerBytes
from switchgnn.training.rest import Rest

LEAST, MOST = 0.001, 0.3
# Changes of accuracy that count: a small fall, but only a larger rise.
_FALL, _RISE = 0.001, 0.02
# The mean of the accuracies so far keeps this share in each epoch.
_KEPT = 0.8
# A step changes epsilon by a factor, but by no more than this.
_GROWTH, _SHRINKAGE, _STEP = 1.05, 0.9, 0.01


class Compressing(Protocol):
    """A transport with compression, besides the methods of `Transport`.

    Attributes:
        epsilon: of its cache; it may change between exchanges.
        savings: what it has left out so far.
    """

    epsilon: float
    savings: Savings

    def compress(self, compression: Compression) -> None:
        """Begin to compress, before the first exchange."""

    def rest(self, site: int, vertices: NDArray[np.bool_] | None) -> None:
        """Let rows of a site count as unchanged; see ``InNetworkExchange.rest``."""

    def forget(self, site: int) -> None:
        """Drop all that is kept of a site, as all workers must between the same exchanges."""


@dataclass
class FollowingEpsilon:
    """Epsilon as a function of the accuracies so far.

    Attributes:
        epsilon: LEAST <= epsilon <= MOST.
        mean: the moving mean of the accuracies; None before the first.
    """

    epsilon: float = FIRST
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


class CacheControl:
    """The cache of one worker's transport, in training.

    Attributes:
        rest: lets rows that matter little rest; None: all are sent that have changed.
    """

    def __init__(self, transport: Compressing, fewer: FewerBytes) -> None:
        self._transport = transport
        self._cached = fewer.compression.cache
        self._following = FollowingEpsilon(fewer.epsilon) if fewer.follows else None
        self.rest = Rest(fewer.rest, transport.rest) if fewer.rest else None
        if self._cached:
            transport.epsilon = fewer.epsilon

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

    def forget(self, sites: Iterable[int]) -> None:
        """Drop all that is kept of some sites, as all workers must between the same exchanges."""
        for site in sites:
            self._transport.forget(site)

    def note(self, accuracy: float) -> None:
        """Take the training accuracy of an epoch, over all workers."""
        if self._following is not None:
            self._transport.epsilon = self._following.note(accuracy)
