# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Hands what happens in a run to the page that shows it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from switchgnn.base.errors import SwitchGNNError
from switchgnn.commands.shared.onlooker import Onlooker, RunningNetwork
from switchgnn.controller import P4RuntimeClient
from switchgnn.controller.watch import WATCH_DEADLINE
from switchgnn.host.metrics import METRICS_EVENT
from switchgnn.live.board import EVERY, Board, JobOutcome
from switchgnn.live.polling import PolledSwitch, polling_switches
from switchgnn.live.server import serve_page
from switchgnn.topologies import Target

_INTERRUPTED = 130  # the exit code of Ctrl-C


@contextmanager
def served(title: str, *, port: int, epochs: int) -> Iterator[tuple[Onlooker, str]]:
    """Serve a page during the block; the last that it shows is how the block ended."""
    board = Board(title, epochs)
    with serve_page(board, port) as address:
        try:
            yield _PageOnlooker(board), address
        except (KeyboardInterrupt, typer.Exit) as leaving:
            if isinstance(leaving, typer.Exit) and leaving.exit_code != _INTERRUPTED:
                raise
            board.end(JobOutcome.INTERRUPTED, "Interrupted.")
            raise
        except SwitchGNNError as error:
            board.end(JobOutcome.FAILED, str(error))
            raise
        except Exception as error:
            board.end(JobOutcome.FAILED, f"{type(error).__name__}: {error}")
            raise
        finally:
            # All other ways to leave the block, as an exit code, are regular ends.
            board.end(JobOutcome.DONE, "Done.")


class _PageOnlooker(Onlooker):
    """Updates a page."""

    tell_every = EVERY

    def __init__(self, board: Board) -> None:
        self._board = board

    def step(self, name: str) -> None:
        """Show a step."""
        self._board.step(name)

    @contextmanager
    def over(self, running: RunningNetwork) -> Iterator[None]:
        """Show a network during the block."""
        site = running.fabric.site
        bmv2 = site.target is Target.BMV2
        target = "BMv2" if bmv2 else "the embedded switch"
        ran_on = "Mininet" if running.fabric.workers_have_hosts else "loopback"
        self._board.begin(
            f"transport {running.transport}, {target}, {ran_on}",
            [True] * site.workers,
            [switch.name for switch in site.switches],
        )
        slots = running.bank_slots or [0] * len(site.switches)
        switches = [
            PolledSwitch(
                P4RuntimeClient(
                    switch.grpc_address,
                    tls=running.credentials,
                    primary=False,
                    deadline=WATCH_DEADLINE,
                ),
                0 if bmv2 else used,  # BMv2 does not report slots
            )
            for switch, used in zip(site.switches, slots, strict=True)
        ]
        with polling_switches(switches, self._board.switch):
            yield
            self._board.finish()

    @contextmanager
    def over_one_process(self, transport: str) -> Iterator[None]:
        """Show a process without a network during the block."""
        self._board.begin(f"transport {transport}, one process")
        yield

    def event(self, worker: int, event: dict[str, Any]) -> None:
        """Show the metrics of a worker, and worker 0's epochs."""
        if event["event"] == METRICS_EVENT:
            self._board.worker(worker, event["values"])
        elif event["event"] == "epoch" and worker == 0:
            self._board.epoch(event["epoch"], event["loss"])

    def done(self, words: str, *, right: bool = True) -> None:
        """Show the end of the run, which may be kept for long."""
        self._board.end(JobOutcome.DONE if right else JobOutcome.WRONG, words)
