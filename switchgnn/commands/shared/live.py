"""Observers of a run, and the one that updates a page in the browser; its options."""

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import typer

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.machine import how_to_install
from switchgnn.base.options import OUTPUT, flag, option
from switchgnn.host.metrics import METRICS_EVENT
from switchgnn.live.board import EVERY, Board, JobOutcome
from switchgnn.live.polling import kinds_of, polling_switches
from switchgnn.topologies import Fabric

_INTERRUPTED = 130  # the exit code of Ctrl-C
_PACKAGES = ("starlette", "uvicorn")


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


def check_page_installed(what: str) -> None:
    """Check for the packages of a page before any work."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise SwitchGNNError(
            f"{what} needs the package{'s' if len(missing) > 1 else ''} "
            f"{' and '.join(missing)}: {how_to_install('live')}."
        )


def tell_address(address: str) -> None:
    """Print the address of the page."""
    typer.echo(f"Live: {address}", err=True)


def port_option(text: str) -> Any:  # noqa: ANN401
    """Declare --live-port."""
    return option(OUTPUT, "PORT", text, min=0, max=65_535, shown="any that is free")


@dataclass(frozen=True)
class LiveOptions:
    """Whether to serve a page."""

    live: bool = flag(
        OUTPUT, "Show the run as it goes, on a page for a browser on this machine.", "--live"
    )
    live_port: int | None = port_option("Of that page.")

    def check(self) -> None:
        """Check that the page can be served, before any work."""
        if not self.live:
            if self.live_port is not None:
                raise SwitchGNNError("--live-port is the port of a page: add --live.")
            return
        check_page_installed("--live")

    @contextmanager
    def looked_at(self, title: str, *, epochs: int = 0) -> Iterator[RunObserver]:
        """Serve the page during the block, if it is wanted, and print its address."""
        if not self.live:
            yield NOBODY
            return
        # It needs packages that most runs do without.
        from switchgnn.live.server import serve_page  # noqa: PLC0415

        board = Board(title, epochs)
        with serve_page(board, self.live_port or 0) as address, _outcome_on(board):
            tell_address(address)
            yield RunObserver(board)


@contextmanager
def _outcome_on(board: Board) -> Iterator[None]:
    """Show how the block ends."""
    try:
        yield
    except (KeyboardInterrupt, typer.Exit) as leaving:
        if isinstance(leaving, KeyboardInterrupt) or leaving.exit_code == _INTERRUPTED:
            board.end(JobOutcome.INTERRUPTED, "Interrupted.")
        raise
    except Exception as error:
        known = isinstance(error, SwitchGNNError)
        board.end(JobOutcome.FAILED, str(error) if known else f"{type(error).__name__}: {error}")
        raise
    finally:
        # All other ways to leave the block, as an exit code, are regular ends.
        board.end(JobOutcome.DONE, "Done.")
