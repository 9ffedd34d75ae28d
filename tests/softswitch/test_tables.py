# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Match kinds and priorities against a search through all entries."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchgnn.softswitch.state import action_target
from switchgnn.softswitch.tables import Entry, Exact, Prefix, Range, Ternary, matches
from tests.softswitch.harness import Rig, config_bytes

CONFIG = config_bytes("tables")
MISS = 0xEEEE


def probe(table, a, b=0):
    return (
        bytes([table])
        + a.to_bytes(2, "big")
        + (b << 4).to_bytes(2, "big")
        + MISS.to_bytes(2, "big")
    )


class Tables(Rig):
    def __init__(self):
        super().__init__(CONFIG)

    def answer(self, table, a, b=0):
        """(port, b, result) of the packet sent, or None."""
        sent = self.run(1, probe(table, a, b))
        if not sent:
            return None
        ((port, frame),) = sent
        return port, int.from_bytes(frame[3:5], "big") >> 4, int.from_bytes(frame[5:7], "big")

    def add(self, table, match, action, data=(), priority=0):
        name = f"Enter.{table}"
        definition = self.compiled.program.tables[name]
        target = action_target(definition, definition.actions[f"Enter.{action}"], data)
        entry = Entry(tuple(match), priority, target)
        self.state.tables[name].put(entry)
        return entry


# Few values, so that entries overlap and keys hit.
A = st.integers(0, 15).map(lambda n: n << 12 | n << 4)
B = st.integers(0, 3)
PREFIX_A = st.builds(lambda a, n: Prefix(a >> (16 - n) << (16 - n), n, 16), A, st.integers(0, 16))
TERNARY_A = st.builds(
    lambda a, m: Ternary(a & m, m), A, st.sampled_from([0, 0xF000, 0x00F0, 0xFFFF])
)
TERNARY_B = st.builds(lambda b, m: Ternary(b & m, m), B, st.sampled_from([0, 1, 2, 0xFFF]))
OPTIONAL_A = st.one_of(st.just(Ternary(0, 0)), A.map(lambda a: Ternary(a, 0xFFFF)))
OPTIONAL_B = st.one_of(st.just(Ternary(0, 0)), B.map(lambda b: Ternary(b, 0xFFF)))
RANGE_A = st.builds(lambda x, y: Range(min(x, y), max(x, y)), A, A)

KINDS = {
    0: ("exact_table", "counted", st.tuples(A.map(Exact), B.map(Exact)), False),
    1: ("lpm_table", "answer", st.tuples(B.map(Exact), PREFIX_A), False),
    2: ("single_lpm_table", "answer", st.tuples(PREFIX_A), False),
    3: ("ternary_table", "answer", st.tuples(TERNARY_A, TERNARY_B), True),
    4: ("range_table", "answer", st.tuples(RANGE_A, TERNARY_B), True),
    5: ("optional_table", "answer", st.tuples(OPTIONAL_A, OPTIONAL_B), True),
}


def _rank(entry):
    prefixes = [match.length for match in entry.matches if isinstance(match, Prefix)]
    return entry.priority, sum(prefixes)


def _oracle(entries, key):
    hits = [e for e in entries if all(matches(m, v) for m, v in zip(e.matches, key, strict=True))]
    if not hits:
        return MISS
    return max(hits, key=_rank).target[1][0]


@pytest.mark.parametrize("number", KINDS)
def test_match_kind_against_brute_force(number):
    table, action, match_strategy, prioritised = KINDS[number]

    @settings(deadline=None)
    @given(
        st.lists(match_strategy, max_size=25, unique=True),
        st.lists(st.tuples(A, B), min_size=1, max_size=20),
        st.randoms(use_true_random=False),
        st.data(),
    )
    def check(match_list, keys, shuffler, data):
        rig = Tables()
        priorities = list(range(1, len(match_list) + 1)) if prioritised else [0] * len(match_list)
        shuffler.shuffle(priorities)
        entries = [
            rig.add(table, match, action, (index,), priority)
            for index, (match, priority) in enumerate(zip(match_list, priorities, strict=True))
        ]
        _check_keys(rig, entries, keys)
        # Cached lookups must not survive removed entries.
        gone = data.draw(st.sets(st.sampled_from(range(len(entries) or 1))))
        for index in gone & set(range(len(entries))):
            rig.state.tables[f"Enter.{table}"].remove(entries[index].key)
        _check_keys(rig, [e for i, e in enumerate(entries) if i not in gone], keys)

    def _check_keys(rig, entries, keys):
        for a, b in keys:
            key = {1: (b, a), 2: (a,)}.get(number, (a, b))
            assert rig.answer(number, a, b) == (1, b, _oracle(entries, key))

    check()


def test_replacing_an_entry_changes_its_answer():
    rig = Tables()
    for value in (5, 6):
        rig.add("ternary_table", (Ternary(0, 0), Ternary(0, 0)), "answer", (value,), 1)
        assert rig.answer(3, 1)[2] == value


@pytest.mark.parametrize(
    ("a", "expected"), [(0x1299, 1), (0x1234, 1), (0x5534, 3), (0x7777, 999), (0xDEAD, None)]
)
def test_constant_entries_in_the_order_of_the_program(a, expected):
    answer = Tables().answer(6, a)
    assert (answer and answer[2]) == expected


def test_default_entry_can_be_replaced_and_reset():
    rig = Tables()
    table = rig.state.tables["Enter.plain_default"]
    assert rig.answer(7, 0)[2] == 7
    definition = rig.compiled.program.tables["Enter.plain_default"]
    table.set_default(action_target(definition, definition.actions["Enter.refuse"], ()))
    assert rig.answer(7, 0) is None
    table.reset()
    assert rig.answer(7, 0)[2] == 7


def test_hit_and_miss_take_different_ways():
    rig = Tables()
    assert rig.answer(8, 5) == (1, 2, MISS)
    rig.add("hit_table", (Exact(5),), "answer", (77,))
    assert rig.answer(8, 5) == (1, 1, 77)


def test_switch_on_the_action_that_ran():
    rig = Tables()
    assert rig.answer(9, 1) == (1, 5, MISS)
    rig.add("switch_table", (Exact(1),), "answer", (11,))
    rig.add("switch_table", (Exact(2),), "refuse")
    assert rig.answer(9, 1) == (1, 3, 11)
    assert rig.answer(9, 2) == (4, 0, MISS)


def test_direct_counters_count_hits_only():
    rig = Tables()
    entry = rig.add("exact_table", (Exact(1), Exact(2)), "counted", (3,))
    for a in (1, 1, 9):
        rig.answer(0, a, 2)
    found = rig.state.tables["Enter.exact_table"].find(entry.key)
    assert list(found.target[2]) == [2, 14]


def test_indirect_counters_ignore_an_index_outside():
    rig = Tables()
    for table in (3, 3, 200):
        rig.answer(table, 0)
    counter = rig.state.counters["Enter.probes"]
    assert (counter.packets[3], counter.bytes[3]) == (2, 14)
    assert sum(counter.packets) == 2


def test_registers_wrap_and_ignore_an_index_outside():
    rig = Tables()
    cells = rig.state.registers["Enter.cells"].cells
    cells[2] = (1 << 40) - 1
    assert rig.answer(10, 2)[2] == 0xFFFF
    assert cells[2] == 0
    assert rig.answer(10, 200)[2] == 0
    assert cells == [0] * 8


def test_reset_forgets_everything_but_the_program():
    rig = Tables()
    rig.add("hit_table", (Exact(5),), "answer", (77,))
    rig.answer(10, 1)
    rig.state.reset()
    assert rig.answer(8, 5) == (1, 2, MISS)
    assert list(rig.state.registers["Enter.cells"].cells) == [0] * 8
    assert rig.answer(6, 0x1299)[2] == 1
