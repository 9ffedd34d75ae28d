# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A token bucket, which limits how fast a link sends."""

import time
from collections.abc import Callable

# What a limited link sends at once after a pause: the burst of a link in Mininet.
BURST_BYTES = 15 << 10


class TokenBucket:
    """Limits a rate: each byte takes a token, and tokens come at the rate.

    Args:
        rate: bytes per second.
        burst: tokens that are kept while nothing is sent.
        clock: tells the time in seconds.
        sleep: waits for some seconds.
    """

    def __init__(
        self,
        rate: float,
        burst: int = BURST_BYTES,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate, self._burst = rate, float(burst)
        self._clock, self._sleep = clock, sleep
        self._tokens, self._counted = self._burst, clock()

    def take(self, size: int) -> None:
        """Wait until there are tokens for a number of bytes, and take them.

        Args:
            size: bytes; beyond the burst, the bucket owes the rest.
        """
        needed = min(float(size), self._burst)
        if (missing := needed - self._refilled()) > 0:
            self._sleep(missing / self._rate)
            self._refilled()
        self._tokens -= size

    def _refilled(self) -> float:
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._counted) * self._rate)
        self._counted = now
        return self._tokens
