"""A few packets over leaves and spines, with times worked out by hand to the picosecond."""

from dataclasses import replace

import pytest

from switchgnn.host.wire.header import Kind
from switchgnn.lab.simulator.request import (
    LEAF,
    SPINE,
    LeafSpineOptions,
    NetworkOptions,
    SimulatorError,
)
from switchgnn.lab.simulator.simulation import run_simulation

from .scenes import (
    ACK,
    BARRIER,
    DELAY,
    FEATURE,
    Row,
    Sent,
    acks_at_workers,
    arrivals,
    hosts_alone,
    scene,
    three_sums,
)

NOTICE = ACK
# DONE to the leaf, to the spine; ADVANCE to the leaf, to the worker.
OPENING = 4 * (BARRIER + DELAY)
# When the first features are at their leaf; and what a sum takes from there to a worker.
THERE = OPENING + FEATURE + DELAY
DOWN = FEATURE + DELAY
ACROSS = 3 * (FEATURE + DELAY)


def simulated(setup, *, leaves=2, spines=1, completion=SPINE, opening=True, **options):
    more = {"leaf_spine": LeafSpineOptions(leaves, spines, completion), "opening": opening}
    return run_simulation(setup, NetworkOptions(**options), **more, trace=True)


def at_workers(run, *kinds):
    """(picoseconds, worker, kind, row, count) of what arrives at workers."""
    return [
        (each.picoseconds, each.worker, each.kind, each.id, each.count)
        for each in run.trace
        if not each.at_switch and each.kind in kinds
    ]


def inside(run, workers, kind):
    """(picoseconds, link, row, count) of what arrives over links between switches."""
    return [
        (each.picoseconds, each.worker - workers, each.id, each.count)
        for each in run.trace
        if each.worker >= workers and each.kind == kind
    ]


both_completions = pytest.mark.parametrize("completion", [SPINE, LEAF])


@both_completions
def test_one_feature_one_sum_behind_the_other_leaf(completion):
    """Two workers, one on each leaf: the part is complete at once, and so is the sum."""
    run = simulated(scene(2, [Row(1, 1)], [Sent(0, [[0]])]), completion=completion)
    # Links: leaf 0 to the spine, leaf 1 to the spine, and back.
    assert inside(run, 2, Kind.DONE)[:2] == [(2 * (BARRIER + DELAY), link, 0, 1) for link in (0, 1)]
    advanced = [(3 * (BARRIER + DELAY), link, 0, 1) for link in (2, 3)]
    assert inside(run, 2, Kind.ADVANCE)[:2] == advanced
    assert arrivals(run, Kind.ADVANCE, at_switch=False)[:2] == [(OPENING, 0, 0), (OPENING, 1, 0)]
    assert inside(run, 2, Kind.SUM) == [(THERE + DOWN, 0, 0, 1), (THERE + 2 * DOWN, 3, 0, 1)]
    came = THERE + ACROSS
    assert at_workers(run, Kind.SUM) == [(came, 1, Kind.SUM, 0, 1)]
    assert acks_at_workers(run) == [(THERE + ACK + DELAY, 0, 0)]
    assert run.finished == (came + OPENING, came + OPENING)
    # A pass at the leaf and one where the sum completes; the acknowledgement goes around.
    assert (run.passes, run.loop_passes, run.contributions, run.sums) == (2, 1, 2, 1)
    assert (run.frames_up, run.frames_down) == ((3, 2), (3, 3))
    assert run.inside.frames_up == (2 + 1, 2)
    assert run.inside.bytes_down == (2 * 88, 2 * 88 + 188)
    assert run.inside.sums_up == (1, 0)


@pytest.mark.parametrize(("completion", "own", "down"), [(SPINE, 1, 3), (LEAF, 0, 2)])
def test_leaves_send_their_parts_to_the_spine(completion, own, down):
    """Workers 0, 1 | 2, 3: the part of worker 2's own leaf goes up, too, unless leaves complete."""
    packets = [Sent(0, [[0]]), Sent(1, [[0]]), Sent(3, [[0]])]
    run = simulated(scene(4, [Row(2, 3)], packets), completion=completion)
    up, back = THERE + FEATURE + DELAY, THERE + 2 * (FEATURE + DELAY)
    assert inside(run, 4, Kind.SUM) == [(up, 0, 0, 2), *[(up, 1, 0, 1)] * own, (back, 3, 0, down)]
    assert at_workers(run, Kind.SUM) == [(THERE + ACROSS, 2, Kind.SUM, 0, 3)]
    additions = 3 + 1 + own
    assert (run.sums, run.contributions, run.passes, run.max_slots) == (1, additions, additions, 1)
    assert run.inside.sums_up == (1, own)
    assert run.inside.bytes_up == (188 + 2 * 88, 188 * own + 2 * 88)
    assert run.inside.bytes_down == (2 * 88, 188 + 2 * 88)


@both_completions
def test_what_stays_behind_a_leaf_never_leaves_it(completion):
    run = simulated(scene(4, [Row(1, 1)], [Sent(0, [[0]])]), completion=completion)
    assert at_workers(run, Kind.SUM) == [(THERE + DOWN, 1, Kind.SUM, 0, 1)]
    assert sum(run.inside.sums_up) == 0
    # Leaf 0 could wait at most for the others' barrier.
    assert run.finished == (THERE + DOWN + OPENING,) * 4


@pytest.mark.parametrize(("completion", "latency"), [(SPINE, ACROSS), (LEAF, DOWN)])
def test_a_sum_leaves_where_its_last_part_is_added(completion, latency):
    """Worker 3's is last: it goes over the spine, though its leaf is the receiver's."""
    packets = [Sent(0, [[0]]), Sent(1, [[0]]), *[Sent(3, [[1]])] * 600, Sent(3, [[0]])]
    setup = scene(4, [Row(2, 3), Row(2, 600)], packets)
    run = simulated(setup, completion=completion, window=1_000, ecn_threshold=None)
    last = arrivals(run, Kind.FEATURE, at_switch=True)[-1][0]
    assert last > THERE + ACROSS
    assert at_workers(run, Kind.SUM)[-1] == (last + latency, 2, Kind.SUM, 0, 3)


def test_spines_take_turns_by_the_number_of_the_destination():
    """Of whole features all fragments go to the spine of their destination."""
    numbers = [7, 3, 5, 12]
    rows = [Row(1, 1, bank, vertex=vertex) for bank, vertex in enumerate(numbers)]
    setup = replace(scene(2, rows, [Sent(0, [[0, 1, 2, 3]])]), together=2)
    run = simulated(setup, spines=3)
    # The links of leaf 0, and those back to leaf 1.
    paths = [(link, row // 2) for _, link, row, _ in inside(run, 2, Kind.SUM)]
    up = [(vertex % 3, row) for row, vertex in enumerate(numbers)]
    assert sorted(paths) == sorted(2 * (up + [(9 + spine, row) for spine, row in up]))


@both_completions
def test_parts_queue_at_the_leaf(completion):
    run = simulated(three_sums(4), completion=completion)
    came = THERE + ACROSS
    assert [at for at, *_ in at_workers(run, Kind.SUM)] == [came + i * FEATURE for i in range(3)]
    # Where they go on there is no queue: one is sent before the next comes.
    assert run.max_port_queue_bytes == 3 * 188
    assert run.max_slots == 3


def test_sums_queue_at_the_spine():
    """Two leaves send a part at the same time, each of which completes a sum for the third."""
    run = simulated(scene(3, [Row(2, 1)] * 2, [Sent(0, [[0]]), Sent(1, [[1]])]), leaves=3)
    came = [(THERE + ACROSS + i * FEATURE, 2, Kind.SUM, i, 1) for i in (0, 1)]
    assert at_workers(run, Kind.SUM) == came
    assert run.max_port_queue_bytes == 2 * 188


@both_completions
def test_every_leaf_has_a_loop_of_its_own(completion):
    """Both senders' packets need more passes; no leaf waits for the other."""
    rows = [*[Row(1, 1, bank) for bank in range(3)], *[Row(3, 1, bank) for bank in range(3)]]
    packets = [Sent(0, [[0], [1], [2]]), Sent(2, [[3], [4], [5]])]
    turn = 1_000_000
    run = simulated(scene(4, rows, packets), recirculation_rate=1e6, completion=completion)
    came = {row: at for at, _, _, row, _ in at_workers(run, Kind.SUM)}
    assert came == {row: THERE + DOWN + (row % 3) * turn for row in range(6)}
    assert (run.loop_passes, run.max_loop_queue) == (6, 0)


@pytest.mark.parametrize(("completion", "hops"), [(SPINE, [(1, 0)]), (LEAF, [(1, 0), (2, 3)])])
def test_a_strawman_tries_at_leaf_and_spine(completion, hops):
    """A slot each. Leaf 0: row 0 takes it, row 1 overflows twice, and is added at the other one."""
    packets = [Sent(0, [[row]]) for row in (0, 1, 1, 0)]
    run = simulated(scene(2, [Row(1, 2)] * 2, packets, bank_slots=[1]), completion=completion)
    assert inside(run, 2, Kind.FEATURE) == [
        (THERE + number * FEATURE + passed * (FEATURE + DELAY), link, 1, 1)
        for passed, link in hops
        for number in (1, 2)
    ]
    assert at_workers(run, Kind.SUM, Kind.FEATURE) == [
        (THERE + (number - 1) * FEATURE + ACROSS, 1, Kind.SUM, row, 2)
        for number, row in ((3, 1), (4, 0))
    ]
    assert (run.overflowed, run.sums, run.features_down) == (0, 2, (0, 0))
    assert (run.inside.sums_up, run.inside.features_up) == ((1, 0), (2, 0))


@both_completions
def test_a_strawman_without_slots_at_leaf_and_spine_passes_on_what_came(completion):
    """Row 2 holds the spine's slot until the last packet: features and a part go past it."""
    packets = [Sent(2, [[2]]), *[Sent(0, [[row]]) for row in (0, 1, 1, 0, 2)]]
    run = simulated(scene(3, [Row(2, 2)] * 3, packets, bank_slots=[1]), completion=completion)
    parts = [(kind, row, count) for _, _, kind, row, count in at_workers(run, Kind.SUM, 1)]
    assert parts == [(Kind.FEATURE, 1, 1), (Kind.FEATURE, 1, 1), (Kind.SUM, 0, 2), (Kind.SUM, 2, 2)]
    assert (run.overflowed, run.sums, run.features_down) == (3, 2, (0, 0, 2))


def test_a_strawmans_feature_for_its_own_leaf_goes_to_the_worker_at_once():
    """Both rows stay behind leaf 0, which has one slot."""
    packets = [Sent(0, [[row]]) for row in (0, 1, 1, 0)]
    run = simulated(scene(4, [Row(1, 2), Row(1, 2)], packets, bank_slots=[1]))
    assert sum(run.inside.features_up) == sum(run.inside.sums_up) == 0
    assert (run.overflowed, run.sums, run.features_down) == (2, 1, (0, 2, 0, 0))


def test_hosts_alone_send_through_a_spine():
    run = simulated(hosts_alone([[0, 1], [0, 0]]))
    there = 4 * (FEATURE + DELAY)
    assert run.finished == (there + 4 * (ACK + DELAY), there)
    assert run.inside.frames_up == run.inside.frames_down == (1, 1)
    assert run.inside.features_up == (1, 0)


@pytest.mark.parametrize(("completion", "hops"), [(SPINE, [4] * 4), (LEAF, [4, 4, 2, 2])])
def test_a_mark_on_the_last_part_reaches_the_worker_and_all_are_told(completion, hops):
    """The third part finds two at its leaf; all are told by the first spine, or by their leaf."""
    assert simulated(three_sums(4), ecn_threshold=2, completion=completion).marked == 0
    run = simulated(three_sums(4), ecn_threshold=1, completion=completion)
    assert (run.marked, run.notices) == (1, (0, 0, 1, 0))
    marked = THERE + ACROSS + 2 * FEATURE
    heard = [(marked + hop * (NOTICE + DELAY), each, 0) for each, hop in enumerate(hops)]
    assert arrivals(run, Kind.NOTICE, at_switch=False) == sorted(heard)
    told = [each.count for each in run.trace if each.kind == Kind.NOTICE]
    if completion == SPINE:
        assert len(told) == 1 + 1 + 2 + 4
    assert set(told) == {1}


@both_completions
def test_a_mark_on_another_part_stays_in_the_slot(completion):
    """The part of leaf 0 is marked, and that of leaf 1, which is not, completes the sum."""
    packets = [Sent(0, [[0, 1, 2]]), Sent(1, [[0, 1, 2]]), *[Sent(3, [[3]])] * 5, Sent(3, [[2]])]
    rows = [Row(2, 2), Row(2, 2), Row(2, 3), Row(2, 5)]
    run = simulated(scene(4, rows, packets), ecn_threshold=1, completion=completion)
    assert (run.marked, run.notices) == (1, (0, 0, 1, 0))


@both_completions
def test_a_full_buffer_between_switches_ends_the_simulation(completion):
    simulated(three_sums(4), buffer=3 * 188, completion=completion)
    with pytest.raises(SimulatorError, match="queue to spine 0 is full"):
        simulated(three_sums(4), buffer=3 * 188 - 1, completion=completion)
