# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Results on disk: a file per point, with the parameters and versions that made it."""

import fcntl
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from switchgnn.base.files import whole_file
from switchgnn.base.full_disk import why_not_written
from switchgnn.experiments.errors import ExperimentError
from switchgnn.experiments.point import Point


class Store:
    """The results in a folder.

    Attributes:
        folder: what is in it can be deleted at any time; it is made again.
        work: for plans and arrays while points run.
    """

    def __init__(self, folder: Path, versions: Mapping[str, str]) -> None:
        self.folder = folder
        self.work = folder / "work"
        self._points = folder / "points"
        self._versions = dict(versions)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Nobody else writes in the block; what a run that was killed left is removed.

        Raises:
            ExperimentError: somebody does, or the folder cannot be written.
        """
        try:
            self._points.mkdir(parents=True, exist_ok=True)
            with (self.folder / ".lock").open("w") as lock:
                _lock(lock.fileno(), self.folder)
                self._clean()
                self.work.mkdir()
                try:
                    yield
                finally:
                    self._clean()
        except OSError as error:
            raise ExperimentError(
                f"Cannot write results to {self.folder}: {why_not_written(error, self.folder)}."
            ) from error

    def find(self, point: Point) -> dict[str, Any] | None:
        """Return the result of a point, if there is one of these parameters and versions."""
        try:
            kept = json.loads(self._path(point).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(kept, dict) or not isinstance(kept.get("result"), dict):
            return None
        same = kept.get("parameters") == asdict(point) and kept.get("versions") == self._versions
        return kept["result"] if same else None

    def keep(self, point: Point, result: Mapping[str, Any]) -> None:
        """Write a result; a reader sees the old file or all of the new one."""
        kept = {"parameters": asdict(point), "versions": self._versions, "result": dict(result)}
        with whole_file(self._path(point)) as file:
            file.write(json.dumps(kept, indent=1).encode())

    def _path(self, point: Point) -> Path:
        return self._points / f"{point.name}.json"

    def _clean(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)


def _lock(handle: int, folder: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ExperimentError(
            f"Another run writes its results to {folder}: wait for it, or give another --out."
        ) from None
