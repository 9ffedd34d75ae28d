# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.virtual.planted.table`: the table of mistakes for docs/evidence/reliability.md.

`--measure TRIES MOST [NAME ...]` plants them and prints how many seeds each try took, of MOST at
most, and which checks have found it.
"""

import sys
from statistics import median

from tests.virtual.planted.mistakes import MISTAKES

# The number that is stated, the median of what it took from three first seeds, and which check has
# found it first.
FOUND = {
    "lost_sums_not_recalled": (5, 2, "right party"),
    "rows_of_the_last_round": (120, 25, "resent right"),
    "places_not_compared": (40, 11, "sums exact"),
    "body_not_checked": (10, 4, "right party"),
    "last_fragment_dropped": (10, 1, "sums exact"),
    "the_living_are_named": (80, 12, "ends"),
    "done_not_said_again": (80, 20, "right party"),
    "installed_once": (60, 10, "right party"),
    "carry_between_lanes": (5, 1, "sums leave exact"),
    "forget_sources": (5, 1, "acknowledged arrived"),
    "overwrite_by_stale": (30, 5, "sums leave exact"),
    "believe_checksums": (20, 2, "acknowledged arrived"),
    "count_repeated_done": (5, 2, "right party"),
    "release_nothing": (40, 20, "sums leave once"),
    "forget_newer_groups": (100, 31, "right party"),
    "let_any_tag_in": (20, 3, "turns grow"),
    "agree_with_all": (60, 16, "sums leave exact"),
    "take_every_pulse": (10, 3, "pulses passed on"),
    "begin_without_the_opening": (15, 2, "barrier waits"),
    "forget_the_width": (15, 4, "sums leave exact"),
    "forget_the_level": (5, 1, "parts marked"),
    "ask_no_leaf": (15, 4, "parts asked for"),
    "keep_the_part": (10, 4, "right party"),
    "report_as_a_worker": (5, 1, "right party"),
    "drop_a_contribution": (5, 1, "sums leave exact"),
    "add_one_twice": (5, 1, "sums leave exact"),
    "swap_two_destinations": (5, 1, "sums leave exact"),
    "refuse_a_partial_sum": (10, 1, "right party"),
    "give_a_partial_sum_to_another": (10, 1, "right party"),
    "own_scale": (5, 1, "sums leave exact"),
    "never_fetched": (60, 16, "right party"),
    "silent_in_a_block": (80, 20, "right party"),
    "any_acknowledgement": (10, 2, "done is done"),
    "groups_not_sent_again": (5, 2, "right party"),
    "never_asked_again": (5, 1, "right party"),
    "no_window": (5, 2, "window held"),
    "groups_without_end": (250, 17, "right party"),
    "one_neighbour_left_out": (40, 16, "sums exact"),
    "repeats_counted": (5, 2, "right party"),
    "fetched_once": (40, 20, "right party"),
    "first_fragment_served": (60, 34, "resent right"),
    "early_sums_kept_for_ever": (20, 5, "memory bounded"),
    "receivers_kept": (5, 2, "memory bounded"),
    "sessions_not_compared": (250, 61, "sums exact"),
    "last_block_of_a_vertex": (10, 2, "sums exact"),
    "own_capacity": (15, 2, "sums leave exact"),
    "too_large_features_sent": (120, 15, "sums leave exact"),
    "void_sums_used": (40, 11, "done is done"),
    "void_rounds_not_left": (40, 11, "right party"),
    "reported_before_the_opening": (15, 2, "right party"),
    "waiting_is_enough": (5, 2, "workers wait"),
    "done_said_once": (5, 2, "right party"),
    "own_magnitude": (5, 1, "right party"),
    "earlier_advances_taken": (5, 2, "workers wait"),
    "late_answers_end_a_worker": (250, 111, "right party"),
    "no_pulse": (10, 3, "pulses beat"),
    "session_taken_again": (10, 3, "right party"),
    "turns_not_forgotten": (60, 10, "right party"),
    "session_not_remembered": (60, 10, "right party"),
    "one_member_left_out": (5, 1, "barrier waits"),
    "ports_swapped": (5, 1, "sums leave once"),
    "any_process": (120, 12, "one process"),
    "any_session": (30, 8, "sums leave exact"),
    "stale_is_new": (10, 2, "sources once"),
    "duplicate_is_new": (5, 1, "acknowledged arrived"),
    "slots_without_tag": (10, 3, "sums leave exact"),
    "barrier_without_tag": (5, 1, "right party"),
    "acknowledge_what_comes": (5, 1, "acknowledged arrived"),
    "acknowledge_one_more": (5, 1, "acknowledged arrived"),
    "recall_adds": (5, 1, "sums leave exact"),
    "nobody_has_the_maximum": (5, 1, "magnitudes agree"),
    "stop_at_the_first_sum": (60, 9, "calm is quiet"),
    "next_turn_at_once": (5, 1, "barrier waits"),
    "missing_without_count": (20, 7, "missing counted"),
    "tag_without_round": (5, 1, "right party"),
    "tag_without_fragment": (10, 1, "sums leave exact"),
    "forget_contributors": (5, 1, "sums of all leave exact"),
    "begin_older_fragments": (40, 13, "contributions once"),
    "forget_exponents": (10, 1, "sums of all leave exact"),
    "reduce_as_a_worker": (5, 2, "all-reduce right party"),
    "all_slots_in_flight": (40, 8, "half of the slots"),
    "overdue_sums_not_asked_for": (10, 2, "all-reduce right party"),
    "any_sum_taken": (10, 1, "all-reduces add up"),
    "lost_sums_not_asked_for": (20, 5, "ends"),
    "questions_not_answered": (20, 5, "ends"),
    "answers_of_worker_0": (40, 10, "ends"),
    "idle_without_pulse": (20, 4, "all-reduce right party"),
    "pulses_not_heeded": (30, 9, "all-reduce right party"),
    "scale_without_workers": (10, 3, "all-reduces exact"),
    "rest_at_the_wrong_scale": (10, 1, "all-reduces exact"),
    "own_exponent": (5, 1, "all-reduces exact"),
    "next_group_not_told": (40, 14, "all-reduces exact"),
    "sent_at_another_scale": (40, 15, "sums leave exact"),
    "own_largest_renews": (40, 7, "sums leave exact"),
    "small_changes_lost": (20, 2, "sums leave exact"),
    "changes_sent_twice": (10, 2, "sums leave exact"),
    "each_row_stands_for_all": (80, 3, "resent right"),
    "fetched_for_all_sums": (120, 31, "sums exact"),
}
# And why, as far as it is known.
NOT_FOUND = {
    "scales_may_differ": "the switch itself refuses another magnitude once the opening is over, so "
    "all of this must coincide: it ends when one worker alone has heard that, a mad worker reports "
    "a larger one before that worker is heard again, and that one awaits no sums in the block; "
    "none in 500 scenarios made for it, and a test of the host alone notices it"
}

HEAD = ("| where | mistake | seeds | within | found by |", "|---|---|---|---|---|")
# The tries begin this far apart.
_APART = 10_000


def table():
    """Return the lines of the table."""
    lines = [*HEAD]
    for mistake in MISTAKES:
        if mistake.name in FOUND:
            within, took, by = FOUND[mistake.name]
            mark = "" if mistake.new else " *"
            lines.append(f"| {mistake.part} | {mistake.what}{mark} | {took:g} | {within} | {by} |")
    return lines


def measure(tries, most, names):
    """Yield mistakes with the seeds that each try took, and the checks that have found it."""
    for mistake in MISTAKES:
        if not names or mistake.name in names:
            found = [mistake.seeds_until_found(_APART * each, most) for each in range(tries)]
            yield mistake, [seeds or float("inf") for seeds, _ in found], [by for _, by in found]


def main(arguments):
    """Print the table, or what is measured."""
    if not arguments:
        sys.stdout.write("\n".join(table()) + "\n")
        return
    _, tries, most, *names = arguments
    for mistake, taken, by in measure(int(tries), int(most), names):
        seeds = ", ".join(f"{each:g}" for each in taken)
        sys.stdout.write(f"{mistake.name}: {median(taken):g} ({seeds}) {by}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
