# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Mistakes planted in the models: the tests that should find them do."""

import shutil
from functools import partial

import pytest

from switchgnn.lab.simulator import compile as compiling
from switchgnn.planner import build_plan, load_graph
from tests.support.markers import some_of

from . import (
    test_against_others,
    test_background,
    test_by_hand,
    test_closed_forms,
    test_frames_and_slots,
    test_leaf_spine_by_hand,
    test_leaf_spine_plan,
    test_mixed,
    test_packing,
    test_plan,
)

MODELS = compiling.MODELS


def call(module, name, *arguments):
    """Return an oracle: a call of a test."""
    return lambda patch: getattr(module, name)(*arguments)


by_hand = partial(call, test_by_hand)
across = partial(call, test_leaf_spine_by_hand)
packing = partial(call, test_packing)
mixed = partial(call, test_mixed)


def between_leaves(patch):
    module = test_leaf_spine_plan
    module.test_hosts_alone_send_between_leaves_what_other_leaves_need(small(), 3)


def by_spine(patch):
    module = test_leaf_spine_plan
    module.test_a_row_goes_over_the_spine_that_its_number_leads_to(small())


def on_links(patch):
    module = test_leaf_spine_plan
    module.test_links_carry_what_the_planner_predicts(module.planned(small()), 3)


def small():
    return load_graph("random:300:1500:1")


def by_hand_whole(patch):
    test_frames_and_slots.test_fragments_follow_each_other_without_a_barrier()


def background(name, *arguments):
    def oracle(patch):
        plan = build_plan(load_graph("random:300:1500:1"), workers=5, slots=64, program="0" * 64)
        getattr(test_background, name)(plan, *arguments)

    return oracle


def goals(name, *arguments):
    return lambda patch: getattr(test_background, name)(test_background.made_large(), *arguments)


def sizes(patch):
    test_background.test_sizes_are_those_that_were_published(test_background.flows_of(3))


def load(patch):
    test_background.test_the_load_is_what_was_asked_for(0.1)


def game(patch):
    plan = build_plan(
        small(), workers=5, slots=60, program="0" * 64, blocks="strawman", order="random"
    )
    test_frames_and_slots.test_the_strawmans_slots_are_first_come_first_served(plan, 1, 60, 512)


def prediction(patch):
    plan = build_plan(load_graph("karate"), workers=3, slots=16, program="0" * 64)
    test_plan.test_what_is_sent_is_what_was_predicted(plan, 2)


def pace(patch):
    test_against_others.test_features_leave_when_those_of_the_host_would(440, patch)


DONE = "++done_ < down_.size()) {\n            return;\n        }\n        done_ = 0;\n        "

# What is replaced by what, and the oracle that notices.
MISTAKES = {
    "a pass goes on behind a sum that leaves": (
        "left = true;\n                break;",
        "left = true;",
        by_hand("test_sums_that_complete_together_queue"),
    ),
    "frames do not wait for each other": (
        "free_at_ = std::max(free_at_, now)",
        "free_at_ = now",
        by_hand("test_a_link_sends_one_after_another"),
    ),
    "packets without numbers wait for sums": (
        "urgent = IsUrgent(packet)",
        "urgent = false",
        by_hand("test_an_acknowledgement_overtakes_sums"),
    ),
    "frames that wait for packets without numbers count these": (
        "(urgent == urgent_ ? free_at_ - now : 0)",
        "free_at_ - now",
        by_hand("test_sums_ignore_the_queue_of_packets_without_numbers"),
    ),
    "a sum that was recalled in the fragment before counts in this one": (
        "(left == 0 || late)",
        "left == 0",
        background("test_everything_arrives_once_beside_it", "plan"),
    ),
    "a link that has become idle counts as busy": (
        "                --busy_;\n",
        "",
        by_hand("test_a_link_sends_one_after_another"),
    ),
    "a sum is as wide as any": (
        "leaving.bytes = packet.bytes;",
        "",
        lambda patch: test_frames_and_slots.test_the_last_fragment_is_as_narrow_as_it_can_be(),
    ),
    "the loop's first pass takes no time": (
        "        Picoseconds at = now;",
        "        Picoseconds at = now - service_;",
        by_hand("test_recirculation_serves_one_packet_after_another"),
    ),
    "sums leave a step early": (
        "row.added < row.expected",
        "row.added + 1 < row.expected",
        lambda patch: test_closed_forms.test_a_star_takes_n_steps_with_its_centre_first(10),
    ),
    "the strawman never takes a slot back": ("        ++free_[rows_[row].pool];\n", "", game),
    "all fragments add to the first one's sum": (
        "* together + packet % together",
        "* together",
        by_hand_whole,
    ),
    "an acknowledgement has the bytes of a frame with its checksum": (
        "return 60;",
        "return 64;",
        prediction,
    ),
    "a notice does not narrow the window": (
        "window_ * (1 - share / 2)",
        "window_",
        by_hand("test_a_window_shrinks_by_half_of_the_share_of_sums_that_came_marked"),
    ),
    "a notice tells of one packet however many came marked": (
        "std::min(untold_, kMostTold)",
        "1",
        by_hand("test_a_window_shrinks_by_half_of_the_share_of_sums_that_came_marked"),
    ),
    "a sum stands for a feature, whatever the plan says": (
        "packet.count * schedule_.PacketsPerSum(worker_, block_)",
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
        "from[tier_.LeafOf(worker[row])][row] != expected[row]",
        "from[tier_.LeafOf(worker[row])][row] == 0",
        on_links,
    ),
    "all sums go over a spine": ("!part || !routes_.Crosses(packet.id)", "!part", on_links),
    "spines take turns by rows": (
        "vertex_[row / together_] % spines_",
        "row / together_ % spines_",
        on_links,
    ),
    "a part counts as one contribution": (
        "Add(packet.id, packet, leaving)",
        "Add(packet.id, {.kind = packet.kind}, leaving)",
        across("test_both_leaves_send_their_part_to_the_spine"),
    ),
    "a part takes no pass": (
        "++adder_.tally.passes;\n        Packet",
        "Packet",
        across("test_both_leaves_send_their_part_to_the_spine"),
    ),
    "a sum from a spine is added at the leaf": (
        "    SendDown(packet, adder_.WorkerOf(packet.id), now);",
        "    Add(packet.id, packet, now);",
        across("test_both_leaves_send_their_part_to_the_spine"),
    ),
    "a sum loses the mark of its last part": (
        ".kind = kind, .ecn = packet.ecn, ",
        ".kind = kind, ",
        across("test_a_mark_on_the_last_part_reaches_the_worker_and_all_are_told"),
    ),
    "a leaf tells its own workers of a notice at once": (
        "override {\n        uplinks_.SendTo(kBarrierSpine, packet, now);",
        "override {\n        TellAll(packet, now);\n"
        "        uplinks_.SendTo(kBarrierSpine, packet, now);",
        across("test_a_mark_on_the_last_part_reaches_the_worker_and_all_are_told"),
    ),
    "the first leaf that is done lets all go on": (
        f"{DONE}CheckComplete",
        f"{DONE.replace('down_.size()', '1')}CheckComplete",
        on_links,
    ),
    "what found no slot at the leaf is not tried at the spine": (
        "++adder_.tally.passes;\n        Packet",
        "if (packet.kind == Kind::FEATURE) {\n"
        "        SendToLeafOf(adder_.WorkerOf(packet.id), packet, now);\n"
        "        return;\n"
        "    }\n"
        "++adder_.tally.passes;\n        Packet",
        across("test_a_strawman_tries_at_leaf_and_spine", test_leaf_spine_by_hand.SPINE, [(1, 0)]),
    ),
    "a receiver's answers take the spine of what it answers": (
        "uint64_t{packet.worker} << 32 | packet.id",
        "packet.worker ^ packet.id",
        between_leaves,
    ),
    "a leaf that completes sums waits for the contributions of all leaves": (
        "            if (tier_.LeafOf(worker[row]) == leaf) {\n",
        "            {\n",
        across("test_two_levels_add_up"),
    ),
    "a partial sum counts as one contribution where leaves complete": (
        "Add(packet.id, packet, now)",
        "Add(packet.id, {.kind = packet.kind}, now)",
        across("test_two_levels_add_up"),
    ),
    "a slot forgets the mark of what was added": (
        "        marked_.insert(packet.id);\n",
        "",
        across("test_a_mark_between_switches_reaches_the_worker_and_all_are_told"),
    ),
    "all rows go over one spine where leaves complete": (
        "uplinks_.SendByKey(packet.id, sent, now)",
        "uplinks_.SendByKey(0, sent, now)",
        by_spine,
    ),
    "a full queue loses acknowledgements": (
        "kind == Kind::SUM || kind",
        "kind == Kind::ACK || kind == Kind::SUM || kind",
        by_hand("test_control_packets_are_not_lost"),
    ),
    "sums of the block before are taken for those of this one": (
        "        left_sums_->Clear();\n",
        "",
        by_hand("test_slots_forget_the_fragment_before"),
    ),
    "a time-out is not put off by what comes": (
        "AskNext(now);\n        timer_->SetTo(Due(now));",
        "AskNext(now);",
        by_hand("test_a_lost_sum_is_recalled"),
    ),
    "an acknowledgement is for all frames of its run": (
        "std::popcount(static_cast<uint8_t>(run.missing & ~ack.missing))",
        "run.length",
        by_hand("test_a_lost_copy_is_sent_again"),
    ),
    "all frames of data take the time of those of the switch": (
        "bytes == FrameBytes(packet.kind)",
        "packet.bytes != 0",
        packing("test_two_frames_take_what_their_lengths_do"),
    ),
    "all frames between hosts are full": (
        "packet.bytes = bytes_[index];",
        "packet.bytes = bytes_[0];",
        packing("test_bytes_on_links_are_those_of_the_closed_form", 1, 1_500),
    ),
    "a window has as many frames as it would have features": (
        "bytes / frame_bytes",
        "workers.window",
        packing("test_the_window_has_the_bytes_of_its_features_and_the_rest_of_a_group"),
    ),
    "a group that waits for its answer is all that is in flight": (
        " + workers.group - 1",
        "",
        packing("test_a_narrow_window_has_room_for_a_group"),
    ),
    "an exchange ends with the sums of the switch": (
        "std::max(worker_->FinishedAt(), peer_->FinishedAt())",
        "worker_->FinishedAt()",
        mixed("test_a_row_follows_a_feature_and_a_sum"),
    ),
    "the switch keeps acknowledgements between hosts": (
        "ack.between_hosts = true;",
        "ack.between_hosts = false;",
        mixed("test_a_row_follows_a_feature_and_a_sum"),
    ),
    "a sum that comes twice counts twice": (
        "recaller_ && (left",
        "!recaller_ && (left",
        background("test_everything_arrives_once_beside_it", "plan"),
    ),
    "the background counts as the exchange": (
        "kind < kExchangeKinds",
        "kind < kKinds",
        background("test_the_exchange_is_counted_without_it", "hosts"),
    ),
    "each host draws for its own and for all": (
        "options_.load * static_cast",
        "2 * options_.load * static_cast",
        load,
    ),
    "sizes are those of the points": ("std::llround(bytes)", "std::llround(bytes_[i])", sizes),
}


# Each takes seconds to compile.
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
    # Compiling takes most of the time.
    monkeypatch.setattr(compiling, "_FLAGS", ("-std=c++20", "-O0", "-x", "c++"))
    compiling.compiled_models()
    with pytest.raises((AssertionError, compiling.SimulatorError)):
        oracle(monkeypatch)
