# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Exchanges in virtual time find mistakes, each within the number of seeds that is stated."""

from pathlib import Path

import pytest

from switchgnn.host.innetwork import outgoing
from tests.planted.planting import text_replaced
from tests.virtual.planted.mistakes import MISTAKES, Planted
from tests.virtual.planted.table import FOUND, HEAD, NOT_FOUND, table

ROOT = Path(__file__).parents[3]
# One or two of each part, which few and short scenarios find.
QUICK = (
    "repeats_counted",
    "any_acknowledgement",
    "waiting_is_enough",
    "one_member_left_out",
    "swap_two_destinations",
)


def by_name(name):
    return next(mistake for mistake in MISTAKES if mistake.name == name)


def check_it_is_found(mistake):
    """Two of the three first seeds of the table's median find it; the second is seldom needed."""
    within = FOUND[mistake.name][0]
    found = any(mistake.seeds_until_found(first, within)[0] for first in (0, 10_000))
    assert found, f"twice {within} scenarios have not found it"


@pytest.mark.whole
@pytest.mark.parametrize("name", QUICK)
def test_some_are_found(name):
    check_it_is_found(by_name(name))


@pytest.mark.whole
def test_one_in_the_program_is_found():
    check_it_is_found(by_name("duplicate_is_new"))


@pytest.mark.full
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", FOUND)
def test_it_is_found(name):
    check_it_is_found(by_name(name))


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_it_still_applies(mistake):
    if mistake.in_program:
        mistake.program()
    elif mistake.text:
        with text_replaced(*mistake.text):
            pass


def test_each_has_its_seeds():
    names = [mistake.name for mistake in MISTAKES]
    assert len(set(names)) == len(names)
    assert {*FOUND, *NOT_FOUND} == set(names)
    assert not {*FOUND} & {*NOT_FOUND}
    assert sum(mistake.new for mistake in MISTAKES if mistake.name in FOUND) >= 20


def test_what_is_planted_is_taken_away():
    before = outgoing.WholeRows.contribution.__code__
    mistake = by_name("first_fragment_served")
    with text_replaced(*mistake.text):
        assert outgoing.WholeRows.contribution.__code__ != before
    assert outgoing.WholeRows.contribution.__code__ is before


def test_a_text_that_is_not_there_is_said():
    missing = Planted("", "", "", text=("host/pace.py", "no such text", ""))
    with pytest.raises(ValueError, match="has changed"), text_replaced(*missing.text):
        pass


def test_the_table_lists_them():
    lines = (ROOT / "docs/evidence/reliability.md").read_text().splitlines()
    begin = lines.index(HEAD[0])
    there = lines[begin : begin + len(FOUND) + len(HEAD)]
    assert there == table(), "python -m tests.virtual.planted.table prints what is to stand there"
