"""Where a job fits beside others: the lowest free ranges, or a refusal that names what is short."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from switchgnn.controller import JobRequest, SwitchPlan
from switchgnn.controller.admission import admit
from switchgnn.controller.base.errors import PlanRefusedError
from switchgnn.controller.controls.banks import all_reduce_slots
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.p4src import load_program, load_strawman
from tests.controller.plans import BANKS, make_plan

PROGRAM = load_program()
WHOLE = Layout.from_text(PROGRAM.p4info)
SLOTS, SOURCES, WORKERS, BLOCKS = 24, 30, 128, 1 << 16
POOLS = 4


def _small():
    """The program with fewer slots in each bank and fewer sources."""
    size = SLOTS + all_reduce_slots(WHOLE)
    registers = {
        name: replace(each, size=size) if name.endswith(".value") else each
        for name, each in WHOLE.registers.items()
    }
    registers["last_tag"] = replace(registers["last_tag"], size=SOURCES * POOLS)
    return replace(WHOLE, registers=registers)


SMALL = _small()


@dataclass(frozen=True)
class Need:
    """What a plan needs."""

    slots: int = 1
    blocks: int = 1
    sources: int = 1
    workers: int = 1

    def plan(self):
        plan = make_plan(sources=self.sources, workers=self.workers)
        none, last = np.zeros_like(plan.switch.entry_slot), np.array([self.slots - 1], np.uint32)
        switch = replace(plan.switch, entry_slot=none, result_slot=last)
        return SwitchPlan(replace(plan.manifest, blocks=self.blocks, pool_slots=0), switch)


def placed(need, present=(), *, name="new", ports=(1,), quota=None, since=0, layout=SMALL):
    return admit(JobRequest(name, quota, since), need.plan(), ports, layout, present, address="s1")


class Occupancy:
    """Which cells of each range are taken, one array each: brute force."""

    def __init__(self):
        room = {"slots": SLOTS, "blocks": BLOCKS, "sources": SOURCES, "workers": WORKERS}
        self.taken = {what: np.zeros(count, bool) for what, count in room.items()}
        self.jobs = {}

    def lowest(self, what, count):
        """The first cell of the lowest free run, or None."""
        if count > len(self.taken[what]):
            return None
        before = np.concatenate([[0], np.cumsum(self.taken[what])])
        free = np.flatnonzero(before[count:] == before[:-count])
        return int(free[0]) if len(free) else None

    def take(self, place):
        cells = {
            "slots": (place.first_slot, place.slots),
            # Its block 0 is a number of its own, which no entry has.
            "blocks": (place.first_block, place.last_block + 1),
            "sources": (place.first_source, place.sources),
            "workers": (place.first_worker, place.workers),
        }
        for what, (first, count) in cells.items():
            part = self.taken[what][first : first + count]
            assert len(part) == count, (what, "ends beyond the switch")
            assert not part.any(), (what, "overlaps")
            part[:] = True
        self.jobs[place.name] = (place, cells)

    def free(self, name):
        for what, (first, count) in self.jobs.pop(name)[1].items():
            self.taken[what][first : first + count] = False


@pytest.mark.parametrize("seed", range(2))
def test_jobs_get_the_lowest_free_ranges_or_are_refused(seed):
    rng = np.random.default_rng(seed)
    occupancy = Occupancy()
    admitted = refused = 0
    for step in range(120):
        places = [place for place, _ in occupancy.jobs.values()]
        if places and (len(places) == 16 or rng.random() < 0.4):
            occupancy.free(places[rng.integers(len(places))].name)
            continue
        need = Need(*(int(rng.integers(1, most)) for most in (9, 20_000, 11, 40)))
        counts = vars(need) | {"blocks": need.blocks + 1}
        lowest = {what: occupancy.lowest(what, count) for what, count in counts.items()}
        name, ports = f"job{step}", (step + 1,)
        if None in lowest.values():
            with pytest.raises(PlanRefusedError, match="free in a row"):
                placed(need, places, name=name, ports=ports)
            refused += 1
            continue
        place = placed(need, places, name=name, ports=ports)
        assert lowest == {what: getattr(place, f"first_{what[:-1]}") for what in counts}
        assert place.job == min({*range(1, 17)} - {each.job for each in places})
        occupancy.take(place)
        admitted += 1
    assert admitted > 20
    assert refused > 8


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (Need(slots=17), Need(slots=8), "8 slots in each bank, but switch s1 has 7"),
        (Need(blocks=65_000), Need(blocks=600), "601 numbers of blocks, but switch s1 has 535"),
        (Need(sources=25), Need(sources=6), "6 sources, but switch s1 has 5"),
        (Need(workers=120), Need(workers=9), "9 workers, but switch s1 has 8"),
    ],
)
def test_a_refusal_says_what_is_free(first, second, said):
    there = placed(first, name="there")
    with pytest.raises(PlanRefusedError, match=f"Job new needs {said} free in a row"):
        placed(second, [there], ports=(2,))


def test_a_job_may_have_all_blocks():
    assert placed(Need(blocks=0xFFFF)).first_block == 0


def test_a_port_has_one_job():
    there = placed(Need(), name="there", ports=(1, 2, 5))
    with pytest.raises(PlanRefusedError, match="Port 2 of switch s1 belongs to job there: "):
        placed(Need(), [there], ports=(2, 3))
    assert placed(Need(), [there], ports=(3, 4)).ports == (3, 4)


def test_there_are_sixteen_jobs():
    there = []
    for number in range(1, 17):
        there.append(placed(Need(), there, name=f"j{number}", ports=(number,)))
    assert [place.job for place in there] == list(range(1, 17))
    with pytest.raises(PlanRefusedError, match="Switch s1 has 16 jobs and no room for new"):
        placed(Need(), there, ports=(17,))
    # One that is there may still be replaced.
    assert placed(Need(slots=2), there, name="j9", ports=(9,)).job == 9


@pytest.mark.parametrize("name", ["", "two words", "-a", "x" * 17, "ä", "a/b", "a\n"])
def test_what_is_no_name(name):
    with pytest.raises(PlanRefusedError, match="names no job"):
        JobRequest(name)


def test_the_longest_name():
    assert JobRequest("x" * 16).name == "x" * 16


@pytest.mark.parametrize("quota", [0, -1])
def test_a_quota_of_nothing_is_refused(quota):
    with pytest.raises(PlanRefusedError, match=f"has a quota of {quota} slots"):
        JobRequest("a", quota)


def test_a_plan_above_its_quota_is_refused():
    """A quota counts the slots of all banks."""
    need = Need(slots=3)
    assert placed(need, quota=3 * BANKS).slots == 3
    with pytest.raises(PlanRefusedError, match="needs 24 slots, but its quota is 23"):
        placed(need, quota=3 * BANKS - 1)


def test_a_job_that_needs_the_same_keeps_its_place():
    first = placed(Need(slots=4), name="first")
    own = placed(Need(slots=4), [first], ports=(2,), since=100)
    # A lower range has become free.
    assert own.first_slot == 4
    assert placed(Need(slots=4), [own], ports=(2,), since=200) is own


def test_another_plan_of_a_job_may_take_its_own_ranges():
    own = placed(Need(slots=20), since=100)
    larger = placed(Need(slots=24), [own], since=200)
    assert (larger.job, larger.first_slot, larger.slots, larger.since) == (own.job, 0, 24, 200)


def test_the_strawmans_program_serves_one_job_with_slots_of_its_own():
    layout = Layout.from_text(load_strawman().p4info)
    there = placed(Need(), name="there", layout=layout)
    with pytest.raises(PlanRefusedError, match="there of switch s1 has slots of its own"):
        placed(Need(), [there], ports=(2,), layout=layout)
