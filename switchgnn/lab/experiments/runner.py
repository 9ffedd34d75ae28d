"""Runs points as processes, several at a time; what has a result is not run again."""

import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from switchgnn.base.files import whole_file
from switchgnn.base.full_disk import writing
from switchgnn.base.machine import python_program
from switchgnn.lab.experiments.figure import ExperimentError
from switchgnn.lab.experiments.point import SimulationPoint


class Store:
    """The results in a folder, which can be deleted at any time: they are made again."""

    def __init__(self, folder: Path, versions: Mapping[str, str]) -> None:
        self.folder = folder
        self.work = folder / "work"  # for plans and arrays while points run
        self._points = folder / "points"
        self._versions = dict(versions)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Nobody else writes in the block; what a run that was killed left is removed.

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

    def find(self, point: SimulationPoint) -> dict[str, Any] | None:
        """Return the result of a point, if there is one of these parameters and versions."""
        try:
            kept = json.loads(self._path(point).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(kept, dict) or not isinstance(kept.get("result"), dict):
            return None
        same = kept.get("parameters") == asdict(point) and kept.get("versions") == self._versions
        return kept["result"] if same else None

    def keep(self, point: SimulationPoint, result: Mapping[str, Any]) -> None:
        """Write a result; a reader sees the old file or all of the new one."""
        kept = {"parameters": asdict(point), "versions": self._versions, "result": dict(result)}
        with whole_file(self._path(point)) as file:
            file.write(json.dumps(kept, indent=1).encode())

    def _path(self, point: SimulationPoint) -> Path:
        return self._points / f"{point.name}.json"


_STOP_SECONDS = 10.0
_LAST_WORDS = 400

Command = Callable[[SimulationPoint, Path], Sequence[str]]


def point_command(point: SimulationPoint, work: Path) -> Sequence[str]:
    """Return the words that simulate a point; see process.py."""
    words = json.dumps(asdict(point))
    return python_program("switchgnn.lab.experiments.process", words, str(work))


@dataclass(frozen=True)
class BatchOutcome:
    """What became of the points."""

    run: int  # how many were
    kept: int  # how many had a result
    failed: dict[SimulationPoint, str]  # errors of failed points


def run_points(
    points: Sequence[SimulationPoint],
    store: Store,
    jobs: int,
    tell: Callable[[str], None],
    command: Command = point_command,
) -> BatchOutcome:
    """Run what has no result; a point that fails does not stop the others.

    An exception such as KeyboardInterrupt ends all processes. The results until then stay.

    Args:
        points: some may be the same.
        store: for the results, opened.
        jobs: how many run at a time.
        tell: called with a line when a point is done.
        command: what simulates a point, given the folder for what points share.

    Returns:
        How many were simulated, had a result, or failed.
    """
    different = list(dict.fromkeys(points))
    waiting = [point for point in different if store.find(point) is None]
    kept = len(different) - len(waiting)
    if kept:
        tell(f"{kept:,} of {len(different):,} points have a result of these versions")
    team = _ProcessTeam(store, command, list(waiting))
    failed: dict[SimulationPoint, str] = {}
    try:
        for number in range(1, len(waiting) + 1):
            team.fill(jobs)
            one, error = team.next_done()
            seconds = time.monotonic() - one.since
            line = f"[{number:,}/{len(waiting):,}] {seconds:6.1f} s  {one.point}"
            if error is not None:
                failed[one.point] = error
                line += f": failed: {error}"
            tell(line)
    finally:
        team.stop()
    return BatchOutcome(len(waiting), kept, failed)


@dataclass(eq=False)
class _RunningPoint:
    point: SimulationPoint
    process: subprocess.Popen[bytes]
    out: Path
    err: Path
    since: float


@dataclass(eq=False)
class _ProcessTeam:
    """The processes that run, by a handle that select takes, and the points that wait."""

    store: Store
    command: Command
    waiting: list[SimulationPoint]
    _running: dict[int, _RunningPoint] = field(default_factory=dict)
    _uses: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        for point in self.waiting:
            self._uses.update(point.shared)

    def fill(self, jobs: int) -> None:
        """Start points until that many run.

        While one makes a plan or a partition, those that share it wait.
        """
        for point in list(self.waiting):
            if len(self._running) >= jobs:
                return
            made_now = {name for one in self._running.values() for name in one.point.shared}
            needed = (name for name in point.shared if not (self.store.work / name).exists())
            if made_now.isdisjoint(needed):
                self.waiting.remove(point)
                self._start(point)

    def next_done(self) -> tuple[_RunningPoint, str | None]:
        """Wait for one, and keep its result; return it, and the error if it failed."""
        ready, _, _ = select.select(list(self._running), [], [])
        one = self._running.pop(ready[0])
        os.close(ready[0])
        one.process.wait()
        error = self._take(one)
        for name in one.point.shared:
            self._uses[name] -= 1
            if not self._uses[name]:
                path = self.store.work / name
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
        return one, error

    def stop(self) -> None:
        """End those that still run, with all that they have started."""
        for number in (signal.SIGINT, signal.SIGKILL):
            for one in self._running.values():
                with suppress(ProcessLookupError):
                    os.killpg(one.process.pid, number)
            deadline = time.monotonic() + _STOP_SECONDS
            for one in self._running.values():
                with suppress(subprocess.TimeoutExpired):
                    one.process.wait(max(0.0, deadline - time.monotonic()))
        for handle in self._running:
            os.close(handle)

    def _start(self, point: SimulationPoint) -> None:
        work = self.store.work
        out, err = (work / f"{point.name}.{kind}" for kind in ("out", "err"))
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = subprocess.Popen(
                self.command(point, work),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                # Beside each other they need no threads of their own.
                env={**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(work.resolve())},
                # Ctrl-C reaches the runner, which ends them.
                start_new_session=True,
            )
        running = _RunningPoint(point, process, out, err, time.monotonic())
        self._running[os.pidfd_open(process.pid)] = running

    def _take(self, one: _RunningPoint) -> str | None:
        """Keep the result; or return a sentence."""
        out, err = one.out.read_text(errors="replace"), one.err.read_text(errors="replace")
        one.out.unlink()
        one.err.unlink()
        if one.process.returncode != 0:
            lines = err.strip().splitlines()
            last = lines[-1] if lines else f"it ended with code {one.process.returncode}"
            return last.removeprefix("Error: ")[-_LAST_WORDS:]
        try:
            result = json.loads(out)
        except ValueError:
            return "it printed no result"
        self.store.keep(one.point, result)
        return None
