# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Runs points as processes, several at a time; what has a result is not run again."""

import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from switchgnn.base.files import whole_file
from switchgnn.base.full_disk import why_not_written, writing
from switchgnn.base.machine import python_program
from switchgnn.lab.experiments.description import ExperimentError
from switchgnn.lab.experiments.point import SimulationPoint


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
            ExperimentError: another run does, or the folder cannot be written.
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

    def _clean(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)


def _lock(handle: int, folder: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ExperimentError(
            f"Another run writes its results to {folder}: wait for it, or give another --out."
        ) from None


# Exit code of a point that cannot be simulated: another attempt would end the same way.
REFUSED = 2
_STOP_SECONDS = 10.0
_LAST_WORDS = 400

Command = Callable[[SimulationPoint, Path], Sequence[str]]
Progress = Callable[[str], None]


def point_command(point: SimulationPoint, plan: Path) -> Sequence[str]:
    """Return the words that simulate a point; see process.py."""
    words = json.dumps(asdict(point))
    partition = plan.with_name(partition_file(point))
    return python_program("switchgnn.lab.experiments.process", words, str(plan), str(partition))


def partition_file(point: SimulationPoint) -> str:
    """Return the name of the file with the partition, beside the folder of the plan."""
    return f"{point.partition_name}.npy"


@dataclass(frozen=True)
class BatchOutcome:
    """What became of the points.

    Attributes:
        run: how many were.
        kept: how many had a result.
        failed: errors of failed points.
        refused: those of them that another attempt cannot help.
    """

    run: int
    kept: int
    failed: dict[SimulationPoint, str]
    refused: frozenset[SimulationPoint]


def run_points(
    points: Sequence[SimulationPoint],
    store: Store,
    jobs: int,
    tell: Progress,
    command: Command = point_command,
) -> BatchOutcome:
    """Run what has no result; a point that fails does not stop the others.

    An exception such as KeyboardInterrupt ends all processes. The results until then stay.

    Args:
        points: some may be the same.
        store: for the results, opened.
        jobs: how many run at a time.
        tell: called with a line when a point is done.
        command: what simulates a point, given a folder for its plan.

    Returns:
        How many were simulated, had a result, or failed.
    """
    different = list(dict.fromkeys(points))
    waiting = [point for point in different if store.find(point) is None]
    kept = len(different) - len(waiting)
    if kept:
        tell(f"{kept:,} of {len(different):,} points have a result of these versions")
    team = _ProcessTeam(store, command, list(waiting))
    try:
        for number in range(1, len(waiting) + 1):
            team.fill(jobs)
            point, seconds, said = team.next_done()
            line = f"[{number:,}/{len(waiting):,}] {seconds:6.1f} s  {point}"
            tell(line if said is None else f"{line}: failed: {said}")
    finally:
        team.stop()
    return BatchOutcome(len(waiting), kept, team.failed, frozenset(team.refused))


@dataclass(eq=False)
class _RunningPoint:
    """A process, and where it writes."""

    point: SimulationPoint
    process: subprocess.Popen[bytes]
    out: IO[bytes]
    err: IO[bytes]
    since: float


@dataclass(eq=False)
class _ProcessTeam:
    """The processes that run, and the points that wait.

    Attributes:
        failed: what became of those that failed.
        refused: those of them that cannot be simulated.
    """

    store: Store
    command: Command
    waiting: list[SimulationPoint]
    failed: dict[SimulationPoint, str] = field(default_factory=dict)
    refused: set[SimulationPoint] = field(default_factory=set)
    _running: dict[int, _RunningPoint] = field(default_factory=dict)
    _uses: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        for point in self.waiting:
            self._uses.update((point.plan_name, point.partition_name))

    def fill(self, jobs: int) -> None:
        """Start points until that many run.

        Where one makes a plan or a partition, those that share it wait.
        """
        for point in list(self.waiting):
            if len(self._running) >= jobs:
                return
            if self._plan(point).exists() or not self._being_made(point):
                self.waiting.remove(point)
                self._start(point)

    def next_done(self) -> tuple[SimulationPoint, float, str | None]:
        """Wait for one: (point, seconds, what it said if it failed)."""
        ready, _, _ = select.select(list(self._running), [], [])
        handle = ready[0]
        one = self._running[handle]
        one.process.wait()
        said = self._take(one)
        self._forget(handle)
        self._uses.subtract((one.point.plan_name, one.point.partition_name))
        if not self._uses[one.point.plan_name]:
            shutil.rmtree(self._plan(one.point), ignore_errors=True)
        if not self._uses[one.point.partition_name]:
            self._partition(one.point).unlink(missing_ok=True)
        if said is not None:
            self.failed[one.point] = said
            if one.process.returncode == REFUSED:
                self.refused.add(one.point)
        return one.point, time.monotonic() - one.since, said

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
        for handle in list(self._running):
            self._forget(handle)

    def _start(self, point: SimulationPoint) -> None:
        # Closed when the process is forgotten.
        with writing(Path(tempfile.gettempdir())):
            out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        process = subprocess.Popen(
            self.command(point, self._plan(point)),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            # Beside each other they need no threads of their own; arrays go with the folder.
            env={**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(self.store.work.resolve())},
            # Ctrl-C reaches the runner, which ends them.
            start_new_session=True,
        )
        handle = os.pidfd_open(process.pid)
        self._running[handle] = _RunningPoint(point, process, out, err, time.monotonic())

    def _take(self, one: _RunningPoint) -> str | None:
        """Keep the result; or return a sentence."""
        for file in (one.out, one.err):
            file.seek(0)
        if one.process.returncode != 0:
            lines = one.err.read().decode(errors="replace").strip().splitlines()
            last = lines[-1] if lines else f"it ended with code {one.process.returncode}"
            return last.removeprefix("Error: ")[-_LAST_WORDS:]
        try:
            result = json.loads(one.out.read())
        except ValueError:
            return "it printed no result"
        self.store.keep(one.point, result)
        return None

    def _forget(self, handle: int) -> None:
        one = self._running.pop(handle)
        os.close(handle)
        one.out.close()
        one.err.close()

    def _being_made(self, point: SimulationPoint) -> bool:
        others = [one.point for one in self._running.values()]
        if not self._partition(point).exists():
            return point.partition_name in {other.partition_name for other in others}
        return point.plan_name in {other.plan_name for other in others}

    def _plan(self, point: SimulationPoint) -> Path:
        return self.store.work / point.plan_name

    def _partition(self, point: SimulationPoint) -> Path:
        return self.store.work / partition_file(point)
