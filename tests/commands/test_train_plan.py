"""What `--transport auto` predicts and takes."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

from switchgnn.host.base.pace import Pace
from switchgnn.host.registry import HOST, HOST_PARTIAL, SWITCH
from switchgnn.jobs import train
from switchgnn.planner import Direction, PlanRequest, boundary_edges, read_assignment
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.training.base.compression import CompressionOptions
from switchgnn.training.base.options import TrainOptions
from switchgnn.training.data.load import load_dataset
from switchgnn.training.layers.models import ModelOptions
from switchgnn.training.train_worker import TrainTask
from switchgnn.training.trainer import Training

WORKERS = 8
SLOW = 20.0


@pytest.fixture(scope="module")
def dense():
    return load_dataset("digits:80")


def job_of(
    *,
    hidden=64,
    layers=3,
    slots=10_000,
    bandwidth=SLOW,
    leaf_spine=None,
    preset="paper",
    lanes=None,
    compression=None,
    transport=SWITCH.name,
):
    training = Training(
        ModelOptions("gcn", layers, hidden, 0.0),
        TrainOptions(),
        compression=compression or CompressionOptions(),
    )
    return train.TrainJob(
        task=TrainTask(transport=transport, training=training, pace=Pace(window=64)),
        workers=WORKERS,
        slots=slots,
        target="embedded",
        fabric="loopback",
        bandwidth=bandwidth,
        ecn_threshold=128,
        leaf_spine=leaf_spine,
        request=PlanRequest(preset, lanes=lanes),
    )


def predicted(job, data):
    return train.predict_transport(job, data, lambda _: None)


def test_wide_features_on_slow_links_are_summed_in_the_switch(dense):
    found = predicted(job_of(), dense)
    assert found.chosen is SWITCH
    assert set(found.seconds) == {SWITCH.name, HOST.name, HOST_PARTIAL.name}
    assert found.seconds[SWITCH.name] < found.seconds[HOST_PARTIAL.name] < found.seconds[HOST.name]


@pytest.mark.whole
@pytest.mark.parametrize("fewer", [{"layers": 2}, {"slots": 64}])
def test_narrow_features_and_few_slots_are_left_to_hosts(dense, fewer):
    # A second layer of ten classes is all that two layers exchange.
    assert predicted(job_of(**fewer), dense).chosen is HOST_PARTIAL


def test_no_exchange_is_predicted_to_beat_its_fullest_link(dense):
    """Each row in a frame of its own is a bound that packed rows keep, too."""
    found = predicted(job_of(), dense)
    plan = train.plan_of(job_of(), dense, lambda _: None)[1]
    numbers = 2 * (64 + 10)
    least = 0
    for part in plan.workers:
        sums = len(part.receive_vertex)
        least = max(least, sums / len(plan.manifest.directions) * 4 * numbers * 8 / (SLOW * 1e6))
    assert found.seconds[SWITCH.name] > least > 0
    copies = boundary_edges(dense.graph, plan.assignment).host_copies()[1]
    most = max((copies == worker).sum() for worker in range(WORKERS))
    assert found.seconds[HOST.name] > most * 4 * numbers * 8 / (SLOW * 1e6)


@pytest.mark.parametrize("settings", [{"bandwidth": 2.0}, {"slots": 3_000, "lanes": 64}])
def test_the_paths_of_all_blocks_take_what_is_predicted_for_their_transports(dense, settings):
    job = job_of(**settings)
    found = predicted(job, dense)
    paths = train.predict_paths(job, dense, found.whole[1], found.chosen.name)
    for path in (SWITCH.name, HOST.name, HOST_PARTIAL.name):
        assert paths.seconds(path) == pytest.approx(found.seconds[path]), path
    blocks = {
        each.value: len(found.whole[1].manifest.direction(each).block_numbers) for each in Direction
    }
    for cost in paths.exchanges:
        assert (len(cost.shares), cost.rest) == (blocks[cost.direction.value], 0.0)
        assert sum(cost.shares) == pytest.approx(1.0)
        assert all(0 < width.toll <= width.seconds for width in cost.widths)
    assert list(paths.reduce.values()) == sorted(paths.reduce.values())


def test_the_frames_are_those_of_the_switch_that_is_chosen(dense):
    def lanes(target):
        job = replace(job_of(), target=target)
        return train.plan_of(job, dense, lambda _: None)[1].manifest.lanes

    # BMv2 cannot attach to loopback.
    assert lanes("reference") == lanes("auto") == lanes("embedded") != lanes("bmv2")


def test_between_switches_nothing_is_predicted(dense):
    found = predicted(job_of(leaf_spine=LeafSpine((0, 0, 0, 0, 1, 1, 1, 1), 1)), dense)
    assert (found.chosen, dict(found.seconds)) == (SWITCH, {})
    assert "one switch" in found.why


@pytest.mark.whole
def test_where_slots_nearly_suffice_some_destinations_are_left_to_hosts(dense):
    found = predicted(job_of(slots=3_000, bandwidth=2.0, preset="auto", lanes=64), dense)
    assert found.chosen is SWITCH
    assert found.planned is not None
    assert found.planned[1].leaves_any
    assert found.seconds["mixed"] < min(found.seconds["switch"], found.seconds["host-partial"])
    assert "some destinations left to the hosts" in found.why


def test_with_compression_nothing_is_left_to_hosts_in_part(dense):
    compressed = CompressionOptions(bits=8)
    found = predicted(
        job_of(slots=3_000, bandwidth=2.0, preset="auto", compression=compressed), dense
    )
    assert set(found.seconds) == {SWITCH.name, HOST.name, HOST_PARTIAL.name}
    assert found.planned is None or not found.planned[1].leaves_any
    assert found.why.endswith(
        "With --cache or --bits no plan leaves some destinations to the hosts."
    )


NAMES = ("partition", "block_strategy", "send", "order")


@pytest.fixture
def folder(tmp_path):
    np.savetxt(tmp_path / "workers.txt", np.arange(34) % 3, fmt="%d")
    return tmp_path


def said(transport, asked, folder):
    """What a report says of the strategies, and the plan's assignment."""
    data = load_dataset("karate")
    job = job_of(hidden=8, layers=2, slots=12, bandwidth=None, transport=transport)
    job = replace(job, workers=3, target="auto", fabric="auto", request=asked)
    report = train._planned(job, train.prepare_training(job, data, folder, lambda _: None))
    return [report.get(name) for name in NAMES], report["why"], read_assignment(folder / "plan")


@pytest.mark.parametrize(
    ("transport", "partition", "expected"),
    [
        ("switch", None, ["metis", "destination-cover", "cover", "bfs"]),
        ("switch", "chunk", ["chunk", "destination-cover", "cover", "bfs"]),
        ("switch-paper", None, ["metis", "mlgp", "multicast", "gamr"]),
        ("switch-paper", "chunk", ["chunk", "mlgp", "multicast", "gamr"]),
        ("strawman", None, ["metis", "strawman", "multicast", "random"]),
        ("strawman", "chunk", ["chunk", "strawman", "multicast", "random"]),
        ("host", None, ["metis", None, None, None]),
        ("host-partial", "chunk", ["chunk", None, None, None]),
        ("g3", None, ["g3", None, None, None]),
        ("g3", "chunk", ["chunk", None, None, None]),
    ],
)
def test_over_other_transports_only_the_partition_counts(transport, partition, expected, folder):
    asked = PlanRequest("best", partition=partition, blocks="destination-cover", order="bfs")
    used, why, _ = said(transport, asked, folder)
    assert used == expected
    assert bool(why) == (transport == "switch")


@pytest.mark.parametrize("transport", ["switch", "strawman", "host", "g3"])
def test_an_assignment_counts_over_every_transport(transport, folder):
    used, _, assignment = said(transport, PlanRequest(assignment=folder / "workers.txt"), folder)
    assert used[0] == "given"
    assert np.array_equal(assignment, np.arange(34) % 3)


# Bytes of a float in frames of the switch, against the ring's, 7 with 8 workers and 4 with 2.
@pytest.mark.parametrize(
    ("bandwidth", "workers", "size", "faster"),
    [(20.0, 8, 6.4, True), (20.0, 8, 8.5, False), (20.0, 2, 6.4, False), (None, 8, 6.4, False)],
)
def test_auto_adds_up_where_it_is_faster(monkeypatch, dense, bandwidth, workers, size, faster):
    monkeypatch.setattr(train, "frames_of_floats", lambda n, *_, **__: (n // 128, size * n))
    job = replace(job_of(bandwidth=bandwidth, hidden=512), workers=workers)
    assert train.predicted_reduce(job, dense).value == ("switch" if faster else "gloo")


@pytest.mark.parametrize("preset", ["best", "auto", "paper"])
def test_the_papers_plan_is_a_transport_whatever_the_strategy(preset, dense):
    def planned(name, preset):
        job = job_of(preset=preset, transport=name)
        return train.plan_of(job, dense, lambda _: None)[1].manifest

    assert planned("switch-paper", preset).digest == planned("switch", "paper").digest
    assert (planned("switch", preset).rows > 1) == (preset != "paper")
