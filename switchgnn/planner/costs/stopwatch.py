# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How long calls into a library take, all together."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Adds up the time inside its `running` blocks.

    Attributes:
        seconds: since the program started.
    """

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time until the block ends, however it ends."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - start


# All calls of METIS: whoever wants the time of some of them takes a difference.
METIS_TIME = Stopwatch()
