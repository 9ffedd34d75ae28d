"""The jobs of a switch: which there are, how they share the loop, and how one is removed."""

from collections.abc import Sequence
from dataclasses import dataclass

from switchgnn.controller.admission import job_named
from switchgnn.controller.base.errors import JobRunningError
from switchgnn.controller.base.place import Place
from switchgnn.controller.change import ChangeCounts, change_between, read_state
from switchgnn.controller.controls.outcome import Outcome
from switchgnn.controller.counters import Counters, read_counters
from switchgnn.controller.p4runtime.client import P4RuntimeClient
from switchgnn.controller.target import verify


@dataclass(frozen=True)
class LoopUse:
    """What a job did between two readings of the counters."""

    frames: int  # of our protocol, that its ports received
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
    clients: Sequence[P4RuntimeClient], name: str, before: Sequence[Counters] = ()
) -> list[tuple[Place, ChangeCounts]]:
    """Remove a job from open switches and verify; return its places, and what was removed there.

    `before`: the counters of each switch a while ago; empty: the job is removed even if it runs.
    Nothing is removed where one has no such job (UnknownJobError), or it runs (JobRunningError).
    """
    states = [read_state(client, client.get_layout()) for client in clients]
    places = [state.jobs(at.get_layout()) for at, state in zip(clients, states, strict=True)]
    found = [job_named(each, name, at.address) for each, at in zip(places, clients, strict=True)]
    for client, counters, place in zip(clients, before, found, strict=bool(before)):
        _refuse_running(client, counters, place)
    counts = []
    for client, state, jobs, place in zip(clients, states, places, found, strict=True):
        rest = state.only([job for job in jobs if job.name != name])
        change = change_between(client.get_layout(), state, rest, place.job)
        client.write_requests(change.requests())
        verify(client, client.get_layout(), rest)
        counts.append(change.counts)
    return list(zip(found, counts, strict=True))


def _refuse_running(client: P4RuntimeClient, before: Counters, place: Place) -> None:
    both = (counters.jobs[place.job] for counters in (before, read_counters(client)))
    # Over transports between hosts, the switch only forwards their frames.
    old, new = (each.frames + each.outcomes[Outcome.FORWARDED] for each in both)
    frames = new - old
    if frames:
        raise JobRunningError(
            f"Job {place.name} of switch {client.address} runs: its workers have just sent "
            f"{frames:,} frames. End them first, or add --force."
        )
