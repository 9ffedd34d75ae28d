"""Within a switch's rates the plan with the least predicted time is taken."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

from switchgnn.planner import Direction, PlanContext, PlanRequest, load_graph
from switchgnn.planner.costs.forecast import POOLS, StarForecast
from switchgnn.planner.costs.quickest import PlanSearch
from switchgnn.planner.costs.seconds import NetworkModel

GRAPH, WORKERS, FEATURES = load_graph("random:300:4000:1"), 8, 64
NOTHING = {Direction.FORWARD: np.zeros((WORKERS, WORKERS), dtype=np.int64)}
# The loop takes most of the time.
PASSES, LINK = 0.2e9, 66e6
SLOW_LOOP = StarForecast(
    NetworkModel(delay=1e-7, passes_per_second=PASSES), {Direction.FORWARD: {FEATURES: 1.0}}
)


@dataclass(frozen=True)
class Wanted:
    """The fewer blocks and pools differ from these, the less time a plan takes."""

    blocks: int
    pools: int

    @property
    def exchanges(self):
        return SLOW_LOOP.exchanges

    network, directions = SLOW_LOOP.network, SLOW_LOOP.directions

    def of_plan(self, plan, left):
        blocks = len(plan.manifest.direction(Direction.FORWARD).block_numbers)
        return abs(blocks - self.blocks) + abs(plan.manifest.pools - self.pools) / 10


def search(forecast, fits=None, preset="best", graph=GRAPH, **asked):
    request = PlanRequest(preset, lanes=32, rows=1, **asked)
    settings = {"program": "0", "seed": 0, "directions": "forward"}
    return PlanSearch(request, graph, forecast, lambda at: at, 32, fits, settings)


def context(slots, **given):
    rates = {"link_rate": LINK, "recirculation_rate": PASSES, "within": True, "banks": 1}
    return PlanContext(WORKERS, slots, **{**rates, **given})


def blocks_of(found):
    return len(found.plan.manifest.direction(Direction.FORWARD).block_numbers)


def test_memory_is_left_unused_and_pools_are_chosen_where_that_takes_less_time():
    found = search(Wanted(blocks=10, pools=4)).quickest(context(300))
    assert (blocks_of(found), found.plan.manifest.pools) == (10, 4)
    assert found.plan.manifest.slots < 300
    whole = search(Wanted(blocks=1, pools=1)).quickest(context(300))
    assert (blocks_of(whole), whole.plan.manifest.slots) == (1, 300)


def test_pools_that_are_asked_for_are_taken():
    found = search(Wanted(blocks=10, pools=2), pools=4).quickest(context(300))
    assert found.plan.manifest.pools == 4


def test_a_plan_that_does_not_fit_is_not_taken():
    def fits(plan):
        return plan.manifest.pools != 2

    wanted = Wanted(blocks=2, pools=2)
    assert not fits(search(wanted).quickest(context(300)).plan)
    assert fits(search(wanted, fits).quickest(context(300)).plan)


@pytest.mark.parametrize("slots", [64, 256])
def test_no_number_of_pools_is_quicker(slots):
    found = SLOW_LOOP.of_plan(search(SLOW_LOOP).quickest(context(slots)).plan, NOTHING)
    for pools in POOLS:
        alone = search(SLOW_LOOP, pools=pools).quickest(context(slots, within=False)).plan
        assert found <= SLOW_LOOP.of_plan(alone, NOTHING)


def test_more_memory_is_not_slower():
    made = [search(SLOW_LOOP).quickest(context(slots)).plan for slots in (32, 64, 128, 256)]
    seconds = [SLOW_LOOP.of_plan(each, NOTHING) for each in made]
    assert all(more <= 1.02 * less for less, more in pairwise(seconds))


# METIS's workers send unequal numbers of rows here, and G3's about as many each.
UNEVEN = load_graph("yelp-like:0.003:0")


def test_auto_cuts_vertices_where_that_is_quicker():
    forecast = StarForecast(NetworkModel(delay=1e-7), SLOW_LOOP.exchanges)

    def auto(**asked):
        found = search(forecast, preset="auto", graph=UNEVEN, **asked).quickest(context(128))
        return found, found.auto.seconds[found.auto.chosen]

    (cut, seconds), (metis, longer) = auto(), auto(partition="metis")
    assert (cut.strategies.partition, metis.strategies.partition) == ("vertex-cut", "metis")
    assert seconds < longer
    assert metis.graph is UNEVEN
    assert cut.graph.digest() == cut.plan.manifest.graph.digest
    # Nothing is left to hosts, even where these are quicker.
    assert cut.plan is cut.auto.whole
    slow = StarForecast(NetworkModel(delay=1e-3), forecast.exchanges)
    found = search(slow, preset="auto", graph=UNEVEN, partition="vertex-cut").quickest(context(16))
    assert found.auto.chosen == "host-partial"
    assert not found.plan.leaves_any


def test_auto_takes_even_workers_where_hosts_exchange():
    def auto(partition=None, passes=PASSES):
        network = NetworkModel(delay=1e-7, passes_per_second=passes)
        forecast = StarForecast(network, SLOW_LOOP.exchanges)
        # With a send of its own no vertex is cut.
        made = search(forecast, preset="auto", graph=UNEVEN, partition=partition, send="cover")
        found = made.quickest(context(4096, recirculation_rate=passes))
        return found.strategies, found.auto.seconds[found.auto.chosen]

    (even, seconds), (asked, longer) = auto(), auto("metis")
    assert (even.partition, asked.partition) == ("g3", "metis")
    assert seconds < longer / 1.1
    assert "as asked" not in even.because["partition"]
    assert auto(passes=1e3 * PASSES)[0].partition == "metis"
