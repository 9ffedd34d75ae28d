"""Exchanges in virtual time find mistakes."""

import pytest

from tests.planted.planting import text_replaced
from tests.support.markers import full
from tests.virtual.planted.mistakes import MISTAKES

# Some of each part, with seeds of scenarios that `make test` draws.
QUICK = {
    *("repeats_counted", "any_acknowledgement", "waiting_is_enough", "one_member_left_out"),
    *("lost_sums_not_recalled", "body_not_checked", "carry_between_lanes"),
    *("groups_not_sent_again", "rows_of_the_last_round", "fetched_once"),
    *("void_rounds_not_left", "installed_once", "session_not_remembered", "turns_not_forgotten"),
    *("the_living_are_named", "keep_the_part"),
    *("silent_in_a_block", "done_not_said_again", "share_the_last_tags", "more_units_than_pools"),
    *("slots_of_a_neighbour", "barriers_of_a_neighbour", "shelf_of_a_neighbour"),
    *("group_of_a_neighbour", "sums_of_a_neighbour"),
}


@pytest.mark.whole
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "mistake", [pytest.param(m, id=m.name, marks=() if m.name in QUICK else full) for m in MISTAKES]
)
def test_it_is_found(mistake):
    with mistake.planted() as soak:
        assert mistake.found_by(soak)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_it_still_applies(mistake):
    if mistake.in_program:
        mistake.program()
    elif mistake.text:
        with text_replaced(*mistake.text):
            pass
