"""The fates of packets, loops, and tables against a search through all entries."""

import json
import os
import struct
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchgnn.softswitch.base.state import Replica
from switchgnn.softswitch.base.tables import Entry, Range, Ternary, matches, prefix_mask
from switchgnn.softswitch.lowering.loader import GivenProgram
from tests.softswitch.harness import Rig, action_target, config_bytes, exactly
from tests.softswitch.test_refused_programs import parser_operation

NOTHING, DROP, UNICAST, MULTICAST, CLONE, RESUBMIT, NO_GROUP = range(7)
CLONE_UNLISTED, DROP_PORT, TRUNCATE, EXIT, UNKNOWN_GROUP = 7, 8, 9, 10, 11
CHANGE = STAY = 12  # first: change a header in the second pass; second: in no other
REPORT = struct.Struct(">HHIHIHHI")


@pytest.fixture
def rig():
    rig = Rig(config_bytes("fates"))
    rig.state.set_group(1, (Replica(4, 7), Replica(5, 8), Replica(4, 9)))
    rig.state.set_session(5, (Replica(6, 3),))
    rig.state.set_session(6, (Replica(7, 0), Replica(8, 1)))
    return rig


def order(first=0, second=0, egress=0, argument=0, payload=b"payload"):
    return bytes([first, second, egress, 0]) + argument.to_bytes(2, "big") + payload


def report(frame):
    """(ingress port, egress port, instance type, rid, length, kept, lost, queue depth)."""
    return REPORT.unpack_from(frame, 6)


def ports(sent):
    return [port for port, _ in sent]


def test_unicast_reports_normal_instance_and_length(rig):
    ((port, frame),) = rig.run(9, order(UNICAST, argument=3))
    assert port == 3
    assert report(frame) == (9, 3, 0, 0, 13, 0x11, 0x22, 0)
    assert frame[3] == 1
    assert frame.endswith(b"payload")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (DROP, NOTHING, []),
        (DROP_PORT, NOTHING, []),
        (DROP, UNICAST, [3]),  # the last writer of egress_spec wins
        (UNICAST, DROP, []),
        (MULTICAST, DROP, []),  # dropping clears the group
        (DROP, MULTICAST, [4, 5, 4]),  # a group beats the drop port
        (MULTICAST, UNICAST, [4, 5, 4]),  # and a unicast port
        (MULTICAST, DROP_PORT, [4, 5, 4]),
        (MULTICAST, NO_GROUP, [2]),
        (UNKNOWN_GROUP, NOTHING, []),
        (MULTICAST, RESUBMIT, [3]),  # resubmitting beats a group
        (RESUBMIT, DROP, [3]),
        (CLONE, DROP, [6]),  # clones are made whatever becomes of the packet
        (CLONE, MULTICAST, [6, 4, 5, 4]),
        (CLONE, RESUBMIT, [6, 3]),
        (CLONE, CLONE_UNLISTED, [7, 8, 2]),  # the last clone call wins
        (MULTICAST, EXIT, [4, 5, 4]),
        (CLONE_UNLISTED, NOTHING, [7, 8, 2]),
    ],
)
def test_precedence_after_ingress(rig, first, second, expected):
    assert ports(rig.run(1, order(first, second, argument=3))) == expected


def test_multicast_copies_keep_metadata_and_differ_in_rid(rig):
    reports = [report(frame) for _, frame in rig.run(9, order(MULTICAST))]
    assert [r[1:4] for r in reports] == [(4, 5, 7), (5, 5, 8), (4, 5, 9)]
    assert all(r[0] == 9 and r[5:7] == (0x11, 0x22) for r in reports)
    assert [r[7] for r in reports] == [0, 0, 1]


def test_ingress_clone_is_the_original_packet_with_listed_fields_only(rig):
    clone, original = rig.run(9, order(CLONE))
    assert (clone[0], original[0]) == (6, 2)
    assert clone[1][3] == 0  # the round written by ingress is not in the clone
    assert report(clone[1]) == (0, 6, 1, 3, 13, 0x11, 0, 0)
    assert original[1][3] == 1


def test_clones_without_a_list_or_a_session(rig):
    assert report(rig.run(9, order(CLONE_UNLISTED))[0][1]) == (0, 7, 1, 0, 13, 0, 0, 0)
    rig.state.set_session(5, ())
    assert ports(rig.run(1, order(CLONE))) == [2]


def test_clone_session_can_shorten_copies(rig):
    rig.state.set_session(5, (Replica(6, 3),), max_length=10)
    clone, original = rig.run(1, order(CLONE))
    assert len(clone[1]) == 10
    assert len(original[1]) == 13 + REPORT.size


def test_resubmit_starts_over_with_listed_fields_only(rig):
    ((port, frame),) = rig.run(9, order(RESUBMIT))
    assert port == 3
    assert frame[4:6] == b"\x00\x11"
    assert frame[3] == 0
    # simple_switch starts the second pass without the ingress port.
    assert report(frame) == (0, 3, 0, 0, 13, 0x11, 0, 0)
    assert rig.counts.resubmitted == 1


def test_egress_clone_has_the_headers_of_egress(rig):
    original, clone = rig.run(9, order(egress=2))
    assert original[0] == 2
    assert clone[0] == 6
    ingress_port, port, instance_type, rid, _, kept, lost, _ = report(clone[1])
    assert (ingress_port, port, instance_type, rid, kept, lost) == (0, 6, 2, 3, 0x11, 0)
    assert clone[1][3] == 1
    # Also of a packet that is dropped.
    assert ports(rig.run(9, order(egress=3))) == [6]


@pytest.mark.parametrize(("first", "argument", "more"), [(NOTHING, 5, 0), (CHANGE, 6, REPORT.size)])
def test_a_packet_whose_headers_stay_recirculates_as_it_is(rig, first, argument, more):
    """It need not be parsed again, unless one of its passes changes a header."""
    ((_, frame),) = rig.run(9, order(first, STAY, egress=4, argument=5))
    assert rig.counts.recirculated == 3
    assert (frame[3], frame[4:6], frame[-7:]) == (0, argument.to_bytes(2, "big"), b"payload")
    assert report(frame) == (0, 2, 0, 0, 13 + more, 0x44, 0x22, 0)
    assert len(frame) == 13 + more + REPORT.size


def operating(op, *parameters):
    """A change of the parser: one more operation."""
    named = [{"type": kind, "value": value} for kind, value in parameters]
    return lambda document: parser_operation(document, op, *named)


def told_of_metadata(document):
    """The parser reads what a packet keeps."""
    state = document["parsers"][0]["parse_states"][0]
    state["transition_key"] = [{"type": "field", "value": ["scalars", "metadata.kept"]}]
    state["transitions"].insert(
        0, {"type": "hexstr", "value": "0x0011", "mask": None, "next_state": "start"}
    )


def extracting_twice(document):
    state = document["parsers"][0]["parse_states"][0]
    report = {"type": "regular", "value": "report"}
    state["parser_ops"].insert(0, {"op": "extract", "parameters": [report]})


CHANGES = [
    # Metadata that ingress reads, and a header.
    operating("set", ("field", ["scalars", "metadata.lost"]), ("hexstr", "0x0005")),
    operating("set", ("field", ["order", "round"]), ("hexstr", "0x01")),
    operating("advance", ("hexstr", "0x00000008")),
    *(told_of_metadata, extracting_twice),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_parser_may_have_to_run_again(change):
    document = json.loads(config_bytes("fates"))
    assert GivenProgram(json.dumps(document).encode()).lowered.stays_parsed
    change(document)
    assert not GivenProgram(json.dumps(document).encode()).lowered.stays_parsed


def test_recirculation_keeps_listed_fields_and_the_deparsed_packet(rig):
    ((port, frame),) = rig.run(9, order(egress=4))
    assert port == 2
    assert frame[3] == 3
    assert report(frame) == (0, 2, 0, 0, 13, 0x33, 0x22, 0)
    assert rig.counts.recirculated == 2
    assert rig.run(9, order(egress=1)) == []
    rig.run(1, order(DROP))
    # Dropping in egress beats recirculation.
    assert (rig.counts.ingress_drops, rig.counts.egress_drops) == (1, 1)
    assert rig.counts.recirculated == 2
    assert len(rig.run(1, order(TRUNCATE))[0][1]) == 8


def looping(port, second=NOTHING, payload=b"payload"):
    """A packet that recirculates from a port twice, or with STAY three times, and leaves there."""
    return order(UNICAST, second, egress=4, argument=port, payload=payload)


def numbered(port, second, count):
    return [looping(port, second, bytes([number])) for number in range(count)]


def left(rig, port):
    """The last bytes of the frames that have left a port."""
    return [frame[-1] for each, frame in rig.sent if each == port]


@pytest.mark.parametrize(("second", "passes"), [(NOTHING, 2), (STAY, 3)])
def test_ports_take_turns_to_recirculate(rig, second, passes):
    """A port with three packets gets every second pass, although another one has fifty."""
    flooded, other = 100, 101
    for frame in numbered(flooded, second, 50) + numbered(other, second, 3):
        rig.forwarder.receive(9, frame)
    for done in range(1, 3 * passes + 1):
        rig.forwarder.run_again(2)
        assert left(rig, other) == list(range(3))[: max(0, done - 3 * (passes - 1))]
    assert left(rig, flooded) == []
    rig.finish()
    assert (left(rig, flooded), left(rig, other)) == (list(range(50)), [0, 1, 2])
    assert rig.counts.again_drops == 0


FLOODS = {"deparsed": looping(100), "parsed": looping(100, STAY), "resubmitted": order(RESUBMIT)}


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
def test_a_port_that_may_not_recirculate_more_takes_no_room_of_others(rig, flood):
    """Resubmitted packets have a queue of their own."""
    for _ in range(256 + 44):
        rig.forwarder.receive(9, flood)
    for frame in numbered(0, NOTHING, 3):
        rig.forwarder.receive(9, frame)
    assert rig.counts.again_drops == 44
    rig.finish()
    assert (left(rig, 0), len(rig.sent)) == ([0, 1, 2], 256 + 3)


ADD, ADD_THIRDS, NESTED, NESTED_THIRDS, SEARCH, SEARCH_OTHER, ENDLESS = range(1, 8)


def looping_control():
    """The program repeated for as many turns as the packet says."""
    document = json.loads(config_bytes("loops"))
    pipeline = document["pipelines"][0]
    turns, limit = ({"type": "field", "value": ["n", name]} for name in ("turns", "limit"))
    condition = {"op": "<", "left": turns, "right": limit}
    table = next(t for t in pipeline["tables"] if t["name"] == "Enter.work")
    more = {"name": "more", "id": 99, "true_next": table["name"], "false_next": None}
    more["expression"] = {"type": "expression", "value": condition}
    pipeline["conditionals"].append(more)
    table["base_default_next"] = "more"
    table["next_tables"] = dict.fromkeys(table["next_tables"], "more")
    return json.dumps(document).encode()


@cache
def rig_of(kind, control=False):
    return kind(looping_control() if control else config_bytes("loops"))


def run(rig, what, count, limit=0, turns=0):
    """Sum, product and turns computed by the program."""
    frame = bytes([what, count, limit]) + bytes(8) + bytes([turns]) + b"rest"
    ((port, sent),) = rig.run(0, frame)
    assert (port, sent[:3], sent[12:]) == (1, frame[:3], b"rest")
    return int.from_bytes(sent[3:7], "big"), int.from_bytes(sent[7:11], "big"), sent[11]


# The pairs i <= j, less those of 6, up to the first 9.
@pytest.mark.parametrize(
    ("what", "count", "limit", "product"),
    [
        (NESTED, 0, 5, 0),
        (NESTED, 3, 3, 3 + 2 + 1),
        (NESTED, 2, 8, 7 + 6),
        (NESTED, 1, 20, 8),
        (NESTED, 12, 12, 8 + 7 + 6 + 5 + 4 + 3 + 2 + 2 + 1 + 0 + 2 + 1),
        # Every third: 0, 3 and then 9; 1, 4, 7 and 10.
        (NESTED_THIRDS, 1, 12, 2),
        (NESTED_THIRDS, 2, 12, 2 + 4),
    ],
)
def test_loops_in_loops(what, count, limit, product):
    assert run(rig_of(Rig), ADD, count) == (sum(range(count)), 0, 0)
    assert run(rig_of(Rig), ADD_THIRDS, count) == (sum(range(0, count, 3)), 0, 0)
    assert run(rig_of(Rig), what, count, limit) == (0, product, count)


def test_a_loop_that_is_left():
    rig = Rig(config_bytes("loops"))
    turns = [run(rig, what, 0)[2] for what in (SEARCH, SEARCH_OTHER, SEARCH, SEARCH_OTHER)]
    assert turns == [0, 1, 0, 1]
    assert list(rig.state.registers["Enter.cells"].cells) == [77, 78, *[0] * 14]


@pytest.mark.parametrize(("limit", "turns", "after"), [(5, 0, 5), (5, 3, 5), (5, 9, 10), (0, 0, 1)])
def test_a_loop_of_tables(limit, turns, after):
    assert run(rig_of(Rig, True), NESTED, 1, limit, turns) == (0, limit, after)
    # The loop inside has no end of its own.
    assert run(rig_of(Rig, True), ENDLESS, 0, 5, 4) == (0, 0, 4)


CONFIG = config_bytes("tables")
MISS = 0xEEEE
TABLE_EXAMPLES = 100 if os.environ.get("SWITCHGNN_LEVEL") == "all" else 30


def probe(table, a, b=0):
    return struct.pack(">BHHH", table, a, b << 4, MISS)


class Tables(Rig):
    def __init__(self, config=CONFIG):
        super().__init__(config)

    def answer(self, table, a, b=0):
        """(port, b, result) of the packet sent, or None."""
        sent = self.run(1, probe(table, a, b))
        if not sent:
            return None
        ((port, frame),) = sent
        return port, int.from_bytes(frame[3:5], "big") >> 4, int.from_bytes(frame[5:7], "big")

    def add(self, table, match, action, data=(), priority=0):
        name = f"Enter.{table}"
        definition = self.program.program.tables[name]
        target = action_target(definition, definition.actions[f"Enter.{action}"], data)
        entry = Entry(tuple(match), priority, target)
        self.state.tables[name].put(entry)
        return entry


# Few values, so that entries overlap and keys hit.
A = st.integers(0, 15).map(lambda n: n << 12 | n << 4)
B = st.integers(0, 3)
PREFIX_A = st.builds(
    lambda a, n: Ternary(a & prefix_mask(n, 16), prefix_mask(n, 16)), A, st.integers(0, 16)
)
TERNARY_A = st.builds(
    lambda a, m: Ternary(a & m, m), A, st.sampled_from([0, 0xF000, 0x00F0, 0xFFFF])
)
TERNARY_B = st.builds(lambda b, m: Ternary(b & m, m), B, st.sampled_from([0, 1, 2, 0xFFF]))
OPTIONAL_A = st.one_of(st.just(Ternary(0, 0)), A.map(lambda a: Ternary(a, 0xFFFF)))
OPTIONAL_B = st.one_of(st.just(Ternary(0, 0)), B.map(lambda b: Ternary(b, 0xFFF)))
RANGE_A = st.builds(lambda x, y: Range(min(x, y), max(x, y)), A, A)
KINDS = {
    0: ("exact_table", "counted", st.tuples(A.map(exactly), B.map(exactly)), False),
    1: ("lpm_table", "answer", st.tuples(B.map(exactly), PREFIX_A), False),
    2: ("single_lpm_table", "answer", st.tuples(PREFIX_A), False),
    3: ("ternary_table", "answer", st.tuples(TERNARY_A, TERNARY_B), True),
    4: ("range_table", "answer", st.tuples(RANGE_A, TERNARY_B), True),
    5: ("optional_table", "answer", st.tuples(OPTIONAL_A, OPTIONAL_B), True),
}


def _rank(entry):
    masks = [match.mask for match in entry.matches if isinstance(match, Ternary)]
    return entry.priority, sum(mask.bit_count() for mask in masks)


def _oracle(entries, key):
    hits = [e for e in entries if all(matches(m, v) for m, v in zip(e.matches, key, strict=True))]
    if not hits:
        return MISS
    return max(hits, key=_rank).target[1][0]


@pytest.mark.whole
@pytest.mark.parametrize("number", KINDS)
def test_match_kind_against_brute_force(number):
    table, action, match_strategy, prioritised = KINDS[number]

    @settings(deadline=None, max_examples=TABLE_EXAMPLES)
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
        gone = data.draw(st.sets(st.sampled_from(range(len(entries) or 1))))
        for index in gone & set(range(len(entries))):
            rig.state.tables[f"Enter.{table}"].remove(entries[index].key)
        _check_keys(rig, [e for i, e in enumerate(entries) if i not in gone], keys)

    def _check_keys(rig, entries, keys):
        for a, b in keys:
            key = {1: (b, a), 2: (a,)}.get(number, (a, b))
            assert rig.answer(number, a, b) == (1, b, _oracle(entries, key))

    check()


@pytest.mark.whole
@pytest.mark.parametrize(
    ("a", "expected"), [(0x1299, 1), (0x1234, 1), (0x5534, 3), (0x7777, 999), (0xDEAD, None)]
)
def test_constant_entries_in_the_order_of_the_program(a, expected):
    answer = Tables().answer(6, a)
    assert (answer and answer[2]) == expected


def test_ways_after_a_table():
    rig = Tables()
    assert rig.answer(8, 5) == (1, 2, MISS)
    for value in (76, 77):
        rig.add("hit_table", (exactly(5),), "answer", (value,))
        assert rig.answer(8, 5) == (1, 1, value)
    assert rig.answer(9, 1) == (1, 5, MISS)
    rig.add("switch_table", (exactly(1),), "answer", (11,))
    rig.add("switch_table", (exactly(2),), "refuse")
    assert rig.answer(9, 1) == (1, 3, 11)
    assert rig.answer(9, 2) == (4, 0, MISS)


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
