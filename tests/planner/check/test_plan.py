# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The checker passes what the planner makes and refuses every mistake planted in it."""

import random
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from switchgnn.planner import graph_from_edges, write_plan
from switchgnn.planner.check.files import PlanCheckError
from switchgnn.planner.check.plan import check_plan, name_of_graph
from tests.planner.alterations import (
    ALTERATIONS,
    change_number,
    change_packets,
    contributions,
    double,
    drop,
    exchange,
    exchangeable,
    raise_count,
    share_slot,
    swap_owners,
)
from tests.planner.forgery import content_of, write_content
from tests.planner.helpers import (
    STEADY,
    one_sentence,
    plan_of,
    random_graph,
    reports,
    split_graphs,
    tuples,
)

# A mistake planted in each of so many places.
FEWER = settings(STEADY, max_examples=40)
PARTIAL = 2**31


@pytest.fixture(scope="module")
def graph():
    return random_graph(60, 300, 3, directed=True)


@pytest.fixture(scope="module")
def plan(graph):
    made = plan_of(graph, directions="both")
    assert made.manifest.blocks > 10
    return made


@pytest.fixture
def content(plan):
    return content_of(plan)


def refused(content, graph, folder=None):
    with tempfile.TemporaryDirectory() as temporary:
        written = write_content(content, folder or Path(temporary))
        with pytest.raises(PlanCheckError) as error:
            check_plan(written, graph)
    return one_sentence(error)


@STEADY
@given(split_graphs(), st.integers(2, 45), st.sampled_from(["forward", "both"]))
def test_what_the_planner_makes_is_right(split, slots, directions):
    graph, workers, assignment = split
    plan = plan_of(graph, workers, slots, assignment=assignment, directions=directions)
    with tempfile.TemporaryDirectory() as folder:
        write_plan(plan, Path(folder) / "plan")
        found = check_plan(Path(folder) / "plan", graph)
        assert check_plan(Path(folder) / "plan") == found
    assert found.packets == sum(len(part.send_source) for part in plan.workers)
    assert found.blocks == plan.manifest.blocks


@pytest.mark.parametrize("send", ["multicast", "cover"])
@pytest.mark.parametrize("blocks", ["mlgp", "destination", "destination-cover"])
@pytest.mark.parametrize("order", ["gamr", "bfs", "peel", "random"])
def test_plans_of_every_strategy_are_right(graph, tmp_path, send, blocks, order):
    options = {"send": send, "blocks": blocks, "order": order, "directions": "both"}
    write_plan(plan_of(graph, **options), tmp_path / "plan")
    assert check_plan(tmp_path / "plan", graph).edges


@STEADY
@given(
    split_graphs(),
    st.integers(16, 90),
    st.sampled_from([(8, 1), (64, 8), (64, 2), (128, 4), (256, 8)]),
)
def test_plans_of_wide_frames_are_right(split, slots, width):
    """Slots of several banks do not overlap, and blocks have room for as many as there are."""
    graph, workers, assignment = split
    lanes, banks = width
    wide = max(1, lanes // 32)
    plan = plan_of(graph, workers, slots, assignment=assignment, lanes=lanes, banks=banks)
    with tempfile.TemporaryDirectory() as folder:
        write_plan(plan, Path(folder) / "plan")
        check_plan(Path(folder) / "plan", graph)
    switch = plan.switch
    cells = [
        (block, bank + beside, slot)
        for block, bank, slot in tuples(switch.result_block, switch.result_bank, switch.result_slot)
        for beside in range(wide)
    ]
    assert len(set(cells)) == len(cells)
    assert all(bank < 8 for _, bank, _ in cells)
    assert max(np.bincount(switch.result_block), default=0) * wide <= slots
    assert np.all((switch.entry_expected > 0).sum(axis=1) <= banks // wide)


def test_a_wide_slot_that_begins_inside_of_another_is_found(graph, tmp_path):
    write_plan(plan_of(graph, lanes=64, slots=40), tmp_path / "plan")
    assert check_plan(tmp_path / "plan", graph).edges
    content = content_of(plan_of(graph, lanes=64, slots=40))
    content["manifest"]["lanes"] = 128
    assert "inside of another one" in refused(content, graph, tmp_path / "changed")


def other_edges(graph, assignment, draw, change):
    """The graph with one boundary edge removed, added or moved; None where there is none."""
    source, destination = graph.edges()
    pairs = list(tuples(source, destination))
    crossing = [pair for pair in pairs if assignment[pair[0]] != assignment[pair[1]]]
    taken = set(pairs)
    ids = range(graph.vertices)
    free = [
        (u, v) for u in ids for v in ids if assignment[u] != assignment[v] and (u, v) not in taken
    ]
    if (change != "add" and not crossing) or (change != "remove" and not free):
        return None
    if change != "add":
        pairs.remove(draw(st.sampled_from(crossing)))
    if change != "remove":
        pairs.append(draw(st.sampled_from(free)))
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return graph_from_edges(
        ends[:, 0], ends[:, 1], name="drawn", vertices=graph.vertices, directed=True
    )


@STEADY
@given(split_graphs(), st.sampled_from(["remove", "add", "move"]), st.data())
def test_a_plan_that_is_right_for_one_edge_less_more_or_elsewhere(split, change, data):
    """Everything in the plan agrees, predictions included; only the graph tells."""
    graph, workers, assignment = split
    other = other_edges(graph, assignment, data.draw, change)
    assume(other is not None)
    forged = content_of(plan_of(other, workers, 9, assignment=assignment))
    right = content_of(plan_of(graph, workers, 9, assignment=assignment))
    forged["manifest"]["graph"] = right["manifest"]["graph"]
    assert "edge" in refused(forged, graph)


@FEWER
@given(st.data())
def test_a_contribution_dropped(graph, plan, data):
    content = content_of(plan)
    entry, bank = data.draw(st.sampled_from(contributions(content["switch"]).tolist()))
    drop(content["switch"], entry, bank)
    refused(content, graph)


@FEWER
@given(st.data())
def test_a_contribution_doubled(graph, plan, data):
    content = content_of(plan)
    double(content, *data.draw(st.sampled_from(contributions(content["switch"]).tolist())))
    refused(content, graph)


@pytest.mark.parametrize("number", range(10))
def test_a_contribution_moved_to_another_slot(graph, content, tmp_path, number):
    """Two sources exchange a destination, so that every count stays right."""
    pairs = exchangeable(content["switch"])
    one, other, bank = pairs[number * len(pairs) // 10]
    exchange(content["switch"], one, other, bank)
    assert "edge" in refused(content, graph, tmp_path)


@FEWER
@given(st.data(), st.sampled_from([-1, 1]))
def test_a_count_that_is_wrong_everywhere(graph, plan, data, by):
    content = content_of(plan)
    switch = content["switch"]
    entry, bank = data.draw(st.sampled_from(contributions(switch).tolist()))
    assume(int(switch["entry_expected"][entry, bank]) + by > 0)
    block, slot = switch["entry_block"][entry], switch["entry_slot"][entry, bank]
    raise_count(content, block, bank, slot, by)
    refused(content, graph)


@FEWER
@given(st.data())
def test_one_changed_number_in_the_arrays(graph, plan, data):
    content = content_of(plan)
    where = data.draw(st.sampled_from([content["switch"], *content["workers"]]))
    names = [name for name, array in where.items() if array.size]
    array = where[data.draw(st.sampled_from(names))]
    at = np.unravel_index(data.draw(st.integers(0, array.size - 1)), array.shape)
    change_number(array, at)
    refused(content, graph)


def test_a_swapped_owner_is_found(content, graph, tmp_path):
    swap_owners(content)
    assert "owner" in refused(content, graph, tmp_path)


def test_a_packet_left_out_or_sent_twice_is_found(plan, graph, tmp_path):
    for change in ("left out", "twice"):
        content = content_of(plan)
        change_packets(content, 2, twice=change == "twice")
        assert "once each" in refused(content, graph, tmp_path / change)


def test_two_destinations_in_one_slot_are_found(content, graph, tmp_path):
    share_slot(content["switch"])
    assert "share a slot" in refused(content, graph, tmp_path)


def test_another_packet_than_the_switch_knows_in_this_block_is_found(content, graph, tmp_path):
    part = content["workers"][1]
    first = part["send_source"][0]
    other = np.flatnonzero(~np.isin(part["send_source"], part["send_source"][:3]))[0]
    assert part["send_source"][other] != first
    for name in ("send_source", "send_destination", "send_row"):
        part[name][0] = part[name][other]
    assert "once each" in refused(content, graph, tmp_path)


@pytest.mark.parametrize(
    "field",
    [
        "boundary_vertices",
        "boundary_edges",
        "contributions",
        "entries",
        "packets_up",
        "host_packets_down",
    ],
)
def test_a_wrong_prediction_is_found(content, graph, tmp_path, field):
    said = content["manifest"]["directions"]["backward"]["prediction"]
    if isinstance(said[field], list):
        said[field][0] += 1
    else:
        said[field] += 1
    assert f"wrong {field} of backward" in refused(content, graph, tmp_path)


def test_slots_beyond_the_memory_are_found(content, graph, tmp_path):
    content["manifest"]["slots"] = 8
    assert "slots_per_bank" in refused(content, graph, tmp_path)
    content["manifest"]["slots_per_bank"] = 1
    assert "slot" in refused(content, graph, tmp_path)


def test_blocks_without_a_direction_are_found(content, graph, tmp_path):
    del content["manifest"]["directions"]["backward"]
    assert "of no direction" in refused(content, graph, tmp_path)


@pytest.mark.parametrize("name", [*ALTERATIONS])
def test_alterations_are_found_without_the_graph(plan, name):
    content = content_of(plan)
    ALTERATIONS[name](content, random.Random(name))
    refused(content, None)


def test_directions_that_are_not_each_other_reversed_are_found(graph, tmp_path):
    """Without the graph: blocks for both directions of a graph that is none."""
    content = content_of(plan_of(graph, directions="forward"))
    directions = content["manifest"]["directions"]
    directions["backward"] = directions["forward"]
    write_content(content, tmp_path)
    with pytest.raises(PlanCheckError, match="backward: the switch serves the edge"):
        check_plan(tmp_path)


def test_a_strange_number_of_workers_is_refused(content, graph, tmp_path):
    for workers in (10**12, -1, 3, "x", None):
        content["manifest"]["workers"] = workers
        refused(content, graph, tmp_path)


def test_another_graph_is_refused(plan, tmp_path):
    write_plan(plan, tmp_path / "plan")
    with reports("is for graph random", kind=PlanCheckError):
        check_plan(tmp_path / "plan", random_graph(60, 300, 4, directed=True))


def test_changed_missing_and_strange_files_are_refused(plan, graph, tmp_path):
    folder = tmp_path / "plan"
    write_plan(plan, folder)
    assert check_plan(folder, graph).workers == 4
    assert name_of_graph(folder) == "random"
    data = (folder / "switch.safetensors").read_bytes()
    for change in (data[:-1], b"", data + b"x"):
        (folder / "switch.safetensors").write_bytes(change)
        with pytest.raises(PlanCheckError, match="was changed"):
            check_plan(folder, graph)
    (folder / "switch.safetensors").write_bytes(data)
    (folder / "notes.txt").write_text("words")
    with pytest.raises(PlanCheckError, match=r"notes\.txt"):
        check_plan(folder, graph)
    (folder / "notes.txt").unlink()
    (folder / "worker-001.safetensors").unlink()
    with pytest.raises(PlanCheckError, match="worker-001"):
        check_plan(folder, graph)
    with pytest.raises(PlanCheckError, match="cannot read"):
        check_plan(tmp_path / "nothing", graph)


def star():
    """0, 1 and 2 on worker 0, 3 and 4 on worker 1; 0, 1, 2 -> 3 and 2 -> 4."""
    ends = np.array([[0, 3], [1, 3], [2, 3], [2, 4]])
    return graph_from_edges(ends[:, 0], ends[:, 1], name="star", vertices=5, directed=True)


@pytest.fixture
def presummed():
    """Worker 0 sends 0 + 1 as one packet of Count 2, and 2 as it is."""
    content = content_of(
        plan_of(star(), 2, 8, assignment=np.array([0, 0, 0, 1, 1], dtype=np.int32))
    )
    three, four = content["switch"]["result_vertex"].tolist().index(3), None
    switch = content["switch"]
    four = 1 - three
    place = {
        vertex: (switch["result_bank"][at], switch["result_slot"][at])
        for vertex, at in ((3, three), (4, four))
    }
    slot, expected = np.zeros((2, 8), dtype=np.uint32), np.zeros((2, 8), dtype=np.uint16)
    for row, vertices in enumerate(([3, 4], [3])):
        for vertex in vertices:
            bank, where = place[vertex]
            slot[row, bank], expected[row, bank] = where, 3 if vertex == 3 else 1
    switch |= {
        "source_vertex": np.array([2, PARTIAL], dtype=np.uint32),
        "source_worker": np.array([0, 0], dtype=np.uint16),
        "entry_block": np.array([1, 1], dtype=np.uint16),
        "entry_source": np.array([2, PARTIAL], dtype=np.uint32),
        "entry_hop": np.array([0, 0], dtype=np.uint16),
        "entry_last": np.array([True, True]),
        "entry_slot": slot,
        "entry_expected": expected,
        "entry_count": np.array([1, 2], dtype=np.uint16),
    }
    content["workers"][0] |= {
        "send_indptr": np.array([0, 2]),
        "send_source": np.array([PARTIAL, 2], dtype=np.uint32),
        "send_destination": np.array([3, 0], dtype=np.uint32),
        "send_row_indptr": np.array([0, 2, 3]),
        "send_row": np.array([0, 1, 2]),
    }
    content["workers"][1]["send_row_indptr"] = np.array([0])
    said = content["manifest"]["directions"]["forward"]["prediction"]
    said["packets_up"] = [2, 0]
    said["entries"], said["passes"] = 1, 2
    said["contributions"] = 3
    return content


def test_packets_of_several_rows_are_understood(presummed, tmp_path):
    found = check_plan(write_content(presummed, tmp_path), star())
    assert (found.packets, found.sums, found.edges) == (2, 2, 4)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"entry_count": [1, 3]}, "its packets carry"),
        ({"entry_count": [2, 2]}, "its packets carry"),
        ({"send_row": [0, 0, 2]}, "twice"),
        ({"send_row": [0, 2, 2]}, "edge"),
        ({"send_row": [0, 1, 1]}, "send_row and send_source differ"),
        ({"send_row_indptr": [0, 1, 3]}, "one vertex"),
        ({"send_row": [0, 1, 3]}, "beyond its vertices"),
        ({"source_worker": [0, 1]}, "another worker only"),
        ({"send_destination": [4, 0]}, "names vertex 4, but the switch adds it for 3"),
        ({"send_destination": [3, 3]}, "names a destination"),
        ({"send_destination": [3]}, "send_destination has a wrong length"),
        ({"source_vertex": [2, PARTIAL + 1]}, "not among the sources"),
    ],
)
def test_wrong_packets_of_several_rows_are_found(presummed, tmp_path, change, part):
    for name, values in change.items():
        where = presummed["switch" if name in presummed["switch"] else "workers"]
        where = where[0] if isinstance(where, list) else where
        where[name] = np.array(values, dtype=where[name].dtype)
    assert part in refused(presummed, star(), tmp_path)


def test_missing_counts_are_refused(presummed, tmp_path):
    del presummed["switch"]["entry_count"]
    assert "no array entry_count" in refused(presummed, star(), tmp_path)


def test_plans_for_the_strawman_are_checked_but_for_their_slots(graph, tmp_path):
    plan = plan_of(graph, slots=8, blocks="strawman", order="random")
    write_plan(plan, tmp_path / "plan")
    assert check_plan(tmp_path / "plan", graph).blocks == 1
