"""The jobs of a switch: which there are, how they share the loop, and how one is removed."""

from collections.abc import Sequence
from dataclasses import dataclass

from switchgnn.controller.admission import job_named
from switchgnn.controller.base.errors import JobRunningError
from switchgnn.controller.base.place import Place
from switchgnn.controller.change import ChangeCounts, change_between, read_state
from switchgnn.controller.controls.job import Job, WorkerPorts
from switchgnn.controller.counters import Counters
from switchgnn.controller.p4runtime.client import P4RuntimeClient
from switchgnn.controller.target import verify


@dataclass(frozen=True)
class LoopUse:
    """What a job did between two readings of the counters."""

    frames: int  # that its ports received
    passes: int  # through the banks
    share: float  # of the passes of all jobs, from 0 to 1


def loop_use(before: Counters, after: Counters) -> list[LoopUse]:
    """Return what each job did, by its number; 0 stands for ports without a job."""
    both = list(zip(before.jobs, after.jobs, strict=True))
    frames = [new.frames - old.frames for old, new in both]
    passes = [new.passes.passes - old.passes.passes for old, new in both]
    total = max(sum(passes), 1)
    return [LoopUse(*each, each[1] / total) for each in zip(frames, passes, strict=True)]


def remove_job(
    client: P4RuntimeClient, name: str, busy: Sequence[LoopUse] = ()
) -> tuple[Place, ChangeCounts]:
    """Remove a job and verify; what the other jobs have stays as it is.

    Args:
        client: the switch, open.
        name: of the job.
        busy: what each job has done of late; empty: the job is removed even if it runs.

    Returns:
        The place that is free now, and what was removed.

    Raises:
        UnknownJobError: there is no such job.
        JobRunningError: it runs.
    """
    layout = client.get_layout()
    present = read_state(client, layout)
    places = Job(layout).decode(present.rows[Job.name], present.rows[WorkerPorts.name])
    place = job_named(places, name, client.address)
    if busy and busy[place.job].frames:
        raise JobRunningError(
            f"Job {name} of switch {client.address} runs: its workers have just sent "
            f"{busy[place.job].frames:,} frames. End them first, or add --force."
        )
    rest = present.only([each for each in places if each != place])
    change = change_between(layout, present, rest, place.job)
    client.write_requests(change.requests())
    verify(client, layout, rest)
    return place, change.counts
