"""Options of the page in the browser, and the page itself."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import typer

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.interruptible import INTERRUPTED
from switchgnn.base.machine import how_to_install
from switchgnn.base.options import OUTPUT, flag, option
from switchgnn.jobs.runner import NOBODY, RunObserver
from switchgnn.live.board import Board, JobOutcome

_PACKAGES = ("starlette", "uvicorn")


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

    live: bool = flag(OUTPUT, "Show the run as it goes in a browser on this machine.", "--live")
    live_port: int | None = port_option("Serve that page on this port.")

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
    try:
        yield
    except (KeyboardInterrupt, typer.Exit) as leaving:
        if isinstance(leaving, KeyboardInterrupt) or leaving.exit_code == INTERRUPTED:
            board.end(JobOutcome.INTERRUPTED, "Interrupted.")
        raise
    except Exception as error:
        known = isinstance(error, SwitchGNNError)
        board.end(JobOutcome.FAILED, str(error) if known else f"{type(error).__name__}: {error}")
        raise
    finally:
        # All other ways to leave the block, as an exit code, are regular ends.
        board.end(JobOutcome.DONE, "Done.")
