"""Simulated plans send, add and return what the planner and the hosts say they do."""

from dataclasses import replace

import numpy as np
import pytest

from switchgnn.host.base.pace import CongestionRule
from switchgnn.host.links.transport import expected_traffic
from switchgnn.lab.simulator.request import NetworkOptions, SimulatorError
from switchgnn.lab.simulator.setup import host_setup, plan_setup
from switchgnn.lab.simulator.simulation import run_simulation
from switchgnn.planner import Direction, load_graph

from .scenes import FRAGMENT, PACKED, Row, Sent, copies_of_plan, planned, scene

PLAIN = {
    "paper": {},
    "cover": {"blocks": "destination-cover", "send": "cover"},
    "one block": {"slots": 4_000, "order": "bfs"},
    "narrow": {"slots": 8},
    "pools": {"pools": 3},
}
KINDS = PLAIN | {
    "bundles of 2": {"rows": 2},
    "bundles of 4": {"rows": 4, "pools": 3},
    "bundles of 8": {"rows": 8, "blocks": "destination-cover", "send": "cover"},
    "strawman": {"blocks": "strawman", "order": "random", "slots": 4_000},
}


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def plan(request, graph):
    return planned(graph, **request.param)


@pytest.mark.parametrize("fragments", [1, 3])
def test_what_is_sent_is_what_was_predicted(plan, fragments):
    run = run_simulation(plan_setup(plan, fragments), NetworkOptions(), opening=True)
    said = plan.manifest.direction(Direction.FORWARD)
    prediction, blocks = said.prediction, said.block_numbers
    assert run.features_up == tuple(fragments * n for n in prediction.packets_up)
    assert run.sums_down == tuple(fragments * n for n in prediction.packets_down)
    assert run.contributions == fragments * prediction.contributions
    assert run.passes >= fragments * prediction.passes
    group = NetworkOptions().pace.group_size
    expected = [
        expected_traffic(plan.manifest, part, blocks, 32 * fragments, group)
        for part in plan.workers
    ]
    for name in ("frames_up", "bytes_up", "frames_down", "bytes_down"):
        assert getattr(run, name) == tuple(getattr(each, name) for each in expected)


@pytest.mark.parametrize("seed", range(20))
def test_no_network_changes_what_is_sent(seed):
    """Whatever the rates, marks and losses, nobody waits for ever, and all arrives once."""
    rng = np.random.default_rng(seed)
    workers = int(rng.integers(2, 9))
    kind = list(KINDS.values())[seed % len(KINDS)]
    graph = load_graph(f"random:{rng.integers(20, 200)}:{rng.integers(50, 600)}:{seed}")
    plan = planned(graph, workers=workers, **kind)
    setup = plan_setup(plan, 1)
    options = NetworkOptions(
        bandwidth=float(rng.choice([10.0, 1e3, 1e5])),
        delay=float(rng.choice([0.0, 0.5, 50.0])),
        ecn_threshold=int(rng.choice([0, 1, 5, 50])),
        window=int(rng.choice([1, 2, 3, 5, 16, 100])),
        recirculation_rate=rng.choice([None, 1e5, 1e9]),
        # The strawman cannot lose packets.
        buffer=None if "order" in kind else int(rng.choice([1, 2, 5, 25])) * setup.data_frame_bytes,
        congestion=list(CongestionRule)[rng.integers(3)],
    )
    prediction = plan.manifest.direction(Direction.FORWARD).prediction
    run = run_simulation(setup, options)
    assert run.features_up == prediction.packets_up
    assert run.sums == len(plan.switch.result_vertex)
    assert run.lost or run.repeated or run.sums_down == prediction.packets_down
    if kind.get("blocks") != "strawman":
        assert run.contributions == prediction.contributions
    assert sum(run.sums_down) == sum(prediction.packets_down) + run.sent_again - run.lost
    assert "rows" in kind or run.sent_again - run.lost == run.repeated
    mtu = [FRAGMENT, PACKED][seed % 2]
    options = replace(options, buffer=options.buffer and max(options.buffer, 1_512))
    setup = host_setup(copies_of_plan(plan), 70, options.pace, mtu)
    run = run_simulation(setup, options)
    frames = setup.arrays["awaited"]
    assert sum(run.features_up) == frames.sum() + run.sent_again
    assert sum(run.features_down) == sum(run.features_up) - run.lost == frames.sum() + run.repeated
    assert run.lost or run.repeated or run.features_down == tuple(frames)


def test_a_contribution_to_another_sum_is_found_out(plan):
    setup = plan_setup(plan, 1)
    setup.arrays["contribution"][0] ^= 1
    told = "more contributions|are incomplete|Nothing happens any more"
    with pytest.raises(SimulatorError, match=told):
        run_simulation(setup, NetworkOptions())


@pytest.mark.parametrize("options", [{}, {"buffer": 188}, {"background_load": 0.9}])
def test_a_packet_that_is_never_sent_is_missed(options):
    """A row that expects two contributions, and gets one."""
    with pytest.raises(SimulatorError, match="Nothing happens any more"):
        run_simulation(scene(2, [Row(1, 2)], [Sent(0, [[0]])]), NetworkOptions(**options))


def test_the_series_ends_with_all_sums(plan):
    series = run_simulation(plan_setup(plan, 1), NetworkOptions(delay=50.0)).series
    assert series.seconds[0] == 0
    steps = np.diff(series.seconds)
    assert steps == pytest.approx(np.full(len(steps), steps[0]))
    assert len(series.seconds) <= 1024
    assert list(series.sums) == sorted(series.sums)
    assert series.sums[-1] == len(plan.switch.result_vertex)
    assert series.slots[-1] == 0


def test_bytes_pass_links_no_faster_than_these_are(plan):
    """In the series waiting bytes are left out."""
    run = run_simulation(plan_setup(plan, 1), NetworkOptions(bandwidth=1_000.0))
    rate = np.diff(run.series.link_bytes) / np.diff(run.series.seconds)
    links = 2 * len(run.bytes_up)
    assert rate.min() >= 0
    assert rate.max() <= links * 1_000e6 / 8 * (1 + 1e-6)
    whole = sum(run.bytes_up) + sum(run.bytes_down)
    assert 0.9 * whole < run.series.link_bytes[-1] <= whole
