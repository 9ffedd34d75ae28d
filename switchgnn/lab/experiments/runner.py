"""Runs points in parallel processes, except those that have a result."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryFile
from typing import Any, TextIO

from switchgnn.base.files import whole_file, writing
from switchgnn.base.machine import python_program
from switchgnn.lab.experiments.figure import ExperimentError
from switchgnn.lab.experiments.point import Point

_LAST_WORDS = 400
PROGRAM = python_program("switchgnn.lab.experiments.process")


class Store:
    """The results in a folder, which you can delete at any time."""

    def __init__(self, folder: Path, versions: Mapping[str, str]) -> None:
        self.folder = folder
        self.work = folder / "work"  # for arrays while points run
        self._points = folder / "points"
        self._versions = dict(versions)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Lock the folder for the block, and remove what a killed run has left.

        Raises:
            ExperimentError: another run does, or the folder cannot be written.
        """
        with writing(self.folder, "results to ", ExperimentError):
            self._points.mkdir(parents=True, exist_ok=True)
            with (self.folder / ".lock").open("w") as lock:
                try:
                    fcntl.flock(lock.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise ExperimentError(
                        f"Another run writes its results to {self.folder}: wait for it, or give "
                        "another --out."
                    ) from None
                shutil.rmtree(self.work, ignore_errors=True)
                self.work.mkdir()
                try:
                    yield
                finally:
                    shutil.rmtree(self.work, ignore_errors=True)

    def find(self, point: Point) -> dict[str, Any] | None:
        """Return the result of a point, if there is one of these parameters and versions."""
        try:
            kept = json.loads(self._path(point).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        result: dict[str, Any] = kept.pop("result")
        return result if kept == self._kept(point) else None

    def keep(self, point: Point, result: Mapping[str, Any]) -> None:
        """Replace the result of a point atomically."""
        kept = self._kept(point) | {"result": dict(result)}
        with whole_file(self._path(point)) as file:
            file.write(json.dumps(kept, indent=1).encode())

    def _kept(self, point: Point) -> dict[str, Any]:
        versions = {name: it for name, it in self._versions.items() if name in point.versions}
        return {"parameters": asdict(point), "versions": versions}

    def _path(self, point: Point) -> Path:
        return self._points / f"{point.name}.json"


@dataclass(frozen=True)
class BatchOutcome:
    """The outcome of a batch of points."""

    run: int  # how many were
    kept: int  # how many had a result
    failed: dict[Point, str]  # errors of failed points


def run_points(
    points: Sequence[Point],
    store: Store,
    jobs: int,
    tell: Callable[[str], None],
    program: Sequence[str] = PROGRAM,
) -> BatchOutcome:
    """Run what has no result, first simulations, then trainings one after another.

    A point that fails does not stop the others.

    An exception such as KeyboardInterrupt ends all processes. The results until then stay.

    Args:
        points: some may be the same.
        store: for the results, opened.
        jobs: how many processes run at a time.
        tell: called with a line when a point is done.
        program: what simulates points.
    """
    different = list(dict.fromkeys(points))
    waiting = [point for point in different if store.find(point) is None]
    kept = len(different) - len(waiting)
    if kept:
        tell(f"{kept:,} of {len(different):,} points have a result of these versions")
    groups = defaultdict(list)
    for point in waiting:
        groups[point.plan or point.name].append(point)
    failed: dict[Point, str] = {}
    team = _ProcessTeam(program, store.work)
    with ThreadPoolExecutor(jobs) as threads, ThreadPoolExecutor(1) as alone:
        try:
            measured = [group for group in groups.values() if group[0].measured]
            others = [group for group in groups.values() if group not in measured]
            before = [threads.submit(team.answer, group) for group in others]
            # `wait` would not see that a future is cancelled.
            alone.submit(lambda: [each.exception() for each in before])
            for group in measured:
                alone.submit(team.answer, group)
            for number in range(1, len(waiting) + 1):
                point, seconds, answer = team.done.get()
                line = f"[{number:,}/{len(waiting):,}] {seconds:6.1f} s  {point}"
                if "result" in answer:
                    store.keep(point, answer["result"])
                else:
                    failed[point] = answer["error"]
                    line += f": failed: {failed[point]}"
                tell(line)
        finally:
            for each in (threads, alone):
                each.shutdown(wait=False, cancel_futures=True)
            team.stop()
    return BatchOutcome(len(waiting), kept, failed)


class _ProcessTeam:
    """Processes that answer a group of points each."""

    def __init__(self, program: Sequence[str], work: Path) -> None:
        self.done: SimpleQueue[tuple[Point, float, dict[str, Any]]] = SimpleQueue()
        self._program, self._work = program, work
        self._running: set[subprocess.Popen[str]] = set()
        self._lock, self._over = threading.Lock(), False

    def answer(self, group: Sequence[Point]) -> None:
        left, began = list(group), time.monotonic()
        with TemporaryFile("w+", dir=self._work) as asked, TemporaryFile("w+") as said:
            asked.writelines(json.dumps(asdict(point)) + "\n" for point in group)
            asked.seek(0)
            with self._started(asked, said) as process:
                for line in process.stdout or ():
                    with suppress(ValueError):
                        answer, now = json.loads(line), time.monotonic()
                        self.done.put((left.pop(0), now - began, answer))
                        began = now
            said.seek(0)
            why = [f"it ended with code {process.returncode}", *said.read().strip().splitlines()]
            for point in left:
                self.done.put((point, time.monotonic() - began, {"error": why[-1][-_LAST_WORDS:]}))

    def _started(self, asked: TextIO, said: TextIO) -> subprocess.Popen[str]:
        with self._lock:
            if self._over:
                raise KeyboardInterrupt
            process = subprocess.Popen(
                self._program,
                stdin=asked,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                # Several run in parallel, so none needs threads of its own.
                env={**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(self._work.resolve())},
                # Ctrl-C reaches the runner, which ends them.
                start_new_session=True,
            )
            self._running.add(process)
        return process

    def stop(self) -> None:
        with self._lock:
            self._over = True
        for process in self._running:
            # It may end meanwhile.
            with suppress(ProcessLookupError):
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
