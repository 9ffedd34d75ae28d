"""Brings switches to a plan: all of them, or none."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TypeVar

from switchgnn.base.clock import SYSTEM_CLOCK, Clock
from switchgnn.base.network import Network
from switchgnn.controller import change as changes
from switchgnn.controller.admission import DEFAULT_REQUEST, JobRequest, admit
from switchgnn.controller.base import errors
from switchgnn.controller.base.place import ALONE, Place
from switchgnn.controller.base.plan import SwitchPlan
from switchgnn.controller.check import check_plan
from switchgnn.controller.controls import congestion, keyed_in
from switchgnn.controller.controls.banks import SHARED_AGE, SlotLimits, hands_out_slots
from switchgnn.controller.controls.fanout import Fanout
from switchgnn.controller.controls.job import Jobs
from switchgnn.controller.controls.loop import multicast_groups
from switchgnn.controller.controls.one_bank import fitted
from switchgnn.controller.controls.session import Session, SessionEntry
from switchgnn.controller.p4runtime.client import P4RuntimeClient
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.controller.target import (
    Progress,
    SwitchInstall,
    refuse_growth,
    refuse_other_plan,
    served_plan,
    verify,
)
from switchgnn.p4src import Program


def desired_state(
    plan: SwitchPlan,
    layout: Layout,
    network: Network,
    ecn_threshold: int,
    queue: int = congestion.BMV2_QUEUE,
    *,
    place: Place = ALONE,
) -> changes.SwitchContents:
    """Return what a job adds to a switch for a plan, without a session; see ``install_each``."""
    plan = fitted(plan, layout)
    tables = [control.rows(plan, network, place) for control in keyed_in(layout)]
    tables.append(Jobs(layout).encode(place))
    marked = congestion.marking(ecn_threshold, queue, plan.sums_at_once)
    ports = [*plan.ports(network), *place.loop_ports]
    tables.append(congestion.Congestion(layout).encode(marked, ports))
    empty = changes.empty_state(layout)
    settings = {}
    if hands_out_slots(layout):
        age = 0 if place.shared is None else SHARED_AGE
        settings[SlotLimits.name] = SlotLimits(layout).encode(plan.manifest.slots, age)
    return changes.SwitchContents(
        rows={**empty.rows, **{rows.table.name: rows for rows in tables}},
        defaults={**empty.defaults, **settings},
        groups=multicast_groups(plan, network, place, harvests=Fanout(layout).banks == 1),
    )


def with_session(
    state: changes.SwitchContents, layout: Layout, job: int, entry: SessionEntry, newest: int = 0
) -> changes.SwitchContents:
    """Return a job's state with its session; `newest`: the newest one that the switch has had."""
    number = max(newest, entry.session)
    return replace(
        state,
        rows={**state.rows, Session.name: Session(layout).encode(job, entry)},
        defaults={**state.defaults, Jobs.name: Jobs(layout).encode_newest(number)},
    )


T = TypeVar("T")
# Makes an executor for a number of switches.
MakeExecutor = Callable[[int], Executor]


@dataclass(frozen=True)
class Share:
    """One switch's share of an install."""

    plan: SwitchPlan  # what it serves
    network: Network  # what is around it
    switch: str | P4RuntimeClient  # its address (``HOST:PORT`` or ``unix:PATH``) or a client


class DesiredStates:
    """What switches shall hold for their shares, without a session yet; found once for each.

    Args:
        program: what the switches shall run.
        ecn_threshold: packets in a queue from which on packets are marked; see `marking`.
        queue: packets that a queue of the switches holds.
        largest_feature: the largest magnitude that a worker may report; None: any of which no sum
            overflows float32.
    """

    def __init__(
        self,
        program: Program,
        ecn_threshold: int = congestion.DEFAULT_ECN_THRESHOLD,
        queue: int = congestion.BMV2_QUEUE,
        largest_feature: float | None = None,
    ) -> None:
        self.program = program
        self.layout = Layout.from_text(program.p4info)
        self.largest_feature = largest_feature
        self._queues = ecn_threshold, queue
        self._known: dict[tuple[SwitchPlan, Network, Place], changes.SwitchContents] = {}

    def checked(self, share: Share) -> Share:
        """Return a share in the program's banks; PlanRefusedError if it fits no switch with it."""
        check_plan(share.plan, self.program, self.layout, share.network)
        return replace(share, plan=fitted(share.plan, self.layout))

    def of(self, share: Share, place: Place) -> changes.SwitchContents:
        """Return the state of a share at a place; switches with the same ones have one state."""
        key = share.plan, share.network, place
        if key not in self._known:
            self._known[key] = desired_state(
                share.plan, self.layout, share.network, *self._queues, place=place
            )
        return self._known[key]


def install_each(
    shares: Sequence[Share],
    desired: DesiredStates,
    request: JobRequest = DEFAULT_REQUEST,
    *,
    new_session: bool = False,
    replace_others: bool = True,
    progress: Progress | None = None,
    clock: Clock = SYSTEM_CLOCK,
    pool: MakeExecutor = ThreadPoolExecutor,
) -> changes.InstallReport:
    """Install a part of a plan at each switch, writing only what differs: at all, or at none.

    The plan is that of one job, beside those that the switches serve; a job of the same name is
    replaced. After a failure every switch is as before; one that ran another program, or none, is
    left with the program and no entries.

    Args:
        shares: one per switch, all of the same plan.
        desired: what switches shall hold; several installs of a plan may have the same.
        request: the job's name and quota.
        new_session: take a new session number even if the plan is installed, for restarted workers.
        replace_others: whether to replace another plan that a switch serves for the job.
        progress: called with an address, updates written, and all updates.
        clock: of the report.
        pool: makes the executor for all switches.

    Returns:
        What was written to each switch, and how long it took.

    Raises:
        PlanRefusedError: the plan does not fit, or not beside other jobs; nothing was written.
        OtherPlanError: a switch serves another plan, to be kept; nothing was written.
        ControllerError: a switch failed; all are as before.
        RollbackError: a switch failed and one could not be restored.
    """
    if not shares:
        raise errors.PlanRefusedError(
            "There is no switch to install on: give at least one address."
        )
    program, layout = desired.program, desired.layout
    shares = [desired.checked(share) for share in shares]
    with ExitStack() as stack:
        clients = [_client(stack, share.switch) for share in shares]
        for client, share in zip(clients, shares, strict=True):
            refuse_growth(client, share.plan.manifest)
        team = _Team([SwitchInstall(client, program, layout, clock) for client in clients], pool)
        table = Session(layout)
        try:
            team.each(SwitchInstall.look)
            team.each(lambda target: target.refuse_loss(request.name))
            if not replace_others:
                served = team.each(lambda target: served_plan(target.client, request.name))
                for share, client, number in zip(shares, clients, served, strict=True):
                    planned = share.plan.manifest.number
                    refuse_other_plan(client.address, request.name, number, planned)
            places = []
            for share, target in zip(shares, team.targets, strict=True):
                ports, address = share.plan.ports(share.network), target.client.address
                place = admit(request, share.plan, ports, layout, target.jobs, address=address)
                places.append(place)
            states = [desired.of(share, place) for share, place in zip(shares, places, strict=True)]
            team.each(SwitchInstall.load)

            def entries_of(number: int) -> list[SessionEntry]:
                most = desired.largest_feature
                return [table.entry(number, share.plan, most) for share in shares]

            entries = _session_entries(team, places, entries_of, new_session=new_session)
            goals = {}
            for target, state, entry, place in zip(
                team.targets, states, entries, places, strict=True
            ):
                own = with_session(state, layout, place.job, entry, target.newest_session)
                goal = own.beside(target.others(request.name))
                _check_room(goal, target.client.address)
                goals[id(target)] = goal, place.job
            reports = team.each(
                lambda target: target.bring_to(*goals[id(target)], team.cancel, progress)
            )
        except BaseException:
            team.go_back()
            raise
    return changes.InstallReport(entries[0].session, shares[0].plan.manifest.digest, tuple(reports))


class _Team:
    """The switches of one install, which an executor handles concurrently."""

    def __init__(self, targets: Sequence[SwitchInstall], pool: MakeExecutor) -> None:
        self.targets = targets
        self._pool = pool
        self.cancel = threading.Event()

    def each(self, step: Callable[[SwitchInstall], T]) -> list[T]:
        """Do a step on all switches; the first failure stops the others."""
        with self._pool(len(self.targets)) as pool:
            futures = [pool.submit(self._step, step, target) for target in self.targets]
            try:
                wait(futures)
            except BaseException:
                self.cancel.set()
                raise
        failed = [error for future in futures if (error := future.exception()) is not None]
        if failed:
            # The others were only cancelled.
            raise next(
                (e for e in failed if not isinstance(e, errors.InstallCancelledError)), failed[0]
            )
        return [future.result() for future in futures]

    def go_back(self) -> None:
        """Restore all switches."""
        failed: list[errors.RollbackError] = []

        def restore(target: SwitchInstall) -> None:
            try:
                target.go_back()
            except errors.RollbackError as error:
                failed.append(error)

        with self._pool(len(self.targets)) as pool:
            list(pool.map(restore, self.targets))
        if failed:
            raise errors.RollbackError(" ".join(str(error) for error in failed)) from failed[0]

    def _step(self, step: Callable[[SwitchInstall], T], target: SwitchInstall) -> T:
        try:
            return step(target)
        except BaseException:
            self.cancel.set()
            raise


def _client(stack: ExitStack, switch: str | P4RuntimeClient) -> P4RuntimeClient:
    if isinstance(switch, P4RuntimeClient):
        if not switch.primary:
            raise errors.ControllerError(
                f"The connection to switch {switch.address} is for reading only: open it with "
                "primary=True."
            )
        switch.open()
        return switch
    return stack.enter_context(P4RuntimeClient(switch))


def _check_room(goal: changes.SwitchContents, address: str) -> None:
    for rows in goal.rows.values():
        if len(rows) > rows.table.size:
            raise errors.PlanRefusedError(
                f"With this job switch {address} would have {len(rows):,} entries for table "
                f"{rows.table.name}, which has room for {rows.table.size:,}: remove another job, "
                "or make a plan with fewer."
            )


def _session_entries(
    team: _Team,
    places: Sequence[Place],
    entries_of: Callable[[int], list[SessionEntry]],
    *,
    new_session: bool,
) -> list[SessionEntry]:
    """Choose one session for all switches, and return each one's entry.

    The plan keeps its session unless a new one is wanted, or it has a new place on a switch, whose
    registers may hold a newer session of another job. A restarted switch joins it, but has lost its
    window of tags. A new session is newer than all.
    """
    present = [target.session_of(at) for target, at in zip(team.targets, places, strict=True)]
    serving = None if new_session else _served(present, entries_of)
    if serving:
        both = list(zip(team.targets, present, entries_of(serving), strict=True))
        if all(
            (here.session, here.plan) == (serving, own.plan)
            if here.session
            else target.newest_session < serving
            for target, here, own in both
        ):
            return [
                replace(own, any_tag=here.any_tag if here.session else 1) for _, here, own in both
            ]
    number = max(target.newest_session for target in team.targets) + 1
    if number > team.targets[0].max_session:
        for target, place in zip(team.targets, places, strict=True):
            target.refuse_others(place.job)
        # Loading the program empties the registers with old numbers.
        team.each(lambda target: target.load(anew=True))
        number = 1
    return entries_of(number)


def _served(
    present: Sequence[SessionEntry], entries: Callable[[int], list[SessionEntry]]
) -> int | None:
    """Return the session in which a switch already serves its plan, or None."""
    for position, here in enumerate(present):
        own = entries(here.session)[position]
        if here.session and here == replace(own, any_tag=here.any_tag):
            return here.session
    return None


def clear(client: P4RuntimeClient) -> changes.ChangeCounts:
    """Remove all entries and groups, restore the default actions, verify, and count.

    The registers keep their contents, but their session is forgotten: the next install loads
    the program again.
    """
    layout = client.get_layout()
    empty = changes.empty_state(layout)
    change = changes.change_between(layout, changes.read_state(client, layout), empty)
    client.write_requests(change.requests())
    verify(client, layout, empty)
    return change.counts
