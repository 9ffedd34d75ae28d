"""Outputs of commands, files and the page in the browser: options, and checks before the work."""

import importlib.util
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.files import WriteError
from switchgnn.base.interruptible import INTERRUPTED
from switchgnn.base.machine import how_to_install
from switchgnn.base.options import OUTPUT
from switchgnn.commands.shared.options import json_option
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
    return OUTPUT.option("PORT", text, min=0, max=65_535, shown="any that is free")


@dataclass(frozen=True)
class LiveOptions:
    """Whether to serve a page."""

    live: bool = OUTPUT.flag("Show the run as it goes in a browser on this machine.", "--live")
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


def check_outputs(
    folders: Mapping[str, Path | None] | None = None,
    files: Mapping[str, Path | None] | None = None,
    replaced: Mapping[str, Path | None] | None = None,
) -> None:
    """Check that outputs, by the options that name them, can be written; None: not given.

    A folder may be missing, but not its parent: a misspelled path would be
    created, and its contents never be found. `replaced` folders are put into place as a whole.
    """
    for paths in (folders, files, replaced):
        for name, path in (paths or {}).items():
            if path is not None:
                _check_output(name, path, is_file=paths is files, inside=paths is folders)


def _check_output(name: str, path: Path, *, is_file: bool, inside: bool) -> None:
    there = os.path.lexists(path)
    if is_file and path.is_dir():
        raise WriteError(f"{name}: cannot write {path}: it is a folder; name a file in it.")
    if there and not is_file and not path.is_dir():
        raise WriteError(f"{name}: cannot write {path}: it is no folder; name another.")
    parent = path if there and inside else path.absolute().parent
    if not parent.is_dir():
        raise WriteError(
            f"{name}: cannot write {path}: there is no folder {parent}; make it, or name another."
        )
    if not os.access(parent, os.W_OK | os.X_OK):
        raise WriteError(f"{name}: cannot write {path}: {parent} takes no new files.")


@dataclass(frozen=True)
class LogOptions:
    """Where logs go."""

    log_dir: Path | None = OUTPUT.option(
        "FOLDER",
        "Write the logs of switches, workers and this command to this folder.",
        shown="a temporary one, kept and named if something fails",
    )
    verbose: bool = OUTPUT.flag(
        "Print when processes start and end, and what they log.", "--verbose", "-v"
    )


@dataclass(frozen=True)
class OutputOptions:
    """What `run` and `train` write."""

    # With several --transport each has a folder inside that one.
    pcap: Path | None = OUTPUT.option(
        "FOLDER",
        "Write all packets to pcap files in this folder, one per link: see `switchgnn capture`.",
    )
    metrics: str | None = OUTPUT.option(
        "[ADDRESS:]PORT",
        "Let worker w serve metrics for Prometheus on PORT + w (on loopback by default).",
    )
    page: LiveOptions = field(default_factory=LiveOptions)
    as_json: bool = json_option()
    logs: LogOptions = field(default_factory=LogOptions)
