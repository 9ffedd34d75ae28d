# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`--pcap FOLDER`: a file for each link of a run, made before the work begins."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import product, starmap
from pathlib import Path
from typing import Annotated

import typer

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.full_disk import why_not_written
from switchgnn.base.options import OUTPUT
from switchgnn.host.wire.faults import worker_link
from switchgnn.host.wire.recording import EMPTY_BYTES, begin_recording
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.topologies import cable_name

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
