"""What each control's class makes of a plan, and reads back; the limits of the strawman."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from switchgnn.base.network import Station
from switchgnn.controller import Network, SwitchPlan, read_counters, star_network
from switchgnn.controller.base.errors import PlanRefusedError
from switchgnn.controller.controls.access import Destination, Partial, Source
from switchgnn.controller.controls.banks import SlotLimits
from switchgnn.controller.controls.congestion import Congestion, Marking, marking
from switchgnn.controller.controls.fanout import Fanout
from switchgnn.controller.controls.forward import Forward
from switchgnn.controller.controls.job import WorkerPorts
from switchgnn.controller.controls.loop import FIRST_REPLICA_GROUP, Result, multicast_groups
from switchgnn.controller.controls.rewrite import Rewrite
from switchgnn.controller.controls.session import Session, SessionEntry
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.p4src import load_strawman
from switchgnn.planner import build_plan, graph_from_edges
from switchgnn.planner.graphs.graph import FIRST_RESERVED_ID
from switchgnn.planner.partition.vertex_cut import MOST_SETS
from tests.controller.plans import install, make_plan

PLAN = make_plan(workers=3)


def test_worker_has_a_port_a_number_and_a_bit(layout, network):
    worker = WorkerPorts(layout)
    rows = worker.rows(PLAN, network)
    assert worker.records(rows) == [{"port": w + 1, "job": 1, "worker": w} for w in range(3)]
    bits = rows.param_columns(worker.table.action("set_worker"))["worker_bit"]
    assert list(bits) == [1, 2, 4]


def test_the_128th_worker_has_the_top_bit(layout):
    rows = WorkerPorts(layout).rows(make_plan(workers=128), star_network(128))
    bits = rows.param_columns(WorkerPorts(layout).table.action("set_worker"))["worker_bit"]
    assert bits[-1] == 1 << 127


def test_stations_are_forwarded_and_broadcast_is_flooded(layout, network):
    records = Forward(layout).records(Forward(layout).rows(PLAN, network))
    assert records[0] == {"job": 1, "dst_addr": "02:00:00:00:00:01", "port": 1}
    assert records[-1] == {"job": 1, "dst_addr": "ff:ff:ff:ff:ff:ff", "port": "all"}
    assert len(records) == 4


def test_sources_are_indexed_by_their_position(layout, network):
    records = Source(layout).records(Source(layout).rows(PLAN, network))
    assert records[3] == {"job": 1, "src_id": 3, "port": 1, "index": 3}


def test_destinations_have_their_slot_and_port(layout, network):
    control = Destination(layout)
    records = control.records(control.rows(PLAN, network))
    switch = PLAN.switch
    columns = {
        **{"block_id": switch.result_block, "dst_id": switch.result_vertex},
        **{"port": switch.result_worker + 1, "bank": switch.result_bank},
        **{"slot": switch.result_slot, "expected": switch.result_expected},
    }
    assert len(records) == len(switch.result_vertex)
    for row, record in enumerate(records):
        assert record == {name: column[row] for name, column in columns.items()}


@pytest.fixture(scope="module")
def covered(program):
    """Workers 0 and 127 send partial sums for vertex 20, and 127 one for 23; 148 is a feature."""
    source = np.array([*range(20), *range(10, 15), 148])
    destination = np.repeat([20, 23, 22], [20, 5, 1])
    graph = graph_from_edges(source, destination, name="covered", vertices=149, directed=True)
    owners = np.array([*np.repeat([0, 127, 5], [10, 10, 1]), *range(128)])
    options = {"workers": 128, "slots": 64, "send": "cover", "assignment": owners}
    plan = build_plan(graph, program=program.digest, **options)
    return SwitchPlan(plan.manifest, plan.switch)


def test_destinations_know_who_sends_them_partial_sums(layout, covered):
    """A bit for each worker, up to the 128th."""
    partial = Partial(layout)
    senders = {each["dst_id"]: each["senders"] for each in partial.records(partial.rows(covered))}
    assert senders == {20: f"{1 << 127 | 1:x}", 23: f"{1 << 127:x}"}
    assert partial.count(covered) == 2
    assert partial.count(PLAN) == len(partial.rows(PLAN)) == 0


def test_partial_sums_need_no_fanout(layout, covered):
    fanout, plain = Fanout(layout), covered.switch.entry_source < FIRST_RESERVED_ID
    assert fanout.count(covered) == len(fanout.rows(covered)) == plain.sum() < len(plain)


def test_fanout_entries_hold_flags_and_slots(layout):
    fanout = Fanout(layout)
    records = fanout.records(fanout.rows(PLAN))
    switch = PLAN.switch
    for row, record in enumerate(records):
        used = np.flatnonzero(switch.entry_expected[row])
        assert record["block_id"] == switch.entry_block[row]
        assert record["hop"] == switch.entry_hop[row]
        assert record["last_hop"] == int(switch.entry_last[row])
        assert record["last_bank"] == used.max(initial=0)
        assert record["slots"] == " ".join(
            f"{b}:{switch.entry_slot[row, b]}({switch.entry_expected[row, b]})" for b in used
        )


def test_results_go_to_the_port_and_first_group_of_their_worker(layout, network):
    records = Result(layout).records(Result(layout).rows(PLAN, network))
    assert [record["port"] for record in records] == [1, 2, 3, 1, 2]
    assert [record["group"] for record in records] == [72, 80, 88, 72, 80]


def test_groups_join_each_worker_with_each_loop_port(network):
    groups = multicast_groups(PLAN, network)
    assert groups[2] == (1, 2, 3)
    assert groups[64 + 1 * 8] == (1, 256)
    assert groups[64 + 3 * 8 + 7] == (3, 263)
    assert len(groups) == 1 + 3 * 8


def test_vertex_cuts_are_planned_for_the_groups_that_remain():
    assert MOST_SETS == (1 << 16) - FIRST_REPLICA_GROUP


def test_departures_carry_addresses(layout):
    network = Network(star_network(3).neighbours, switch=Station("02:00:00:00:ff:fe", "10.9.9.9"))
    departure = Rewrite(layout)
    rows = departure.rows(PLAN, network)
    assert departure.records(rows)[1] == {
        "port": 2,
        "worker_mac": "02:00:00:00:00:02",
        "worker_ip": "10.0.0.2",
    }
    params = rows.param_columns(departure.table.action("address"))
    assert int(params["switch_ip"][0]) == 0x0A090909


def test_session_and_threshold_read_back(layout):
    session, congestion = Session(layout), Congestion(layout)
    entry = session.entry(7, PLAN)
    most = np.finfo(np.float32).max / np.float32(PLAN.manifest.max_fan_in)
    limit = np.uint32(entry.magnitude_limit).view(np.float32)
    assert limit <= most < np.nextafter(limit, np.float32(np.inf)) * (1 + 1e-6)
    assert entry == SessionEntry(
        *(7, PLAN.manifest.number, 0b111, entry.magnitude_limit), width=3, pool_slots=64, reduces=3
    )
    assert session.entry(7, PLAN, 1.5).magnitude_limit < np.float32(1.5).view(np.uint32)
    assert session.decode(session.encode(5, entry)) == {5: entry}
    thresholds = congestion.encode(Marking(32, 200), [3, 256])
    assert congestion.decode(thresholds) == dict.fromkeys((3, 256), Marking(32, 200))


@pytest.mark.parametrize(
    ("queue", "sums", "alone"),
    [(64, 10, 32), (64, 40, 40), (64, 1_000, 48), (8_192, 1_000, 1_000), (0, 1_000, 32)],
)
def test_the_sums_of_a_block_are_no_congestion_if_they_fit_into_most_of_a_queue(queue, sums, alone):
    assert marking(32, queue, sums) == Marking(32, alone)


def test_the_sums_at_once_are_those_of_one_worker_in_one_block():
    plan = make_plan(results=23)
    part = plan.switch
    both = Counter(zip(part.result_block.tolist(), part.result_worker.tolist(), strict=True))
    assert plan.sums_at_once == max(both.values()) > 1


STRAWMAN = load_strawman()
LAYOUT = Layout.from_text(STRAWMAN.p4info)


def strawman_plan(**changes):
    plan = make_plan(program=STRAWMAN.digest)
    return SwitchPlan(replace(plan.manifest, strawman=True, **changes), plan.switch)


def test_the_strawman_has_no_all_reduce():
    assert Session(LAYOUT).entry(1, strawman_plan()).reduces == 0


@pytest.mark.parametrize("slots", [8, 9, 15, 16, 81920])
def test_slots_are_split_to_the_last_one(slots):
    limits_table = SlotLimits(LAYOUT)
    *limits, age = limits_table.decode(limits_table.encode(slots)).values()
    assert (sum(limits), age) == (slots, 0)
    assert max(limits) - min(limits) <= 1


def test_an_install_sets_the_limits(client, network):
    install(strawman_plan(slots=21), [client], network, program=STRAWMAN)
    limits_table = SlotLimits(client.get_layout())
    assert sum(limits_table.decode(client.read_default(limits_table.table)).values()) == 21


def test_a_program_of_the_other_kind_is_refused(client, network, program):
    with pytest.raises(PlanRefusedError, match="This is the strawman's plan, but"):
        install(strawman_plan(), [client], network, program=program)
    with pytest.raises(PlanRefusedError, match="a slot for each destination, but"):
        install(make_plan(), [client], network, program=STRAWMAN)


def test_more_destinations_than_slots_are_installed_up_to_the_registers_size(client, network):
    room = SlotLimits(LAYOUT).destinations_per_bank
    assert room > LAYOUT.registers["bank0.value"].size
    plan = strawman_plan()

    def install_up_to(highest):
        slots = np.array([highest, *plan.switch.result_slot[1:]], np.uint32)
        switch = replace(plan.switch, result_slot=slots)
        install(SwitchPlan(plan.manifest, switch), [client], network, program=STRAWMAN)

    install_up_to(room - 1)
    with pytest.raises(PlanRefusedError, match=f"{room + 1:,} destinations in one bank"):
        install_up_to(room)


def test_overflows_are_counted_by_bank(fake, client, network):
    install(strawman_plan(), [client], network, program=STRAWMAN)
    fake.contents.counters = {("bank2.events", 4): 5}
    counters = read_counters(client)
    assert [bank.overflowed for bank in counters.banks] == [0, 0, 5, 0, 0, 0, 0, 0]
    assert counters.named()["slot_overflowed"] == 5
