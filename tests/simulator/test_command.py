"""`switchgnn simulate` as a user runs it."""

import json

import numpy as np
import pytest
import scipy.sparse
from typer.testing import CliRunner

from switchgnn.base.errors import SwitchGNNError
from switchgnn.commands.application import app
from switchgnn.lab.simulator.job import compute_seconds
from switchgnn.planner import load_graph, write_plan
from switchgnn.planner.partition.g3 import g3

from .scenes import planned

GRAPH = ["--graph", "karate", "--workers", "4"]
KEYS = {"epoch_seconds", "communication_seconds", "bytes", "max_queue_bytes", "max_slots"}
KEYS |= {"aggregation_bits_per_second", "events", "wall_seconds"}


def simulate(*arguments):
    result = CliRunner().invoke(app, ["simulate", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def as_json(*arguments):
    result = simulate(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plans") / "karate-plan"
    write_plan(planned(load_graph("karate"), workers=4, slots=16), folder)
    return folder


@pytest.mark.parametrize("system", ["bns-gcn", "host-partial", "g3", "strawman", "paper", "best"])
def test_every_system_gives_the_same_numbers(system):
    told = as_json(*GRAPH, "--memory", "2kB", "--system", system, "--layers", 3)
    assert told.keys() >= KEYS
    assert told["system"] == system
    assert told["communication_seconds"] == pytest.approx(5 * told["exchange_seconds"])
    total = told["communication_seconds"] + told["compute_seconds"]
    assert told["epoch_seconds"] == pytest.approx(total)
    assert told["overlapped_seconds"] == 0
    rate = told["total_bits_per_second"] * told["exchange_seconds"] / 8
    acks = sum(told["frames_down"]) - sum(told["sums_down"]) - sum(told["features_down"])
    barriers = 4 * told["barriers"]
    assert rate == pytest.approx(sum(told["bytes_down"]) - 60 * (acks - barriers) - 88 * barriers)
    assert told["bins"] == (1 if system == "g3" else 0)
    assert told["exchange_seconds"] >= told["busiest_link_seconds"] > 0
    assert told["bytes"] == sum(told["bytes_up"]) + sum(told["bytes_down"])
    hosts_alone = system in ("bns-gcn", "host-partial", "g3")
    assert told["slots"] == (0 if hosts_alone else 15)
    assert (told["sums"] > 0) != hosts_alone
    assert (told["overflowed"] > 0) == (system == "strawman")


def test_a_plan_is_simulated_as_it_is(folder):
    told = as_json("--plan", folder)
    made = as_json(*GRAPH, "--memory", "2048", "--system", "paper")
    assert (told["system"], made["system"]) == ("plan", "paper")
    # Only the digest of the program differs, and with it that of the plan.
    assert numbers_of(told) == {**numbers_of(made), "system": "plan"}


@pytest.mark.parametrize("system", ["bns-gcn", "host-partial", "g3", "strawman", "paper", "best"])
def test_one_worker_alone_exchanges_nothing(system):
    told = as_json("--graph", "karate", "--workers", 1, "--system", system)
    assert told["aggregation_bits_per_second"] == told["sums"] == sum(told["features_up"]) == 0
    arguments = ("--topology", "leaf-spine", "--leaves", 1, "--spines", 2)
    told = as_json("--graph", "karate", "--workers", 1, "--system", system, *arguments)
    assert told["sums"] == told["partial_sums"] == 0


@pytest.mark.parametrize("system", ["bns-gcn", "host-partial", "strawman", "paper", "best"])
def test_a_leaf_spine_tells_of_both_tiers(system):
    tiers = {"leaves", "spines", "completion", "partial_sums", "leaf_spine_links"}
    tiers |= {"host_link_bytes", "leaf_spine_bytes"}
    arguments = [*GRAPH, "--memory", "2kB", "--system", system]
    star = as_json(*arguments)
    told = as_json(*arguments, "--topology", "leaf-spine", "--leaves", 2, "--spines", 3)
    assert set(told) - set(star) == tiers
    assert set(star) < set(told)
    assert (told["leaves"], told["spines"]) == (2, 3)
    links = told["leaf_spine_links"]
    assert {len(values) for values in links.values()} == {2 * 3}
    assert told["leaf_spine_bytes"] == sum(links["bytes_up"]) + sum(links["bytes_down"])
    assert told["host_link_bytes"] == sum(told["bytes_up"]) + sum(told["bytes_down"])
    assert told["bytes"] == told["host_link_bytes"] + told["leaf_spine_bytes"]
    assert told["partial_sums"] == sum(links["sums_up"])
    every = (told["bytes_up"], told["bytes_down"], links["bytes_up"], links["bytes_down"])
    assert told["busiest_link_seconds"] == pytest.approx(max(map(max, every)) * 8e-11)


@pytest.mark.parametrize("system", ["strawman", "best"])
def test_systems_over_the_switch_have_no_mtu(system):
    arguments = [*GRAPH, "--memory", "2kB", "--system", system]
    first, second = (as_json(*arguments, "--mtu", each) for each in (9000, "fragment"))
    assert (first.pop("mtu"), second.pop("mtu")) == (9000, "fragment")
    assert numbers_of(first) == numbers_of(second)


def test_leaves_complete_sums_only_when_asked_to():
    arguments = [*GRAPH, "--memory=2kB", "--system=paper", "--topology=leaf-spine", "--leaves=2"]
    words = ([], ["--completion", "spine"], ["--completion", "leaf"])
    told, asked, other = (as_json(*arguments, *more) for more in words)
    assert [each["completion"] for each in (told, asked, other)] == ["spine", "spine", "leaf"]
    assert numbers_of(told) == numbers_of(asked)
    # The part of the destination's own leaf need not go up.
    assert other["partial_sums"] < told["partial_sums"]
    assert other["sums_down"] == told["sums_down"]
    shown = simulate(*arguments, "--completion", "leaf").stdout
    assert "on 2 leaves with 8 spines, leaves complete sums" in shown


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("GRAPH paper --topology=leaf-spine", "8 leaves are too many for 4 workers"),
        ("PLAN --topology=leaf-spine", "8 leaves are too many for 4 workers"),
        ("GRAPH paper --topology=leaf-spine --leaves=2 --background-load=0.1", "in a star only"),
        ("GRAPH paper --leaves=2", "need --topology leaf-spine"),
        ("GRAPH paper --completion=leaf", "need --topology leaf-spine"),
        (
            "GRAPH paper --topology=leaf-spine --leaves=2 --completion=core",
            "No completion 'core'; known: spine, leaf",
        ),
        ("GRAPH paper --topology=ring", "No topology 'ring'"),
        ("GRAPH pipegcn", "No system 'pipegcn'; known: bns-gcn, host-partial, g3"),
        ("GRAPH paper --memory=much", "Cannot read --memory much"),
        ("GRAPH paper --memory=128", "needs 2 slots"),
        ("GRAPH paper --bandwidth=0", "bandwidth must be above 0"),
        ("GRAPH paper --buffer=100", "hold a frame of 188 bytes"),
        ("GRAPH bns-gcn --buffer=1511", "hold a frame of 1512 bytes"),
        ("GRAPH bns-gcn --mtu=49", "choose 50 to 9,202, or fragment"),
        ("GRAPH paper --phases", "Only hosts alone send in phases"),
        ("PLAN --phases", "Only hosts alone send in phases"),
        ("GRAPH strawman --buffer=188", "give a larger buffer"),
        ("--plan=nowhere", "nowhere is not a plan"),
        ("PLAN --order=random", "its own strategies"),
        ("PLAN --system=paper", "but not as paper"),
        ("GRAPH bns-gcn --blocks=mlgp", "bns-gcn has no blocks to choose: .*only --partition"),
        ("GRAPH g3 --order=gamr", "g3 has no order to choose"),
        ("GRAPH host-partial --send=cover", "host-partial has no send .*only --partition"),
        ("GRAPH strawman --send=cover", "strawman has no send .*--partition and --order can"),
        ("GRAPH paper --order=upward", "No order strategy 'upward'"),
        ("GRAPH bns-gcn --partition=cake", "No partition strategy 'cake'"),
        ("GRAPH paper --bin-size=3", "Only g3 has bins"),
        ("GRAPH best --assignment=nowhere", "nowhere cannot be read"),
        ("GRAPH paper --features=128 --slot-features=64", "64 numbers does not hold a feature of"),
        ("GRAPH paper --lanes=12", "No frames of '12' numbers"),
        ("GRAPH bns-gcn --lanes=64", "leave --lanes, --rows and"),
        ("GRAPH g3 --pools=2", "--rows and --pools out"),
        ("GRAPH g3 --rows=2", "--rows and --pools out"),
        ("GRAPH strawman --rows=2", "slots to single rows"),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_a_sentence(words, told, folder):
    words = words.replace("GRAPH ", "--graph=karate --workers=4 --system=")
    with pytest.raises(SwitchGNNError, match=told):
        simulate(*words.replace("PLAN", f"--plan={folder}").split())


def numbers_of(told):
    changing = ("plan", "wall_seconds", "events_per_second", "peak_memory_bytes")
    return {name: it for name, it in told.items() if name not in changing}


@pytest.mark.parametrize("system", ["bns-gcn", "host-partial", "g3", "strawman", "paper", "best"])
def test_a_partition_in_a_file_is_as_good_as_its_name(system, tmp_path):
    np.save(tmp_path / "workers.npy", g3(load_graph("karate"), 4, 0))
    common = [*GRAPH, "--memory", "2kB", "--system", system]
    named = as_json(*common, "--partition", "g3")
    given = as_json(*common, "--assignment", tmp_path / "workers.npy")
    assert numbers_of(named) == numbers_of(given)
    if system != "g3":
        assert named["bytes_up"] != as_json(*common)["bytes_up"]


def test_strategies_take_the_place_of_the_systems(tmp_path):
    asked = {"partition": "chunk", "blocks": "destination", "send": "cover", "order": "bfs"}
    asked |= {"rows": 4, "pools": 2}
    words = [word for part, name in asked.items() for word in (f"--{part}", name)]
    write_plan(planned(load_graph("karate"), workers=4, slots=16, **asked), tmp_path / "plan")
    told = as_json(*GRAPH, "--memory", "2048", "--system", "best", *words)
    assert (told["system"], told["rows"]) == ("best", 4)
    given = as_json("--plan", tmp_path / "plan")
    assert numbers_of(told) == {**numbers_of(given), "system": "best"}


def test_frames_have_the_rows_with_the_least_time():
    asked = [*GRAPH, "--memory=2kB", "--system=best", "--features=16"]
    asked += ["--bandwidth=1000", "--pools=1"]
    one, auto = (as_json(*asked, *more) for more in ([], ["--rows", "auto"]))
    assert auto["rows"] > one["rows"] == 1
    assert auto["exchange_seconds"] < one["exchange_seconds"]


@pytest.mark.parametrize(
    "arguments", [["--graph", "karate"], [], ["--plan", "x", "--workers", "2"]]
)
def test_wrong_usage(arguments):
    assert simulate(*arguments).exit_code == 2


def test_the_model_of_computing():
    """1,000 vertices, 10,000 edges, 100 features, by hand, at half the rates."""
    products = 3 * 2 * 1_000 * 100 * 100 / 35.6e12
    sums = 2 * 10_000 * 400 / 936e9
    assert compute_seconds(1_000, 10_000, 100, 4) == pytest.approx(8 * (products + sums))


@pytest.mark.parametrize("system", ["bns-gcn", "paper", "best"])
def test_backward_exchanges_are_forward_ones_of_the_transposed_graph(tmp_path, system):
    """Edges to few vertices: forward and backward sums differ in number and in size."""
    random = np.random.default_rng(0)
    matrix = scipy.sparse.coo_array(
        (np.ones(900), (random.integers(12, size=900), random.integers(120, size=900))), (120, 120)
    )
    owner = tmp_path / "owner.txt"
    np.savetxt(owner, random.permutation(120) % 4, fmt="%d")
    told = []
    for name, each in (("graph", matrix), ("transposed", matrix.T)):
        scipy.sparse.save_npz(tmp_path / f"{name}.npz", (each.tocsr() > 0).astype(np.int8))
        given = ("--graph", tmp_path / f"{name}.npz", "--workers", 4, "--assignment", owner)
        told.append(as_json(*given, "--memory", "4kB", "--delay", 0.1, "--system", system))
    one, other = told
    assert one["backward_seconds"] == other["exchange_seconds"] != one["exchange_seconds"]
    epoch = 4 * one["exchange_seconds"] + 3 * one["backward_seconds"]
    assert one["communication_seconds"] == pytest.approx(epoch)


@pytest.mark.parametrize("strategy", [{}, {"send": "cover"}, {"send": "cover", "rows": 4}])
def test_a_worker_adds_up_what_the_switch_does_not(tmp_path, strategy):
    """Rows added, counted in the graph: edges inside workers, partial sums, and what arrives."""
    graph = load_graph("random:300:3000:1")
    plan = planned(graph, **strategy)
    write_plan(plan, tmp_path / "plan")
    told = as_json("--plan", tmp_path / "plan", "--layers", 1)
    worker = plan.assignment
    source = np.repeat(np.arange(graph.vertices), np.diff(graph.indptr))
    inside = int((worker[source] == worker[graph.indices]).sum())
    counts = [np.diff(part.send_row_indptr) for part in plan.workers]
    partial = sum(int(count[count > 1].sum()) for count in counts)
    assert (partial > 0) == bool(strategy)
    rows = (inside + partial + told["sums"] / 4) / 5
    most = int(np.bincount(worker).max())
    assert told["compute_seconds"] == pytest.approx(compute_seconds(most, rows, 128, 1))
    told = as_json("--plan", tmp_path / "plan", "--layers", 1, "--system", "bns-gcn")
    expected = compute_seconds(most, len(graph.indices) / 5, 128, 1)
    assert told["compute_seconds"] == pytest.approx(expected)
