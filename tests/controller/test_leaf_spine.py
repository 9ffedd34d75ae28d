"""What leaves and spines are told, and how they are told together or not at all."""

import numpy as np
import pytest

from switchgnn import controller
from switchgnn.controller.base.place import ALONE
from switchgnn.controller.controls.access import Destination, Partial, Source
from switchgnn.controller.controls.fanout import Fanout
from switchgnn.controller.controls.forward import Forward
from switchgnn.controller.controls.job import WorkerPorts
from switchgnn.controller.controls.loop import Result, multicast_groups, result_group
from switchgnn.controller.controls.rewrite import Rewrite
from switchgnn.controller.controls.session import Session, Tier
from switchgnn.planner import build_plan, load_graph, write_plan
from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from switchgnn.planner.plan.leaf_spine import split_for_leaf_spine
from tests.controller.plans import run

# Workers 0 to 2 are on leaf 0, ports 1 to 3; the spines are on its ports 4 and 5.
LEAF_SPINE = even_leaf_spine(5, 2, 2)
NETWORKS = controller.leaf_spine_networks(LEAF_SPINE.leaf_of_worker, LEAF_SPINE.spines)


@pytest.fixture(scope="module")
def plans(program):
    """Plans of the leaves, then of the spines."""
    plan = build_plan(load_graph("karate"), workers=5, slots=16, program=program.digest)
    parts = split_for_leaf_spine(plan, LEAF_SPINE)
    return [controller.leaf_spine_switch_plan(plan.manifest, part) for part in parts.switches]


def test_networks_fit_together():
    leaf, spine = NETWORKS.leaves[1], NETWORKS.spines[1]
    assert [each.port for each in leaf.neighbours] == [1, 2, 3, 4]
    assert leaf.neighbours[3].station.mac == spine.switch.mac
    assert spine.neighbours[1].station.mac == leaf.switch.mac
    assert NETWORKS.positions == ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1))
    # Workers elsewhere are behind a spine; to a spine all are behind their leaf.
    assert {each.port for each in leaf.beyond} == {3, 4}
    assert len(leaf.beyond) == 3
    assert [each.port for each in spine.beyond] == [1, 1, 1, 2, 2]


def test_an_all_reduce_awaits_the_workers_below_a_leaf_and_all_at_a_spine(plans, layout):
    assert [Session(layout).entry(1, plan).reduces for plan in plans] == [3, 2, 5, 5]


def test_a_leaf_has_workers_below_and_spines_above(plans, layout):
    leaf, network = plans[1], NETWORKS.leaves[1]
    worker = WorkerPorts(layout)
    assert worker.records(worker.rows(leaf, network)) == [
        {"port": port, "job": 1, "worker": behind}
        for port, behind in enumerate((3, 4, "above", "above"), 1)
    ]
    assert Session(layout).entry(1, leaf).members == 0b11000
    tier = Tier(layout)
    assert tier.records(tier.rows(leaf, network)) == [
        {"job": 1, "above": 3, "number": 1, "elsewhere": f"{0b00111:x}", "leaves": 0}
    ]
    groups = multicast_groups(leaf, network)
    assert groups[ALONE.workers_group] == (1, 2)
    assert groups[ALONE.workers_group + 1] == (1, 2, 3)
    assert groups[result_group(4)] == (4, 256)
    assert len(Rewrite(layout).rows(leaf, network)) == 4


def test_a_spine_has_leaves_with_their_workers(plans, layout):
    spine, network = plans[2], NETWORKS.spines[0]
    worker = WorkerPorts(layout)
    rows = worker.rows(spine, network)
    assert worker.records(rows) == [{"port": w + 1, "job": 1, "worker": w} for w in range(2)]
    bits = rows.param_columns(worker.table.action("set_worker"))["worker_bit"]
    assert list(bits) == [0b00111, 0b11000]
    assert Session(layout).entry(1, spine).members == 0b11111
    tier = Tier(layout)
    values = {"job": 1, "above": 0, "number": 0, "elsewhere": "0", "leaves": 1}
    assert tier.records(tier.rows(spine, network)) == [values]
    assert ALONE.workers_group + 1 not in multicast_groups(spine, network)


def test_a_spine_that_hears_no_barrier_takes_all_turns(plans, layout):
    turns = [Session(layout).entry(1, plan).any_tag for plan in plans]
    first_spine = next(at for at, plan in enumerate(plans) if not plan.above)
    assert turns == [int(at > first_spine) for at in range(len(plans))]
    assert any(turns)


def test_parts_go_up_and_sums_to_workers(plans, layout):
    leaf, network = plans[0], NETWORKS.leaves[0]
    result = Result(layout)
    rows = result.rows(leaf, network)
    partial = result.table.action("set_partial")
    up = rows.action_ids == partial.id
    columns, sent_up = rows.param_columns(partial), leaf.part.result_partial > 0
    assert set(columns["port"][up]) <= {4, 5}
    whole = rows.param_columns(result.table.action("set_result"))
    assert set(whole["port"][~up]) <= {1, 2, 3}
    assert sorted(columns["source"][up]) == sorted(leaf.part.result_partial[sent_up])
    assert sorted(columns["vertex"][up]) == sorted(leaf.part.switch.result_vertex[sent_up])
    spine = Result(layout).rows(plans[2], NETWORKS.spines[0])
    assert not (spine.action_ids == partial.id).any()


def test_a_spine_takes_parts_from_the_leaves_that_have_one(plans, layout):
    spine, control = plans[2], Partial(layout)
    part, switch = spine.part, spine.part.switch
    slots = zip(switch.result_block, switch.result_bank, switch.result_slot, strict=True)
    vertex = dict(zip(slots, switch.result_vertex.tolist(), strict=True))
    leaf_of = dict(zip(switch.source_vertex.tolist(), switch.source_worker.tolist(), strict=True))
    expected = dict.fromkeys(zip(part.route_block, part.route_vertex, strict=True), 0)
    for entry, bank in zip(*np.nonzero(switch.entry_expected), strict=True):
        block = switch.entry_block[entry]
        leaf = leaf_of[int(switch.entry_source[entry])]
        expected[block, vertex[block, bank, switch.entry_slot[entry, bank]]] |= part.members[leaf]
    records = control.records(control.rows(spine))
    found = {(each["block_id"], each["dst_id"]): int(each["senders"], 16) for each in records}
    assert found == expected
    assert {number.bit_count() for number in expected.values()} == {2, 3, 5}
    assert Fanout(layout).count(spine) == 0


def test_destinations_say_who_completes_them(plans, layout):
    leaf, network = plans[0], NETWORKS.leaves[0]
    rows = Destination(layout).rows(leaf, network)
    distant = Destination(layout).table.action("set_distant")
    far = rows.action_ids == distant.id
    columns = rows.param_columns(distant)
    part = leaf.part
    assert len(rows) == len(part.route_block)
    assert far.sum() == (part.route_above != 65535).sum()
    assert set(columns["above"][far]) == {4, 5}
    # A slot of none is expected to hold nothing.
    assert (columns["expected"] == 0).sum() == (part.route_result < 0).sum()


def test_sources_of_other_leaves_are_not_known(plans, layout):
    source = Source(layout)
    rows = source.rows(plans[0], NETWORKS.leaves[0])
    assert set(rows.param_columns(source.table.action("set_source"))["port"]) <= {1, 2, 3}


def test_broadcasts_go_up_once(plans, layout):
    forward = Forward(layout)
    leaf, spine = (plans[0], NETWORKS.leaves[0]), (plans[2], NETWORKS.spines[0])
    for plan, network, action in ((*leaf, "flood_stations"), (*spine, "flood")):
        rows = forward.rows(plan, network)
        assert (rows.action_ids == forward.table.action(action).id).sum() == 1
        assert len(rows) == len(network.neighbours) + len(network.beyond) + 1


def test_install_from_the_command_line(tmp_path, fake, other_fake, program):
    plan = build_plan(load_graph("karate"), workers=3, slots=16, program=program.digest)
    write_plan(plan, tmp_path / "plan")
    addresses = [f"--address={each.address}" for each in (fake, other_fake)]
    topology = ["--leaves=1", "--spines=1"]
    result = run("install", tmp_path / "plan", *topology, *addresses)
    assert result.exit_code == 0, result.output
    with controller.P4RuntimeClient(other_fake.address, primary=False) as client:
        (leaf,) = controller.show_entries(client, "worker")
    assert leaf == {"port": 1, "job": 1, "worker": 0}
    error = run("install", tmp_path / "plan", "--leaves=2", "--address=127.0.0.1:1").exception
    assert "--leaves 2 and --spines 1 need 3 addresses" in str(error)
