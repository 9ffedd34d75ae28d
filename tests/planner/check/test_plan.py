"""The checker passes what the planner makes and refuses every mistake planted in it."""

import random
import tempfile
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, settings
from hypothesis import strategies as st

from switchgnn.planner import PlannerError, write_plan
from switchgnn.planner.check.plan import check_plan
from tests.planner import helpers
from tests.planner.alterations import ALTERATIONS
from tests.planner.forgery import content_of, write_content

PARTIAL = 2**31
GRAPH = helpers.random_graph(60, 300, 3, directed=True)
MANY = settings(helpers.STEADY, max_examples=150)


@pytest.fixture(scope="module")
def plan():
    made = helpers.plan_of(GRAPH, directions="both")
    assert made.manifest.blocks > 10
    return made


@pytest.fixture
def content(plan):
    return content_of(plan)


def refused(content, graph=GRAPH):
    with tempfile.TemporaryDirectory() as folder:
        write_content(content, Path(folder))
        return helpers.refusal_of(PlannerError, check_plan, folder, graph)


def checked(plan, graph):
    with tempfile.TemporaryDirectory() as folder:
        write_plan(plan, Path(folder) / "plan")
        found = check_plan(Path(folder) / "plan", graph)
        assert check_plan(Path(folder) / "plan") == found
    return found


@helpers.given(
    *(helpers.split_graphs(), st.integers(16, 90)),
    st.sampled_from([(8, 1), (64, 8), (64, 2), (128, 4), (256, 8)]),
    settings=helpers.FEWER,
)
def test_plans_of_wide_frames_are_right(split, slots, width):
    """Slots of several banks do not overlap, and blocks have room for as many as there are."""
    (graph, workers, assignment), (lanes, banks) = split, width
    wide = max(1, lanes // 32)
    plan = helpers.plan_of(graph, workers, slots, assignment=assignment, lanes=lanes, banks=banks)
    checked(plan, graph)
    switch = plan.switch
    where = helpers.tuples(switch.result_block, switch.result_bank, switch.result_slot)
    cells = [(block, bank + beside, slot) for block, bank, slot in where for beside in range(wide)]
    assert len(set(cells)) == len(cells)
    assert all(bank < 8 for _, bank, _ in cells)
    assert max(np.bincount(switch.result_block), default=0) * wide <= slots
    assert np.all((switch.entry_expected > 0).sum(axis=1) <= banks // wide)


@helpers.given(
    helpers.split_graphs(), st.integers(4, 90), st.integers(1, 4), settings=helpers.FEWER
)
def test_the_blocks_of_all_pools_fit_beside_each_other(split, slots, pools):
    """Blocks in flight together share no cell of a bank, and take no more slots than there are."""
    graph, workers, assignment = split
    options = {"assignment": assignment, "blocks": "destination", "pools": pools}
    plan = helpers.plan_of(graph, workers, slots, **options)
    checked(plan, graph)
    manifest, switch = plan.manifest, plan.switch
    assert manifest.slots_per_bank <= max(pools, -(-slots // 8))
    where = list(helpers.tuples(switch.result_block, switch.result_bank, switch.result_slot))
    for first in range(1, manifest.blocks + 1):
        cells = [
            (bank, block % pools * manifest.pool_slots + slot)
            for block, bank, slot in where
            if first <= block < first + pools
        ]
        assert len(set(cells)) == len(cells) <= slots
        assert all(slot < manifest.slots_per_bank for _, slot in cells)


def test_a_block_beyond_its_pool_is_found():
    content = content_of(helpers.plan_of(GRAPH, slots=8, blocks="destination"))
    content["manifest"] |= {"slots": 12, "slots_per_bank": 2, "pools": 2}
    assert "8 destinations for 6 slots of a pool" in refused(content)
    content["manifest"]["pools"] = 5
    assert "5 pools" in refused(content)


def test_a_wide_slot_that_begins_inside_of_another_is_found():
    content = content_of(helpers.plan_of(GRAPH, lanes=64, slots=40))
    content["manifest"]["lanes"] = 128
    assert "inside another one" in refused(content)


def other_edges(graph, assignment, draw, change):
    """The graph with one boundary edge removed, added or moved; None where there is none."""
    pairs, ids = list(helpers.tuples(*graph.edges())), range(graph.vertices)
    crossing = [(u, v) for u, v in pairs if assignment[u] != assignment[v]]
    free = {(u, v) for u, v in product(ids, ids) if assignment[u] != assignment[v]} - set(pairs)
    if (change != "add" and not crossing) or (change != "remove" and not free):
        return None
    if change != "add":
        pairs.remove(draw(st.sampled_from(crossing)))
    if change != "remove":
        pairs.append(draw(st.sampled_from(sorted(free))))
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return helpers.graph_of(*ends, len(ids), directed=True)


@helpers.given(helpers.split_graphs(), st.sampled_from(["remove", "add", "move"]), st.data())
def test_a_plan_that_is_right_for_one_edge_less_more_or_elsewhere(split, change, data):
    """Everything in the plan agrees, predictions included; only the graph tells."""
    graph, workers, assignment = split
    other = other_edges(graph, assignment, data.draw, change)
    assume(other is not None)
    forged = content_of(helpers.plan_of(other, workers, 9, assignment=assignment))
    right = content_of(helpers.plan_of(graph, workers, 9, assignment=assignment))
    forged["manifest"]["graph"] = right["manifest"]["graph"]
    assert "edge" in refused(forged, graph)


NAMED = {
    "a contribution moved": "edge",
    "owners swapped": "owner",
    "a packet left out": "once each",
    "a packet sent twice": "once each",
    "a slot shared": "share a slot",
}


@pytest.mark.whole
@helpers.given(st.sampled_from([*ALTERATIONS]), st.integers(0, 2**32), st.booleans(), settings=MANY)
def test_alterations_are_found(plan, name, seed, known):
    content = content_of(plan)
    ALTERATIONS[name](content, random.Random(seed))
    message = refused(content, GRAPH if known else None)
    assert not known or NAMED.get(name, "") in message


def test_another_packet_than_the_switch_knows_in_this_block_is_found(content):
    part = content["workers"][1]
    other = np.flatnonzero(~np.isin(part["send_source"], part["send_source"][:3]))[0]
    for name in ("send_source", "send_destination", "send_row"):
        part[name][0] = part[name][other]
    assert "once each" in refused(content)


def test_a_wrong_prediction_is_found(plan):
    single = ("boundary_vertices", "boundary_edges", "contributions", "entries")
    for field in (*single, "packets_up", "host_packets_down"):
        content = content_of(plan)
        said = content["manifest"]["directions"]["backward"]["prediction"]
        said[field] = said[field] + 1 if field in single else [said[field][0] + 1, *said[field][1:]]
        assert f"wrong {field} of backward" in refused(content)
    content = content_of(plan)
    content["manifest"]["max_fan_in"] += 1
    assert "wrong max_fan_in" in refused(content)


def test_slots_beyond_the_memory_are_found(content):
    content["manifest"]["slots"] = 8
    assert "slots_per_bank" in refused(content)
    content["manifest"]["slots_per_bank"] = 1
    assert "slot" in refused(content)


def test_blocks_of_no_direction_or_of_a_wrong_one_are_found(content):
    del content["manifest"]["directions"]["backward"]
    assert "of no direction" in refused(content)
    # Without the graph: blocks for both directions of a graph that is none.
    content = content_of(helpers.plan_of(GRAPH, directions="forward"))
    directions = content["manifest"]["directions"]
    directions["backward"] = directions["forward"]
    assert "is served by no packet" in refused(content, None)


def test_a_strange_number_of_workers_is_refused(content):
    for workers in (10**12, -1, 3, "x", None):
        content["manifest"]["workers"] = workers
        refused(content)


def test_the_plan_of_another_graph_is_refused(plan):
    assert check_plan(plan, GRAPH).workers == 4
    with helpers.reports("is for graph random"):
        check_plan(plan, helpers.random_graph(60, 300, 4, directed=True))


# 0, 1 and 2 on worker 0, 3 and 4 on worker 1; 0, 1, 2 -> 3 and 2 -> 4.
STAR = helpers.graph_of([0, 1, 2, 2], [3, 3, 3, 4], 5, directed=True)


@pytest.fixture
def presummed(monkeypatch):
    """Worker 0 sends 2 as it is, and then 0 + 1 as one packet of Count 2."""
    known = {"mine": lambda boundary, block, weight: boundary.source == 2}
    monkeypatch.setattr("switchgnn.planner.build.SEND_STRATEGIES", known)
    options = {"assignment": np.array([0, 0, 0, 1, 1]), "send": "mine", "order": "random"}
    content = content_of(helpers.plan_of(STAR, 2, 8, **options))
    assert content["workers"][0]["send_source"].tolist() == [2, PARTIAL]
    return content


def test_packets_of_several_rows_are_understood(presummed, tmp_path):
    found = check_plan(write_content(presummed, tmp_path), STAR)
    assert (found.packets, found.sums, found.edges) == (2, 2, 4)
    del presummed["switch"]["entry_count"]
    assert "no array entry_count" in refused(presummed, STAR)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"entry_count": [1, 3]}, "its packets carry"),
        ({"entry_count": [2, 2]}, "its packets carry"),
        ({"send_row": [2, 0, 0]}, "expects the edge 1->3 in block 1"),
        ({"send_row": [2, 0, 2]}, "edge"),
        ({"send_row": [1, 0, 1]}, "send_row and send_source differ"),
        ({"send_row_indptr": [0, 2, 3]}, "one vertex"),
        ({"send_row": [3, 0, 1]}, "send_row: it has numbers outside 0..2"),
        ({"source_worker": [0, 0, 0, 1]}, "another worker only"),
        ({"send_destination": [0, 4]}, "names the destination 4, but should name 3"),
        ({"send_destination": [3, 3]}, "names the destination 3, but should name 0"),
        ({"send_destination": [3]}, "send_destination: it has the shape [1], not [2]"),
        ({"source_vertex": [0, 1, 2, PARTIAL + 1]}, "not among the sources"),
    ],
)
def test_wrong_packets_of_several_rows_are_found(presummed, change, part):
    for name, values in change.items():
        where = next(it for it in (presummed["switch"], presummed["workers"][0]) if name in it)
        where[name] = np.array(values, dtype=where[name].dtype)
    assert part in refused(presummed, STAR)


def test_plans_for_the_strawman_are_checked_but_for_their_slots():
    plan = helpers.plan_of(GRAPH, slots=8, blocks="strawman", order="random")
    assert checked(plan, GRAPH).blocks == 1
