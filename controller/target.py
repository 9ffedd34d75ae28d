"""One switch: what it serves, and an install there: look, load, write, verify, and go back."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from switchgnn.base.clock import SYSTEM_CLOCK, Clock
from switchgnn.base.network import DEFAULT_JOB, Network
from switchgnn.base.network_file import DescribedNetwork, DescribedSwitch, networks_of
from switchgnn.controller import change as changes
from switchgnn.controller.base import errors
from switchgnn.controller.base.place import Place
from switchgnn.controller.base.plan import SwitchPlan, leaf_spine_switch_plan, load_plan
from switchgnn.controller.controls.banks import shared_slots
from switchgnn.controller.controls.job import Jobs
from switchgnn.controller.controls.session import NO_SESSION, Session, SessionEntry
from switchgnn.controller.p4runtime.client import DEFAULT_DEADLINE, P4RuntimeClient, program_cookie
from switchgnn.controller.p4runtime.connection import TlsOptions
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.controller.p4runtime.rows import Request, concatenate
from switchgnn.p4src import Program
from switchgnn.planner.base.lanes import WIDEST_ANSWER, fits_switch
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.planner.plan.files import read_manifest, read_plan
from switchgnn.planner.plan.leaf_spine import split_for_leaf_spine
from switchgnn.planner.plan.manifest import Manifest
from switchgnn.planner.plan.plan import Plan

Progress = Callable[[str, int, int], None]
"""Called with a switch's address, the updates written so far, and all of them."""


class SwitchInstall:
    """A switch, and the state of an install there."""

    def __init__(
        self, client: P4RuntimeClient, program: Program, layout: Layout, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self.client = client
        self._program = program
        self._layout = layout
        self._clock = clock
        self._before = changes.empty_state(layout)
        self._cookie: int | None = None
        self._runs_program = False
        self._pushed = False
        self._touched = False
        self._job = 0

    @property
    def newest_session(self) -> int:
        """The newest session that the switch had before, of any job."""
        return Jobs(self._layout).newest(self._before.defaults[Jobs.name])

    @property
    def max_session(self) -> int:
        """The highest session number."""
        return Session(self._layout).max_session

    @property
    def jobs(self) -> list[Place]:
        """The jobs that the switch had before."""
        return self._before.jobs(self._layout)

    def others(self, name: str) -> changes.SwitchContents:
        """Return what the switch's jobs but one had before."""
        return self._before.only([each for each in self.jobs if each.name != name])

    def refuse_loss(self, name: str) -> None:
        """Refuse to replace another program while it serves other jobs."""
        if self._runs_program or self._cookie is None:
            return
        others = [place.name for place, _ in served_jobs(self.client) if place.name != name]
        if others:
            raise errors.PlanRefusedError(
                f"Switch {self.client.address} runs another program, which serves other jobs: "
                f"remove them first ({', '.join(others)})."
            )

    def refuse_others(self, job: int) -> None:
        """Refuse to empty the switch's registers while it has other jobs."""
        others = [each.name for each in self.jobs if each.job != job]
        if others:
            raise errors.PlanRefusedError(
                f"Switch {self.client.address} has given out all {self.max_session:,} session "
                f"numbers: remove its other jobs first ({', '.join(others)})."
            )

    def session_of(self, place: Place) -> SessionEntry:
        """Return the session entry that a job had before, if it was at this place."""
        sessions = Session(self._layout).decode(self._before.rows[Session.name])
        return sessions.get(place.job, NO_SESSION) if place in self.jobs else NO_SESSION

    def look(self) -> None:
        """Read the switch, without changing it."""
        self._cookie = self.client.get_pipeline_cookie()
        self._runs_program = self._cookie == program_cookie(self._program)
        if self._runs_program:
            self.client.layout = self._layout
            self._before = changes.read_state(self.client, self._layout)

    def load(self, *, anew: bool = False) -> None:
        """Load the program unless it runs; then what was there cannot be restored."""
        # A switch without a session was cleared, or an install failed: the sessions in its
        # registers are unknown, and loading empties them.
        if self._runs_program and self.newest_session and not anew:
            return
        self._touched = self._pushed = True
        self._before = changes.empty_state(self._layout)
        # BMv2 keeps its groups when a program is loaded, but P4Runtime forgets them: a group
        # inserted again would send every copy twice.
        if self._cookie is not None:
            self.client.write(list(changes.group_updates(self.client.read_groups(), {})))
        self.client.set_pipeline(self._program, program_cookie(self._program))
        self._runs_program = True

    def restore(self, contents: changes.SwitchContents) -> int:
        """Load the program and write what the switch had before it restarted; count its updates.

        The switch has lost its windows of tags: it accepts any until barriers are complete. After a
        failure ``go_back``.
        """
        self.load()
        session = Session(self._layout)
        entries = session.decode(contents.rows[Session.name])
        rows = [session.encode(job, replace(each, any_tag=1)) for job, each in entries.items()]
        sessions = concatenate(session.table, *rows) if rows else contents.rows[Session.name]
        goal = replace(contents, rows={**contents.rows, Session.name: sessions})
        change = changes.change_between(self._layout, self._before, goal)
        self.client.write_requests(change.requests())
        verify(self.client, self._layout, goal)
        return change.counts.total

    def bring_to(
        self,
        desired: changes.SwitchContents,
        job: int,
        cancel: threading.Event,
        progress: Progress | None,
    ) -> changes.SwitchReport:
        """Write what a job lacks, read everything back and compare; after a failure ``go_back``.

        ``cancel`` is set when another switch has failed: then nothing more is written.
        """
        start = self._clock.now()
        self._job = job
        change = changes.change_between(self._layout, self._before, desired, job)
        counts = change.counts
        if counts.total:
            self._touched = True
            tell = _teller(self.client.address, counts.total, progress)
            self.client.write_requests(_until(cancel, change.requests()), tell)
            verify(self.client, self._layout, desired)
        return changes.SwitchReport(
            address=self.client.address,
            pipeline_pushed=self._pushed,
            counts=counts,
            entries={name: len(rows) for name, rows in desired.rows.items()},
            groups=len(desired.groups),
            seconds=self._clock.now() - start,
        )

    def go_back(self) -> None:
        """Restore the switch if it was touched; RollbackError if that fails, too."""
        if not self._touched:
            return
        try:
            self.client.reopen()
            present = changes.read_state(self.client, self._layout)
            change = changes.change_between(self._layout, present, self._before, self._job)
            self.client.write_requests(change.requests())
            verify(self.client, self._layout, self._before)
        except errors.ControllerError as error:
            raise errors.RollbackError(
                f"Switch {self.client.address} may hold a part of the plan, because what it had "
                f"before could not be restored: {error} Then install again, or clear it."
            ) from error


def verify(client: P4RuntimeClient, layout: Layout, desired: changes.SwitchContents) -> None:
    """Read a switch and compare it with what was written there."""
    found = changes.change_between(layout, changes.read_state(client, layout), desired)
    if found.counts.total:
        raise errors.VerificationError(
            f"Switch {client.address} took all updates, but reads back {found.counts.total:,} "
            f"differently; the first: {found.first_difference()}. Something else writes to this "
            "switch, or it has a defect: restart it and try again."
        )


def _teller(address: str, total: int, progress: Progress | None) -> Callable[[int], None]:
    done = 0

    def tell(count: int) -> None:
        nonlocal done
        # Closing the session is one update more.
        done = min(done + count, total)
        if progress is not None:
            progress(address, done, total)

    return tell


def _until(cancel: threading.Event, requests: Iterator[Request]) -> Iterator[Request]:
    for request in requests:
        if cancel.is_set():
            raise errors.InstallCancelledError("Stopped, because another switch failed.")
        yield request


def client_of(
    switch: DescribedSwitch,
    *,
    election_id: int = 1,
    primary: bool = True,
    deadline: float = DEFAULT_DEADLINE,
) -> P4RuntimeClient:
    """Return a client of a switch, not opened yet."""
    files = switch.tls
    tls = None if files is None else TlsOptions(files.root, files.certificate, files.key)
    return P4RuntimeClient(
        switch.grpc, switch.device_id, election_id, tls, primary=primary, deadline=deadline
    )


def manifest_of(plan: Path | Plan) -> Manifest:
    """Return the manifest of a plan in a folder, or of one in memory."""
    return plan.manifest if isinstance(plan, Plan) else read_manifest(plan)


def parts_for(plan: Path | Plan, network: DescribedNetwork) -> list[tuple[SwitchPlan, Network]]:
    """Return what each switch of a network serves of a plan, and what is around it."""
    manifest, there = manifest_of(plan), len(network.workers)
    if manifest.workers != there:
        raise errors.PlanRefusedError(
            f"The plan of graph {manifest.graph.name} is for {manifest.workers} workers; the "
            f"network has {there}."
        )
    over = LeafSpine(network.leaf_of_worker, len(network.spines)) if network.cables else None
    return parts_over(plan, over, networks_of(network))


def parts_over(
    plan: Path | Plan, leaf_spine: LeafSpine | None, networks: Sequence[Network]
) -> list[tuple[SwitchPlan, Network]]:
    """Return what each switch serves, leaves first, and what is around it; None: all of it."""
    if leaf_spine is None:
        loaded = load_plan(plan)
        return [(loaded, network) for network in networks]
    whole = plan if isinstance(plan, Plan) else read_plan(plan)
    parts = split_for_leaf_spine(whole, leaf_spine).switches
    plans = [leaf_spine_switch_plan(whole.manifest, part) for part in parts]
    return list(zip(plans, networks, strict=True))


def served_jobs(client: P4RuntimeClient) -> list[tuple[Place, SessionEntry]]:
    """Return the jobs of an open switch by number; none if it runs another program."""
    if client.get_pipeline_cookie() is None:
        return []
    try:
        client.layout = None  # of an earlier program
        return read_jobs(client, client.get_layout())
    except (errors.OtherProgramError, KeyError, TypeError):
        # Another program, or a version with other entries.
        return []


def read_jobs(client: P4RuntimeClient, layout: Layout) -> list[tuple[Place, SessionEntry]]:
    """Return the jobs of an open switch that runs SwitchGNN's program, by number."""
    job, session = Jobs(layout), Session(layout)
    workers = client.read_rows(layout.table("worker"))
    sessions = session.decode(client.read_rows(session.table))
    shared = shared_slots(layout, client.read_default)
    places = job.decode(client.read_rows(job.table), workers, shared)
    return [(place, sessions.get(place.job, NO_SESSION)) for place in places]


def served_plan(client: P4RuntimeClient, job: str = DEFAULT_JOB) -> int:
    """Return the number of the plan that an open switch serves for a job; 0: none."""
    served = {place.name: session.plan for place, session in served_jobs(client)}
    return served.get(job, 0)


def refuse_growth(client: P4RuntimeClient, manifest: Manifest) -> None:
    """Refuse frames that would abort BMv2; of other switches only the embedded one is known."""
    lanes, rows = manifest.lanes, manifest.rows
    if not client.embedded and not fits_switch(lanes, rows, WIDEST_ANSWER):
        raise errors.PlanRefusedError(
            f"The switch at {client.address} cannot make a packet more than 512 bytes longer, as "
            f"frames of {rows} x {lanes} numbers need: plan with --lanes {WIDEST_ANSWER} --rows 1, "
            "or take the embedded switch."
        )


def refuse_other_plan(address: str, job: str, served: int, own: int) -> None:
    """Refuse a switch that serves another plan than ``own`` for a job; 0: none."""
    if served not in (0, own):
        raise errors.OtherPlanError(
            f"Switch {address} serves plan {served:08x} for job {job}, which somebody else has "
            f"installed, and not {own:08x}: a watch replaces no other plan. Watch that one, or "
            "bring yours to the switch with `switchgnn controller install`."
        )
