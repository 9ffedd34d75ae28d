# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What commands tell of a run while it goes on."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from switchgnn.controller import TlsOptions
from switchgnn.topologies import Fabric


@dataclass(frozen=True)
class Running:
    """A network at work.

    Attributes:
        transport: what carries the sums.
        fabric: the network; the switches have their plan.
        credentials: for the switches.
        bank_slots: for each switch, how many slots of each bank its plan uses, at most; empty:
            there is no plan.
        steps: fragments of blocks that each worker has to do; 0: unknown.
    """

    transport: str
    fabric: Fabric
    credentials: TlsOptions | None = None
    bank_slots: Sequence[int] = ()
    steps: int = 0


class Onlooker:
    """Hears what a run does, and does nothing about it.

    Attributes:
        tell_every: seconds after which workers are to say how they are; 0: never.
    """

    tell_every = 0.0

    def step(self, name: str) -> None:
        """Hear what is being done."""

    @contextmanager
    def over(self, running: Running) -> Iterator[None]:
        """Look at a network, as long as the block runs."""
        yield

    @contextmanager
    def over_one_process(self, transport: str) -> Iterator[None]:
        """Look at a process that needs no network, as long as the block runs."""
        yield

    def event(self, worker: int, event: dict[str, Any]) -> None:
        """Hear what a worker says."""

    def done(self, words: str, *, right: bool = True) -> None:
        """Hear how it has ended."""


NOBODY = Onlooker()
