"""Where a job fits on a switch: free ranges, its ports, and what it may take."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from switchgnn.base.network import DEFAULT_JOB, bad_job_name
from switchgnn.controller.base.errors import PlanRefusedError, UnknownJobError
from switchgnn.controller.base.place import Place
from switchgnn.controller.base.plan import SwitchPlan
from switchgnn.controller.check import slots_per_bank
from switchgnn.controller.controls.access import last_tags
from switchgnn.controller.controls.banks import Banks, SlotLimits, hands_out_slots
from switchgnn.controller.controls.job import Jobs
from switchgnn.controller.controls.loop import FIRST_REPLICA_GROUP
from switchgnn.controller.controls.session import Session
from switchgnn.controller.counters import bank_slots
from switchgnn.controller.p4runtime.layout import Layout

# Numbers of blocks on a switch, including 0.
_BLOCKS = 1 << 16
_SETS = (1 << 16) - FIRST_REPLICA_GROUP


@dataclass(frozen=True)
class JobRequest:
    """What a job asks of each switch; PlanRefusedError if no switch could admit it."""

    name: str = DEFAULT_JOB
    quota: int | None = None  # the most slots of all banks that it may take; None: any number
    since: int = 0  # when it asks, in seconds since 1970
    shared: bool = False  # whether it shares slots with other jobs

    def __post_init__(self) -> None:
        if problem := bad_job_name(self.name):
            raise PlanRefusedError(f"{problem}.")
        if self.quota is not None and self.quota < 1:
            raise PlanRefusedError(
                f"Job {self.name} has a quota of {self.quota} slots, which admits no plan: give it "
                "at least one, or leave the quota out."
            )


DEFAULT_REQUEST = JobRequest()
"""The job of an install that names none."""


@dataclass(frozen=True)
class _Range:
    """Numbers that jobs divide among themselves."""

    what: str
    first: str  # the field of a place with the first number, and that with their count
    count: str
    total: int
    remedy: str


def _ranges(layout: Layout) -> tuple[_Range, ...]:
    limits = Session(layout)
    tags = sum(each.size for each in last_tags(layout))
    slots = _Range(
        *("slots in each bank", "first_slot", "slots"),
        *(Banks(layout).slots_per_bank, "plan for less memory"),
    )
    if hands_out_slots(layout):
        room, remedy = SlotLimits(layout).destinations_per_bank, "plan for a smaller boundary"
        slots = replace(slots, what="destinations in each bank", total=room, remedy=remedy)
    return (
        slots,
        _Range("numbers of blocks", "first_block", "blocks", _BLOCKS, "plan for fewer blocks"),
        _Range(
            *("sources", "first_source", "sources"),
            *(tags // limits.max_pools, "plan for fewer sources"),
        ),
        _Range("workers", "first_worker", "workers", limits.max_workers, "plan for fewer"),
        _Range("sets of replicas", "first_set", "sets", _SETS, "cut edges instead of vertices"),
    )


def job_named(places: Iterable[Place], name: str, address: str) -> Place:
    """Return a job; UnknownJobError if the switch at an address has none of that name."""
    places = list(places)
    for place in places:
        if place.name == name:
            return place
    there = f"it has {', '.join(each.name for each in places)}" if places else "it has none"
    raise UnknownJobError(f"Switch {address} has no job {name}: {there}.")


def admit(
    request: JobRequest,
    plan: SwitchPlan,
    ports: Sequence[int],
    layout: Layout,
    present: Sequence[Place],
    *,
    address: str,
) -> Place:
    """Return the place of a job beside others; one that is there and needs the same keeps its own.

    `ports`: of its neighbours. `present`: the jobs of the switch; one of the same name is replaced.
    PlanRefusedError: the switch has no room, or a port is another job's.
    """
    others = [each for each in present if each.name != request.name]
    own = next((each for each in present if each.name == request.name), None)
    shared = _shared(request, plan, layout, present, address)
    wanted = Place(
        job=own.job if own else _free_number(others, Jobs(layout).max_jobs, request.name, address),
        name=request.name,
        since=request.since,
        ports=tuple(sorted(ports)),
        slots=slots_per_bank(plan, layout) if shared is None else bank_slots(plan.switch),
        last_block=plan.manifest.blocks,
        sources=len(plan.switch.source_vertex),
        workers=plan.manifest.workers,
        sets=len(plan.replica_sets[0]),
        shared=shared,
    )
    _check_ports(wanted, others, address)
    _check_quota(request, wanted, plan)
    ranges = _ranges(layout)
    if own is not None:
        same = replace(wanted, **{each.first: getattr(own, each.first) for each in ranges})
        if replace(same, since=own.since) == own:
            return own
    firsts: Any = {each.first: _first_fit(each, wanted, others, address) for each in ranges}
    return replace(wanted, **firsts)


def _shared(
    request: JobRequest, plan: SwitchPlan, layout: Layout, present: Sequence[Place], address: str
) -> int | None:
    """Return how many slots a job shares with others, or None; refuse it beside other kinds."""
    if not hands_out_slots(layout):
        if request.shared:
            raise PlanRefusedError(
                f"Job {request.name} asks for shared slots, which only the strawman's program has: "
                'make its plan with build_plan(blocks="strawman", '
                "program=load_strawman().digest), or install it with fixed slots."
            )
        return None
    shared = plan.manifest.slots if request.shared else None
    for each in present:
        if each.name == request.name and (each.shared is None) == (shared is None):
            continue
        if each.shared is None or shared is None:
            kind = "slots of its own" if each.shared is None else "shared slots"
            raise PlanRefusedError(
                f"Job {each.name} of switch {address} has {kind}: remove it first, or install all "
                "its jobs with shared slots."
            )
        if each.shared != shared:
            raise PlanRefusedError(
                f"The jobs of switch {address} share {each.shared:,} slots, but the plan of job "
                f"{request.name} is for {shared:,}: plan for that many, or remove the others."
            )
    return shared


def _free_number(others: Sequence[Place], most: int, name: str, address: str) -> int:
    taken = {each.job for each in others}
    for number in range(1, most + 1):
        if number not in taken:
            return number
    raise PlanRefusedError(
        f"Switch {address} has {most} jobs and no room for {name}: remove one first "
        "(`switchgnn controller jobs` lists them)."
    )


def _check_ports(wanted: Place, others: Sequence[Place], address: str) -> None:
    for other in others:
        taken = sorted({*wanted.ports} & {*other.ports})
        if taken:
            raise PlanRefusedError(
                f"Port {taken[0]} of switch {address} belongs to job {other.name}: give job "
                f"{wanted.name} other ports, or remove {other.name}."
            )


def _check_quota(request: JobRequest, wanted: Place, plan: SwitchPlan) -> None:
    needed = wanted.slots * plan.switch.entry_slot.shape[1]
    if plan.manifest.strawman:
        needed = plan.manifest.slots
    if request.quota is not None and needed > request.quota:
        raise PlanRefusedError(
            f"The plan of job {request.name} needs {needed:,} slots, but its quota is "
            f"{request.quota:,}: plan for less memory, or raise the quota."
        )


def _first_fit(among: _Range, wanted: Place, others: Sequence[Place], address: str) -> int:
    """Return the beginning of the lowest gap between the ranges of others that is large enough."""
    needed = getattr(wanted, among.count)
    taken = sorted((getattr(each, among.first), getattr(each, among.count)) for each in others)
    begin = largest = 0
    for first, count in [*((first, count) for first, count in taken if count), (among.total, 0)]:
        if first - begin >= needed:
            return begin
        largest = max(largest, first - begin)
        begin = first + count
    raise PlanRefusedError(
        f"Job {wanted.name} needs {needed:,} {among.what}, but switch {address} has "
        f"{largest:,} free in a row: {among.remedy}, or remove another job."
    )
