"""What a job leaves: logs, and recordings of packets."""

import logging
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import product, starmap
from pathlib import Path

import typer

from switchgnn.base.errors import SwitchGNNError, printable
from switchgnn.base.files import writing
from switchgnn.controller import InstallReport
from switchgnn.host.links.faults import worker_link
from switchgnn.host.links.recording import EMPTY_BYTES, begin_recording
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.topologies import cable_name

_ALL = "switchgnn"
_LOG = logging.getLogger(__name__)
_OWN_LOG = "command.log"
_FORMAT = logging.Formatter("%(asctime)s %(message)s")
_ENDING = ".pcap"


class RunLogs:
    """The folder of a run's logs, and whether the run ended badly."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.failed = False
        self._step = ""

    def step(self, name: str) -> None:
        """Log the name of a step once."""
        if name != self._step:
            self._step = name
            _LOG.info("%s", name)


@contextmanager
def run_logs(asked: Path | None, folder: Path) -> Iterator[RunLogs]:
    """Yield the logs of a run; if it fails, keep them and print where."""
    logs = RunLogs(folder / "logs" if asked is None else asked.absolute())
    with writing(logs.folder):
        logs.folder.mkdir(parents=True, exist_ok=True)
    with writing(logs.folder / _OWN_LOG):
        handler = _File(logs.folder / _OWN_LOG, encoding="utf-8")
    handler.setFormatter(_FORMAT)
    with _handled_by(handler):
        try:
            yield logs
        except Exception as error:
            _LOG.info("failed: %s", error)
            logs.failed = True
            raise
        finally:
            if logs.failed:
                kept = logs.folder if asked is not None else _saved(logs.folder)
                if kept is not None:
                    typer.echo(f"Logs of switches, workers and this command: {kept}", err=True)


@contextmanager
def told_aloud(*, verbose: bool) -> Iterator[None]:
    """Print the warnings of the block on standard error, and if verbose, all of its log."""
    with _handled_by(_Aloud(logging.INFO if verbose else logging.WARNING)):
        yield


def log_install(report: InstallReport) -> None:
    """Log the writes to each switch, and the session."""
    for sentence in report.sentences():
        _LOG.info("%s", sentence)
    _LOG.info("Session %d.", report.session)


class _File(logging.FileHandler):
    """Ignores write errors: important writers report a full disk."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        pass


class _Aloud(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError, ValueError):
            sys.stderr.write(f"{printable(record.getMessage()).replace(chr(10), ' ')}\n")


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
    """Copy logs out of the folder of a run, unless they are empty; return the new folder."""
    said = [path for path in folder.iterdir() if path.name != _OWN_LOG and path.stat().st_size]
    if not said:
        return None
    with suppress(OSError):
        kept = Path(tempfile.mkdtemp(prefix="switchgnn-logs-"))
        try:
            for path in folder.iterdir():
                shutil.copyfile(path, kept / path.name)
            return kept
        except OSError:
            shutil.rmtree(kept, ignore_errors=True)
    return None


class RecordingsError(SwitchGNNError):
    """Packets cannot be recorded."""


@dataclass(frozen=True)
class Recordings:
    """The files of packets: of each worker's link, and of cables between switches by name."""

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
    """Make the files of a run; those without packets are removed after the block.

    `inside` is a subfolder whose name is trusted. Without a folder there are no files.
    """
    if folder is None:
        yield Recordings()
        return
    folder = folder.absolute()
    nested = [folder, folder / inside] if inside else [folder]
    new = [each for each in nested if not each.exists()]
    folder = nested[-1]
    names = [worker_link(worker) for worker in range(workers)]
    cables = product(range(leaf_spine.leaves), range(leaf_spine.spines)) if leaf_spine else ()
    made: list[Path] = []
    try:
        with writing(folder, "packets to ", RecordingsError):
            for each in new:
                each.mkdir()
            for other in sorted(folder.glob(f"*{_ENDING}")):
                raise RecordingsError(
                    f"{folder} holds packets of another run ({other.name}): remove them, or choose "
                    "another folder for --pcap."
                )
            recordings = Recordings(
                tuple(_begin(folder, name, made) for name in names),
                {name: _begin(folder, name, made) for name in starmap(cable_name, cables)},
            )
        yield recordings
    finally:
        for path in made:
            with suppress(OSError):
                if path.stat().st_size <= EMPTY_BYTES:
                    path.unlink()
        for each in reversed(new):
            with suppress(OSError):
                each.rmdir()


def _begin(folder: Path, name: str, made: list[Path]) -> Path:
    path = folder / f"{name}{_ENDING}"
    begin_recording(path)
    made.append(path)
    return path
