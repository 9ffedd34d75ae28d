"""Vertex cuts: sums return to all that contribute to them, or hosts gather and scatter them."""

import numpy as np
import pytest

from switchgnn.host.direct.kinds import copies
from switchgnn.host.direct.schedule import count_rows
from switchgnn.lab.simulator.request import LeafSpineOptions, NetworkOptions, SimulatorError
from switchgnn.lab.simulator.setup import host_setup, plan_setup
from switchgnn.lab.simulator.simulation import one_after_another, run_simulation
from switchgnn.planner import Direction, boundary_edges, write_plan
from switchgnn.planner.costs.forecast import host_rounds
from switchgnn.planner.costs.seconds import NetworkModel, plan_seconds
from switchgnn.planner.partition.vertex_cut import cut_graph
from tests.planner.helpers import graph_of
from tests.support.markers import covering

from .scenes import ACK, BARRIER, DELAY, FEATURE, PACKED
from .test_command import as_json, simulate
from .test_predictions import graph_for, made_plan

NETWORK = NetworkOptions()
DIGITS = ["--graph", "digits", "--workers", 8]
CUT = ["--partition", "vertex-cut", "--memory", "20kB"]


@pytest.mark.parametrize("fragments", [1, 3])
def test_a_shared_vertex_is_one_frame_up_and_one_down(fragments):
    """The centre of a star of three edges, one at each worker."""
    star = graph_of([0, 0, 0], [1, 2, 3], 4)
    graph = cut_graph(star, 3, (np.maximum(*star.edges()) - 1).astype(np.uint8))
    plan = made_plan(graph, "best", 3, 2_000, 32, partition="vertex-cut")
    run = run_simulation(plan_setup(plan, fragments), NETWORK)
    assert run.features_up == run.sums_down == (fragments,) * 3
    assert (run.loop_passes, run.sums) == (0, fragments)
    # Two of three are acknowledged before the sum, which is the acknowledgement of the last.
    assert sorted(run.frames_down) == [2 * fragments, 3 * fragments, 3 * fragments]
    taken = FEATURE + ACK + FEATURE + 2 * BARRIER + 4 * DELAY
    assert run.seconds * 1e12 == pytest.approx(fragments * taken)
    predicted = plan_seconds(plan, Direction.FORWARD, 32 * fragments, NetworkModel())
    assert predicted * 1e12 == pytest.approx(fragments * taken)


@pytest.mark.parametrize(
    ("name", "memory", "pools", "lanes"),
    covering(["digits", "karate"], [10_000, 1_000_000], [1, 4], [32, 64]),
)
def test_bytes_are_those_that_the_plan_counts(name, memory, pools, lanes):
    plan = made_plan(name, "best", 5, memory, lanes, pools, partition="vertex-cut")
    counted, fragments = plan.manifest.direction(Direction.FORWARD).prediction, 2
    run = run_simulation(
        plan_setup(plan, fragments, lanes=(lanes,) * fragments),
        NetworkOptions(recirculation_rate=1e9, window=20),
    )
    assert run.features_up == tuple(fragments * each for each in counted.packets_up)
    assert run.sums_down == tuple(fragments * each for each in counted.packets_down)
    assert counted.packets_up == counted.packets_down
    assert (run.loop_passes, run.passes) == (0, sum(run.features_up))
    frame, barriers = 60 + 4 * lanes, 88 * run.barriers
    assert run.bytes_up == tuple(frame * each + barriers for each in run.features_up)
    acks = np.array(run.frames_down) - run.sums_down - run.barriers
    # At least one in two is the last contribution to a sum of two replicas.
    assert 0 < acks.sum() < run.passes / 8 + 5 * run.barriers
    assert run.bytes_down == tuple(np.array(run.bytes_up) + 60 * acks)


def test_lost_sums_are_recalled():
    plan = made_plan("digits", "best", 8, 10_000_000, 32, partition="vertex-cut")
    run = run_simulation(plan_setup(plan, 4), NetworkOptions(buffer=400, ecn_threshold=None))
    assert run.lost > 0
    predicted = plan.manifest.direction(Direction.FORWARD).prediction.packets_down
    assert sum(run.sums_down) == 4 * sum(predicted) + run.sent_again - run.lost


def test_each_leaf_gathers_its_replicas_first():
    plan = made_plan("digits", "best", 8, 10_000_000, 32, partition="vertex-cut")
    network = LeafSpineOptions(leaves=4, spines=2)
    over = run_simulation(plan_setup(plan, 1, leaf_spine=network), NETWORK, leaf_spine=network)
    around = run_simulation(plan_setup(plan, 1), NETWORK)
    assert (over.features_up, over.sums_down) == (around.features_up, around.sums_down)
    graph = graph_for("digits", 8, "vertex-cut")
    of_leaf = np.zeros((graph.masters, 4), dtype=bool)
    of_leaf[graph.vertex, graph.worker // 2] = True
    several = of_leaf.sum(axis=1)
    crossing = int(several[several > 1].sum())
    assert sum(over.inside.sums_up) == crossing
    # As many come down again, the sum once for each of these leaves, and barriers.
    assert sum(over.inside.frames_down) == crossing + 4 * over.barriers
    with pytest.raises(SimulatorError, match="completed by spines"):
        plan_setup(plan, 1, leaf_spine=LeafSpineOptions(4, 2, completion="leaf"))


def test_hosts_gather_and_then_scatter():
    graph = graph_for("digits", 8, "vertex-cut")
    runs = []
    for edges in host_rounds(boundary_edges(graph, graph.worker)):
        rows = count_rows(edges, 8, copies).rows
        assert rows.sum() == graph.vertices - graph.masters
        runs.append(run_simulation(host_setup(rows, 128, NETWORK.pace, PACKED), NETWORK))
    told = as_json(*DIGITS, "--system", "cdfgnn")
    assert told["exchange_seconds"] == told["backward_seconds"]
    assert told["exchange_seconds"] == pytest.approx(sum(it.seconds for it in runs))
    assert told["bytes"] == sum(sum(it.bytes_up) + sum(it.bytes_down) for it in runs)
    joined = one_after_another(*runs)
    assert joined.max_queue_bytes == max(it.max_queue_bytes for it in runs)
    assert joined.series.seconds[-1] <= joined.seconds
    assert joined.series.link_bytes[-1] <= told["bytes"]


def test_auto_cuts_vertices_where_that_is_faster():
    rest = ["--graph", "yelp-like:0.002:0", "--workers", 8, "--memory", "20kB", "--delay", 0.1]
    free, metis = (
        as_json(*rest, "--system", "auto", *asked) for asked in ([], ["--partition", "metis"])
    )
    cut = as_json(*rest, "--system", "best", "--partition", "vertex-cut")
    assert (free["chosen"], metis["chosen"]) == ("switch", "host-partial")
    assert free["exchange_seconds"] == cut["exchange_seconds"] < metis["exchange_seconds"]


def test_a_plan_in_a_folder_is_simulated_with_its_graph(tmp_path):
    plan = made_plan("digits", "best", 8, 20_000, 32, partition="vertex-cut")
    write_plan(plan, tmp_path / "plan")
    read = as_json("--plan", tmp_path / "plan")
    made = as_json(*DIGITS, "--system", "best", *CUT, "--pools", 1)
    for name in ("exchange_seconds", "epoch_seconds", "bytes"):
        assert read[name] == made[name]
    hosts = as_json("--plan", tmp_path / "plan", "--system", "cdfgnn")
    assert hosts["bytes"] == as_json(*DIGITS, "--system", "cdfgnn")["bytes"]
    auto = as_json("--plan", tmp_path / "plan", "--system", "auto")
    assert set(auto["predicted_seconds"]) == {"switch", "host-partial", "host"}


@pytest.mark.parametrize(
    ("system", "asked", "why"),
    [
        ("cdfgnn", ["--partition", "metis"], "cdfgnn cuts vertices"),
        ("bns-gcn", ["--partition", "vertex-cut"], "bns-gcn cuts edges"),
        ("strawman", ["--partition", "vertex-cut-hdrf"], "strawman cuts edges"),
        ("cdfgnn", ["--sampling", "0.5"], "sends all rows"),
        ("best", ["--partition", "vertex-cut", "--sampling", "0.5"], "sends all sums"),
        ("cdfgnn", ["--background-load", "0.1"], "no background"),
    ],
)
def test_what_a_vertex_cut_has_no_model_for_is_refused(system, asked, why):
    with pytest.raises(SimulatorError, match=why):
        simulate(*DIGITS, "--memory", "20kB", "--system", system, *asked)
