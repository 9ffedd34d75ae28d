"""Observes a job without influence on it, and updates the page of `--live`, if there is one."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from switchgnn.host.metrics import METRICS_EVENT
from switchgnn.live.board import EVERY, Board, JobOutcome
from switchgnn.live.polling import kinds_of, polling_switches
from switchgnn.topologies import Fabric


class RunObserver:
    """Observes a run without influence on it, and updates a page, if there is one."""

    def __init__(self, board: Board | None = None) -> None:
        self._board = board
        # how often workers report, in seconds; 0: never
        self.tell_every = EVERY if board else 0.0

    def step(self, name: str) -> None:
        """Show a step."""
        if self._board:
            self._board.step(name)

    @contextmanager
    def over(
        self, transport: str, fabric: Fabric | None, bank_slots: Sequence[int] = ()
    ) -> Iterator[None]:
        """Show a running network during the block, or one process without a network.

        `bank_slots`: for each switch, the most slots of each bank that its plan uses; empty without
        a plan.
        """
        if self._board is None:
            yield
            return
        if fabric is None:
            self._board.begin(f"transport {transport}, one process")
            yield
            return
        network = fabric.describe()
        ran_on = "Mininet" if fabric.workers_have_hosts else "loopback"
        self._board.begin(
            f"transport {transport}, {kinds_of(network)}, {ran_on}",
            [True] * len(network.workers),
            [switch.name for switch in network.in_order],
        )
        with polling_switches(network, self._board.switch, bank_slots):
            yield
            self._board.finish()

    def event(self, worker: int, event: dict[str, Any]) -> None:
        """Show the metrics of a worker, and worker 0's epochs."""
        if self._board is None:
            return
        if event["event"] == METRICS_EVENT:
            self._board.worker(worker, event["values"])
        elif event["event"] == "epoch" and worker == 0:
            self._board.epoch(event["epoch"], event["loss"])

    def done(self, words: str, *, right: bool = True) -> None:
        """Show the end of the run, which may be kept for long."""
        if self._board:
            self._board.end(JobOutcome.DONE if right else JobOutcome.WRONG, words)


NOBODY = RunObserver()
