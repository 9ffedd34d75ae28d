"""Mistakes planted in the models: tests that compare counts and statistics find them."""

import shutil

import pytest

from switchgnn.host.base.pace import CongestionRule
from switchgnn.lab.simulator import simulation as compiling
from switchgnn.planner import load_graph
from tests.support.markers import some_of

from . import (
    test_against_others,
    test_background,
    test_by_hand,
    test_closed_forms,
    test_frames_and_slots,
    test_leaf_spine_by_hand,
    test_plan,
)
from . import test_leaf_spine_plan as leaf_spine

MODELS = compiling.MODELS


def on_links(patch):
    leaf_spine.test_parts_go_up_one_by_one_and_bundles_come_down(small(), {}, 3, False)


def small():
    return load_graph("random:300:1500:1")


def background(name, system):
    return lambda patch: getattr(test_background, name)(test_plan.planned(small()), system)


def goals(name, load):
    return lambda patch: getattr(test_background, name)(test_background.made_large(), load)


def game(patch):
    plan = test_plan.planned(small(), slots=60, blocks="strawman", order="random")
    test_frames_and_slots.test_the_strawmans_slots_are_first_come_first_served(plan, 1, 60, 512)


def prediction(patch):
    plan = test_plan.planned(load_graph("karate"), workers=3, slots=16, rows=2)
    test_plan.test_what_is_sent_is_what_was_predicted(plan, 2)


def pace(patch):
    test = test_against_others.test_features_leave_when_those_of_the_host_would
    test(440, CongestionRule.DCTCP, patch)


# What is replaced by what, and the oracle that notices.
MISTAKES = {
    "a sum that was recalled in the fragment before counts in this one": (
        "(late || !flight.Misses(row))",
        "!flight.Misses(row)",
        background("test_everything_arrives_once_beside_it", "plan"),
    ),
    "a unit begins before its pool is free": (
        "std::min(passed_, schedule_.Units())",
        "std::min(passed_ + 1, schedule_.Units())",
        lambda patch: test_by_hand.test_pools_share_round_trips(2, 5, 1),
    ),
    "sums leave a step early": (
        "row.added < row.expected",
        "row.added + 1 < row.expected",
        lambda patch: test_closed_forms.test_a_star_takes_longer_the_later_its_centre_comes(10, 1),
    ),
    "the last sums of a unit stay on a shelf": ("shelf.sums < all && ", "", prediction),
    "the strawman never takes a slot back": (
        "if (!free_.empty()) ++free_[",
        "if (false) ++free_[",
        game,
    ),
    "a sum stands for a feature, whatever the plan says": (
        "packet.count * FlightOf(passed_).PacketsPerSum()",
        "packet.count",
        pace,
    ),
    "a mark halves": (
        "std::min(1.0, marked_ / acknowledged_)",
        "marked_ > 0 ? 1.0 : 0.0",
        goals("test_control_costs_next_to_nothing_where_nothing_is_lost", 0.8),
    ),
    "who got a marked packet waits as long as all others": (
        "BackedOff(attempts_, !marked_)",
        "BackedOff(attempts_)",
        goals("test_control_pays_where_losses_are_dear", 0.3),
    ),
    "a leaf keeps its part of a sum to itself when the worker is its own": (
        "own != expected[row]",
        "own == 0",
        on_links,
    ),
    "a part counts as one contribution": (
        "slots_->Add(packet.id, packet)",
        "slots_->Add(packet.id, {.kind = packet.kind, .turn = packet.turn})",
        lambda patch: test_leaf_spine_by_hand.test_leaves_send_their_parts_to_the_spine(
            leaf_spine.SPINE, 1, 3
        ),
    ),
    "a receiver's answers take the spine of what it answers": (
        "uint64_t{packet.worker} << 32 | packet.id",
        "packet.worker ^ packet.id",
        lambda patch: leaf_spine.test_hosts_alone_send_between_leaves_what_other_leaves_need(
            small(), 3
        ),
    ),
    "all rows go over one spine where leaves complete": (
        "uplinks_.SendByKey(packet.id, sent, now)",
        "uplinks_.SendByKey(0, sent, now)",
        lambda patch: leaf_spine.test_a_row_goes_over_the_spine_that_its_number_leads_to(small()),
    ),
    "the background counts as the exchange": (
        "kind < kExchangeKinds",
        "kind < kKinds",
        background("test_the_exchange_is_counted_without_it", "hosts"),
    ),
    "each host draws for its own and for all": (
        "= options_.background_load * static_cast",
        "= 2 * options_.background_load * static_cast",
        lambda patch: test_background.test_the_load_is_what_was_asked_for(0.1),
    ),
    "sizes are those of the points": (
        "std::llround(bytes)",
        "std::llround(bytes_[i])",
        lambda patch: test_background.test_sizes_are_those_that_were_published(
            test_background.flows_of(3)
        ),
    ),
}


FIRST = ("a part counts as one contribution",)


@pytest.mark.parametrize(
    "name", some_of(lambda index: list(MISTAKES)[index] in FIRST, list(MISTAKES))
)
def test_a_planted_mistake_is_found(name, monkeypatch, tmp_path):
    right, wrong, oracle = MISTAKES[name]
    models = tmp_path / "models"
    shutil.copytree(MODELS, models)
    (file,) = [path for path in models.iterdir() if right in path.read_text()]
    assert file.read_text().count(right) == 1
    file.write_text(file.read_text().replace(right, wrong))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(compiling, "MODELS", models)
    monkeypatch.setattr(compiling, "_FLAGS", ("-std=c++20", "-O0", "-x", "c++"))
    compiling.compiled_models()
    with pytest.raises((AssertionError, compiling.request.SimulatorError)):
        oracle(monkeypatch)
