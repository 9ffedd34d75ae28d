# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Looks whether what a command is to write can be written, before it works for an hour."""

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import product, starmap
from pathlib import Path
from typing import Annotated

import typer

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.full_disk import WriteError, has_room, why_not_written, writing
from switchgnn.base.options import OUTPUT
from switchgnn.controller import InstallReport
from switchgnn.host.wire.faults import worker_link
from switchgnn.host.wire.recording import EMPTY_BYTES, begin_recording
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.topologies import cable_name


def check_outputs(
    folders: Mapping[str, Path | None] | None = None,
    files: Mapping[str, Path | None] | None = None,
    replaced: Mapping[str, Path | None] | None = None,
) -> None:
    """Check that folders and files that a command was told to write can be written.

    Nothing stays of the trial. A folder may be missing, but not the one that it is to be in: a
    misspelled path would be made, and nobody would find what was written there.

    Args:
        folders: by the option that names them; None: the option was not given.
        files: the same.
        replaced: the same, of folders that are put into place as a whole.

    Raises:
        WriteError: one cannot be written.
    """
    for option, folder in (folders or {}).items():
        if folder is not None:
            _check_folder(option, folder)
    for option, file in (files or {}).items():
        if file is not None:
            _check_file(option, file)
    for option, folder in (replaced or {}).items():
        if folder is not None:
            _check_replaced(option, folder)


def _check_folder(option: str, folder: Path) -> None:
    if not os.path.lexists(folder):
        _check_parent(option, folder)
        _try(option, folder, _parent(folder))
        return
    _require_folder(option, folder)
    _try(option, folder, folder)


def _check_replaced(option: str, folder: Path) -> None:
    if os.path.lexists(folder):
        _require_folder(option, folder)
    _check_parent(option, folder)
    _try(option, folder, _parent(folder))


def _require_folder(option: str, path: Path) -> None:
    if not path.is_dir():
        raise WriteError(f"{option}: cannot write {path}: it is no folder; name another.")


def _check_file(option: str, file: Path) -> None:
    if file.is_dir():
        raise WriteError(f"{option}: cannot write {file}: it is a folder; name a file in it.")
    _check_parent(option, file)
    _try(option, file, _parent(file))


def _check_parent(option: str, path: Path) -> None:
    if not _parent(path).is_dir():
        raise WriteError(
            f"{option}: cannot write {path}: there is no folder {_parent(path)}; make it, or name "
            "another."
        )


def _parent(path: Path) -> Path:
    # What `..` is in depends on where it is.
    return path.absolute().parent


def _try(option: str, path: Path, place: Path) -> None:
    """Make a folder for a moment, because permissions alone do not tell."""
    try:
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=place):
            pass
    except OSError as error:
        # Of a place like /proc the system says that the new folder does not exist.
        why = (
            f"{place} takes no new files"
            if isinstance(error, FileNotFoundError)
            else why_not_written(error, path)
        )
        raise WriteError(f"{option}: cannot write {path}: {why}.") from error


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
            logs.failed = has_room(logs.folder)
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


# With several --transport each has a folder in that one.
PcapOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        rich_help_panel=OUTPUT,
        show_default=False,
        help="For pcap files of all packets, one a link: see `switchgnn capture`.",
    ),
]
_ENDING = ".pcap"


class RecordingsError(SwitchGNNError):
    """Packets cannot be kept where they were to be."""


@dataclass(frozen=True)
class Recordings:
    """The files that keep the packets of a run; none where nobody asked for them.

    Attributes:
        workers: that of each worker's link, in order.
        cables: those of cables between switches, by name.
    """

    workers: tuple[Path, ...] = ()
    cables: Mapping[str, Path] = field(default_factory=dict)

    def of_worker(self, worker: int) -> Path | None:
        """Return the file of a worker's link, or None."""
        return self.workers[worker] if self.workers else None

    @property
    def files(self) -> tuple[Path, ...]:
        """All of them."""
        return (*self.workers, *self.cables.values())


@contextmanager
def recordings_in(
    folder: Path | None, workers: int, leaf_spine: LeafSpine | None, inside: str = ""
) -> Iterator[Recordings]:
    """Make the files of a run. Those that are still without packets behind the block are removed.

    Args:
        folder: where; it is made if need be. None: no files.
        workers: their number.
        leaf_spine: which cables there are; None for a star, which has none.
        inside: a folder in that one, of a name that nobody from elsewhere has given.

    Yields:
        The files, which a worker adds to.

    Raises:
        RecordingsError: the folder cannot be written, or holds packets of another run.
    """
    if folder is None:
        yield Recordings()
        return
    folder = folder.absolute()
    places = [folder, folder / inside] if inside else [folder]
    new = [place for place in places if not place.exists()]
    folder = places[-1]
    names = [worker_link(worker) for worker in range(workers)]
    cables = product(range(leaf_spine.leaves), range(leaf_spine.spines)) if leaf_spine else ()
    made: list[Path] = []
    try:
        with _refused(folder):
            for place in new:
                place.mkdir()
            _refuse_others(folder)
            recordings = Recordings(
                tuple(_begin(folder, name, made) for name in names),
                {name: _begin(folder, name, made) for name in starmap(cable_name, cables)},
            )
        yield recordings
    finally:
        _remove_empty(made)
        for place in reversed(new):
            with suppress(OSError):
                place.rmdir()


def _begin(folder: Path, name: str, made: list[Path]) -> Path:
    path = folder / f"{name}{_ENDING}"
    begin_recording(path)
    made.append(path)
    return path


def _refuse_others(folder: Path) -> None:
    """Refuse a folder with packets: those of another run would be read as of the same one."""
    other = next(iter(sorted(folder.glob(f"*{_ENDING}"))), None)
    if other is not None:
        raise RecordingsError(
            f"{folder} holds packets of another run ({other.name}): remove them, or choose "
            "another folder for --pcap."
        )


@contextmanager
def _refused(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RecordingsError(
            f"Packets cannot be kept in {folder}: {why_not_written(error, folder)}."
        ) from error


def _remove_empty(made: list[Path]) -> None:
    for path in made:
        with suppress(OSError):
            if path.stat().st_size <= EMPTY_BYTES:
                path.unlink()
