# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Observers of a run."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from switchgnn.controller import TlsOptions
from switchgnn.topologies import Fabric


class RunObserver:
    """Observes a run without influence on it; `tell_every` seconds workers report, 0: never."""

    tell_every = 0.0

    def step(self, name: str) -> None:
        """Observe the start of a step."""

    @contextmanager
    def over(
        self,
        transport: str,
        fabric: Fabric | None,
        credentials: TlsOptions | None = None,
        bank_slots: Sequence[int] = (),
    ) -> Iterator[None]:
        """Observe a running network during the block, or one process without a network.

        `bank_slots`: for each switch, the most slots of each bank that its plan uses; empty without
        a plan.
        """
        yield

    def event(self, worker: int, event: dict[str, Any]) -> None:
        """Observe an event of a worker."""

    def done(self, words: str, *, right: bool = True) -> None:
        """Observe the end of the run."""


NOBODY = RunObserver()
