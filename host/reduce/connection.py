"""A worker's connection to the switch for all-reduces, as the launcher describes it."""

import json
import os
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from switchgnn.base.clock import SYSTEM_CLOCK, Clock
from switchgnn.base.tasks import task_from_json
from switchgnn.host.base.errors import HostError
from switchgnn.host.base.pace import Pace
from switchgnn.host.links.transport import LinkConfig, check_packets_fit
from switchgnn.host.reduce.frames import LANES
from switchgnn.host.reduce.reducer import Reducer
from switchgnn.host.reduce.reduction import SUM, Call
from switchgnn.host.reduce.scale import PRECISE
from switchgnn.host.reduce.stream import ReduceStream
from switchgnn.host.wire.header import ETHERNET_BYTES, PROTOCOL, feature_frame_bytes
from switchgnn.host.wire.link import Link
from switchgnn.planner.plan.files import read_manifest

# The environment variable with the path of the file.
VARIABLE = "SWITCHGNN_REDUCE"
CARRIED = ".carried"
_LARGEST_PACKET = feature_frame_bytes(LANES) - ETHERNET_BYTES
_REMEDY = "start the program with `switchgnn launch`, which starts the switch, too"


@dataclass(frozen=True)
class ReduceTask:
    """The task of all workers; those on link ``i`` have the ranks from ``i * per_machine`` on."""

    ends: tuple[LinkConfig, ...]  # The link of each machine, with the plan that is installed.
    pace: Pace  # Bounds on sending and waiting.
    carried: Path | None = None  # The folder for what connections carried; None: nobody asks.
    per_machine: int = 1  # How many workers share a link.


def task_from_environment(workers: int) -> ReduceTask:
    """Return the task that the launcher wrote for this number of workers.

    RuntimeError: the launcher did not start this process. TaskError, HostError: the file cannot
    be read, holds no task, or is for another number of workers.
    """
    name = os.environ.get(VARIABLE)
    if not name:
        raise RuntimeError(
            f"The backend `switchgnn` finds no {VARIABLE} in the environment: {_REMEDY}."
        )
    try:
        task = task_from_json(ReduceTask, Path(name).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise HostError(f"The task in {name} cannot be read ({error}): {_REMEDY}.") from error
    if len(task.ends) * task.per_machine != workers:
        served = len(task.ends) * task.per_machine
        raise HostError(
            f"The switch serves {served} workers, but this group has {workers}: start "
            "as many processes as the launcher was asked for."
        )
    return task


def open_reduce_link(end: LinkConfig) -> Link:
    """Open a worker's link for all-reduces alone; LinkError if their packets do not fit."""
    check_packets_fit(end.link, _LARGEST_PACKET)
    return end.open_link(PROTOCOL)


def reduce_stream(
    end: LinkConfig, link: Link, *, pace: Pace, clock: Clock = SYSTEM_CLOCK, bits: int = PRECISE
) -> ReduceStream:
    """Return the stream of a worker over an open link; the arguments are as for ReduceStream."""
    manifest = read_manifest(end.plan_folder())
    return ReduceStream(
        link,
        end.addresses,
        worker=end.worker,
        workers=manifest.workers,
        session=end.session,
        plan_id=manifest.number,
        pace=pace,
        clock=clock,
        bits=bits,
        lanes=end.lanes,
    )


def open_from_environment(rank: int, size: int) -> "ReduceConnection":
    """Return the connection of a worker to the switch, before its start."""
    return ReduceConnection(task_from_environment(size), rank)


class ReduceConnection:
    """A worker's connection to the switch, before and after it opens."""

    def __init__(self, task: ReduceTask, rank: int) -> None:
        self.rank, self.per_machine = rank, task.per_machine
        self._task, self._worker = task, rank // task.per_machine
        self._open = ExitStack()
        self._reducer: Reducer | None = None
        self._link: Link | None = None
        self._arrays = 0

    def open(self, agree: Callable[[int], int]) -> None:
        """Query the switch, and begin with the largest number of all workers."""
        end = self._task.ends[self._worker]
        self._link = self._open.enter_context(open_reduce_link(end))
        stream = reduce_stream(end, self._link, pace=self._task.pace)
        stream.start(agree(stream.query().first))
        self._reducer = Reducer(stream)

    def submit(self, values: NDArray[Any], call: Call = SUM) -> "Future[NDArray[Any]]":
        """Queue an array; see ``Reducer.submit``."""
        if self._reducer is None:
            raise ValueError("The connection is not open: open it before.")
        self._arrays += 1
        return self._reducer.submit(values, call)

    def close(self, *, abort: bool = False) -> None:
        """End the stream and close the link."""
        try:
            if self._reducer is not None:
                self._reducer.close(abort=abort)
                self._leave_carried(self._reducer.seconds)
        finally:
            self._open.close()

    def _leave_carried(self, seconds: float) -> None:
        """Append arrays, bytes and seconds to a file for the launcher, which may be gone."""
        folder, link, self._link = self._task.carried, self._link, None
        if folder is not None and link is not None:
            size = link.traffic.bytes_up + link.traffic.bytes_down
            with suppress(OSError), (folder / f"{self._worker}{CARRIED}").open("a") as file:
                file.write(f"{json.dumps((self._arrays, size, seconds))}\n")
