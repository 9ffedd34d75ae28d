# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The log folder of a run: kept where somebody asked for it, and when something failed."""

import logging
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer

from switchgnn.base.full_disk import speaks_of_full_disk, writing
from switchgnn.base.options import OUTPUT
from switchgnn.controller import InstallReport

LogDirOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        rich_help_panel=OUTPUT,
        show_default="a temporary one, kept and named if something fails",
        help="For the logs of switches, workers and this command.",
    ),
]
VerboseOption = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        rich_help_panel=OUTPUT,
        help="Say which processes start and end, and what they and the controller say.",
    ),
]

# What everything in this package logs under.
_ALL = "switchgnn"
_LOG = logging.getLogger(__name__)
_OWN_LOG = "command.log"
_FORMAT = logging.Formatter("%(asctime)s %(message)s")


class RunLogs:
    """Where the logs of a run go.

    Attributes:
        folder: the folder.
        failed: whether the run came to its end, but not to a good one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.failed = False


@contextmanager
def run_logs(asked: Path | None, folder: Path) -> Iterator[RunLogs]:
    """Yield the logs of a run; say behind the block where they are if it failed.

    Args:
        asked: where somebody wants them; made if it is not there.
        folder: of the run, which is removed at its end.

    Yields:
        The logs.

    Raises:
        WriteError: there is no room for them.
    """
    logs = RunLogs(folder / "logs" if asked is None else asked.absolute())
    with writing(logs.folder):
        logs.folder.mkdir(parents=True, exist_ok=True)
    with _written_to(logs.folder / _OWN_LOG):
        try:
            yield logs
        except Exception as error:
            _LOG.info("failed: %s", error)
            # What is kept would fill a full disk even more.
            logs.failed = not speaks_of_full_disk(str(error))
            raise
        finally:
            if logs.failed:
                _name(logs.folder if asked is not None else _saved(logs.folder))


@contextmanager
def told_aloud(*, verbose: bool) -> Iterator[None]:
    """Print on standard error what is logged in the block, if that is wanted."""
    if not verbose:
        yield
        return
    with _handled_by(_Aloud()):
        yield


def logged_steps(step: Callable[..., None]) -> Callable[..., None]:
    """Return a listener that logs the name of each step, once, and then calls another."""
    told: list[str] = []

    def listen(name: str, *numbers: float) -> None:
        if told[-1:] != [name]:
            told.append(name)
            _LOG.info("%s", name)
        step(name, *numbers)

    return listen


def log_install(report: InstallReport) -> None:
    """Log what an install has written to each switch, and its session."""
    for sentence in report.sentences():
        _LOG.info("%s", sentence)
    _LOG.info("Session %d.", report.session)


class _File(logging.FileHandler):
    """Is silent where it cannot write: a full disk is noticed by who writes what matters."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        pass


class _Aloud(logging.Handler):
    """Prints on what is standard error at that moment, above a progress bar if there is one."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError, ValueError):
            sys.stderr.write(f"{_printable(record.getMessage())}\n")


def _printable(text: str) -> str:
    # A process may quote what came from elsewhere, and a terminal obeys what is no letter.
    return "".join(each if each.isprintable() else "?" for each in text)


@contextmanager
def _written_to(path: Path) -> Iterator[None]:
    with writing(path):
        handler = _File(path, encoding="utf-8")
    handler.setFormatter(_FORMAT)
    with _handled_by(handler):
        yield


@contextmanager
def _handled_by(handler: logging.Handler) -> Iterator[None]:
    logger = logging.getLogger(_ALL)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)
        with suppress(OSError):
            handler.close()


def _saved(folder: Path) -> Path | None:
    """Copy logs out of the folder of a run; return where to, or None: nobody said anything."""
    said = [path for path in folder.iterdir() if path.name != _OWN_LOG and path.stat().st_size]
    if not said:
        return None
    with suppress(OSError):
        kept = Path(tempfile.mkdtemp(prefix="switchgnn-logs-"))
        try:
            for path in folder.iterdir():
                shutil.copyfile(path, kept / path.name)
        except OSError:
            shutil.rmtree(kept, ignore_errors=True)
            raise
        return kept
    return None


def _name(folder: Path | None) -> None:
    if folder is not None:
        typer.echo(f"Logs of switches, workers and this command: {folder}", err=True)
