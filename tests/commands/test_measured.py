"""What exchanges take on this machine: measured once, and what predictions make of it."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

from switchgnn.host.base.errors import HostError
from switchgnn.host.registry import SWITCH
from switchgnn.jobs import measured as module
from switchgnn.jobs.measured import measured_here
from switchgnn.jobs.train import plan_of, predict_transport
from switchgnn.planner import Direction, boundary_edges
from switchgnn.planner.costs.machine import Cost, MeasuredCosts
from switchgnn.profiles import find_profile
from switchgnn.softswitch.native.engine import Ahead
from switchgnn.topologies import Backend
from switchgnn.training.data.load import load_dataset
from tests.commands.test_train_plan import job_of


def test_costs_pass_through_what_was_measured():
    assert Cost.through(1, (100, 0.003), (1_100, 0.008)) == Cost(pytest.approx(0.0025), 5e-6)
    # Noise that makes the large exchange the faster one leaves no negative times.
    assert Cost.through(1, (100, 0.003), (1_100, 0.002)) == Cost(0.003, 0.0)


FAST, SLOW = Cost(1e-3, 1e-7), Cost(4e-3, 1e-7)


@pytest.mark.parametrize(("switch", "hosts"), [(FAST, SLOW), (SLOW, FAST)])
def test_the_choice_follows_what_was_measured(switch, hosts):
    job, data = job_of(layers=2, hidden=16, bandwidth=None), load_dataset("karate")
    found = predict_transport(job, data, lambda _: None, MeasuredCosts(switch, hosts))
    assert (found.chosen is SWITCH) == (switch is FAST)


def test_a_vertex_cut_is_taken_where_its_exchanges_are_faster():
    """With few slots, as the sums of other plans take more blocks and frames."""
    costs = MeasuredCosts(Cost(1e-3, 1e-5), Cost(10.0, 0.0))
    job, data = job_of(preset="auto", slots=64, lanes=32), load_dataset("digits")
    job = replace(job, request=replace(job.request, rows=1))
    found = predict_transport(job, data, lambda _: None, costs)
    edges = predict_transport(job, data, lambda _: None, costs, cuts=False)
    assert found.seconds["switch"] < edges.seconds["switch"]
    assert (found.job.request.partition, edges.job.request.partition) == ("vertex-cut", None)
    assert found.data.cut.digest() == found.planned[1].manifest.graph.digest
    sampled = replace(job, task=replace(job.task, sampling=0.5))
    assert predict_transport(sampled, data, lambda _: None, costs).data is data


def test_each_block_frame_and_byte_counts():
    """Two exchanges of 64 and two of 10 numbers; the features, 64, once in 100 epochs."""
    job, data = job_of(bandwidth=None, slots=256), load_dataset("digits")
    costs = MeasuredCosts(Cost(1e-3, 1e-5), Cost(2e-3, 1e-8))
    found = predict_transport(job, data, lambda _: None, costs).seconds
    plan = plan_of(job, data, lambda _: None)[1]
    ways = [plan.manifest.direction(each) for each in Direction]
    told = [way.prediction for way in ways]
    packets = sum(sum(each.packets_up) + sum(each.packets_down) for each in told)
    blocks = sum(len(way.block_numbers) for way in ways)
    assert blocks > 2
    barrier = find_profile("embedded").barrier_seconds
    times = {64: 2.01, 10: 2}
    fragments = sum(number / 2 * -(-each // plan.manifest.lanes) for each, number in times.items())
    later = (fragments * blocks - 4.01) * barrier
    assert found["switch"] == pytest.approx(4.01 * 8e-3 + fragments * packets * 1e-5 + later)
    rows = boundary_edges(data.graph, plan.assignment).host_copies()[0].size
    payload = rows * 4 * (2.01 * 64 + 2 * 10) * 1e-8
    assert 4.01 * 16e-3 + payload < found["host"] < 4.01 * 16e-3 + 1.2 * payload


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """An empty cache, and the exchanges that are carried out, of 2 and 3 ms but the first ones."""
    made = []

    def run_job(options, _step, *, forkserver):
        made.append((options.rounds, options.left, options.workers))
        large = "12000" in options.graph
        seconds = [0.5] + [0.003 if large else 0.002] * (options.rounds - 1)
        frames = (1_500 if large else 500) * options.rounds
        counts = {"features_sent": frames, "sums_received": 0, "host_partial_bytes_up": frames}
        return SimpleNamespace(per_worker=[SimpleNamespace(**counts, round_seconds=seconds)] * 2)

    monkeypatch.setattr(module, "cache_folder", lambda part: tmp_path / part)
    monkeypatch.setattr(module, "compile_ahead", lambda *_: Ahead(Backend.PYTHON, 0.0))
    monkeypatch.setattr(module, "run_job", run_job)
    return made


def test_a_machine_is_measured_once_for_a_number_of_workers(runs):
    told = []
    first = measured_here(job_of(bandwidth=None), None, told.append)
    cost = Cost(pytest.approx(1.5e-3 / 8), pytest.approx(5e-7))
    assert first == MeasuredCosts(cost, cost)
    assert measured_here(job_of(bandwidth=None), None, told.append) == first
    assert runs == [(6, False, 8), (2, False, 8), (6, True, 8), (2, True, 8)]
    assert len(told) == 1


def test_links_with_a_limit_are_not_measured(runs):
    assert measured_here(job_of(), None, lambda _: None) is None
    assert runs == []


def test_without_a_measurement_the_profile_counts(runs, tmp_path, monkeypatch):
    def fails(*_, **__):
        raise HostError("no sums")

    monkeypatch.setattr(module, "run_job", fails)
    assert measured_here(job_of(bandwidth=None), None, lambda _: None) is None
    assert not list(tmp_path.rglob("seconds-*[0-9a-f]"))


@pytest.mark.whole
def test_real_exchanges_are_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "cache_folder", lambda part: tmp_path / part)
    found = measured_here(replace(job_of(bandwidth=None), workers=2), None, lambda _: None)
    assert found is not None
    for cost in (found.switch, found.hosts):
        assert 1e-5 < cost.worker + 1_000 * cost.each < 10
