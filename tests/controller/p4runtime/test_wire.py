"""Rows and their bytes: made and taken apart in bulk as by protobuf, and compared."""

import numpy as np
import pytest
from finsy.proto import p4r
from hypothesis import given, settings
from hypothesis import strategies as st

from switchgnn.controller.base.errors import PlanRefusedError
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.controller.p4runtime.rows import (
    DELETE,
    INSERT,
    MODIFY,
    concatenate,
    count_entities,
    decode_rows,
    difference,
    encode_rows,
    make_rows,
    row_update,
)
from switchgnn.p4src import load_program
from tests.controller.fake_server import canonical_entry

LAYOUT = Layout.from_text(load_program().p4info)
KEYED = sorted(name for name, table in LAYOUT.tables.items() if table.keys)


def random_rows(name, seed, count):
    """Rows of all actions; small numbers are as likely as large ones."""
    rng = np.random.default_rng(seed)
    table = LAYOUT.table(name)

    def numbers(bits):
        return [
            int.from_bytes(rng.bytes(16), "big") >> 128 - int(rng.integers(0, bits + 1))
            for _ in range(count)
        ]

    found = []
    for action in table.actions:
        values = {field.name: numbers(field.bits) for field in (*table.keys, *action.params)}
        found.append(make_rows(table, action.name, values, count))
    return concatenate(table, *found)


def response(rows, spell=canonical_entry):
    entries = [row_update(INSERT, rows.table, row).entity.table_entry for row in rows.data]
    entities = [p4r.Entity(table_entry=spell(entry)) for entry in entries]
    return p4r.ReadResponse(entities=entities).SerializeToString()


@pytest.mark.parametrize("kind", [INSERT, MODIFY, DELETE])
@pytest.mark.parametrize("name", KEYED)
def test_encoded_rows_parse_to_the_messages_of_the_plain_path(name, kind):
    rows = random_rows(name, 1, 25)
    messages = [row_update(kind, rows.table, row) for row in rows.data]
    parsed = [
        update
        for request in encode_rows(kind, rows, batch=10)
        for update in p4r.WriteRequest.FromString(request.updates).updates
    ]
    by_bytes = p4r.Update.SerializeToString
    assert sorted(map(by_bytes, parsed)) == sorted(map(by_bytes, messages))


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(KEYED), st.integers(0, 2**32), st.integers(0, 12))
def test_decoding_gives_back_what_was_encoded(name, seed, count):
    rows = random_rows(name, seed, count)
    raw = response(rows)
    assert count_entities(raw) == len(rows)
    assert sorted(map(bytes, decode_rows(rows.table, [raw]).data)) == sorted(map(bytes, rows.data))


def add_metadata(entry):
    entry = canonical_entry(entry)
    entry.metadata = b"x"
    return entry


def reverse_keys(entry):
    entry = canonical_entry(entry)
    matches = list(entry.match)[::-1]
    del entry.match[:]
    entry.match.extend(matches)
    return entry


def add_zeros(entry):
    for match in entry.match:
        match.exact.value = b"\0\0" + match.exact.value
    return entry


@pytest.mark.parametrize(
    "spell",
    [add_metadata, reverse_keys, add_zeros, lambda entry: entry],
    ids=["metadata", "reverse", "zeros", "same"],
)
@pytest.mark.parametrize("name", KEYED)
def test_entries_spelled_otherwise_are_understood_as_well(name, spell):
    rows = random_rows(name, 3, 6)
    mixed = [response(rows.select(slice(0, 3)), spell), response(rows.select(slice(3, None)))]
    assert sorted(map(bytes, decode_rows(rows.table, mixed).data)) == sorted(map(bytes, rows.data))


def test_a_number_too_wide_for_its_field_is_refused():
    table = LAYOUT.table("worker")
    values = {"port": np.array([512]), "job": 1, "worker": 0, "worker_bit": 1}
    with pytest.raises(PlanRefusedError, match="port of table worker has 9 bits, too few for 512"):
        make_rows(table, "set_worker", values, 1)


SOURCE = LAYOUT.table("source")
entries = st.dictionaries(st.integers(0, 30), st.integers(0, 2))


def rows_of(content):
    values = {"job": 1, "src_id": list(content), "port": list(content.values()), "index": 0}
    return make_rows(SOURCE, "set_source", values, len(content))


def content_of(rows):
    action = SOURCE.action("set_source")
    keys, ports = rows.key_columns()["src_id"], rows.param_columns(action)["port"]
    return dict(zip(map(int, keys), map(int, ports), strict=True))


@given(entries, entries)
def test_applying_a_difference_gives_the_other_set_with_least_writes(before, after):
    found = difference(rows_of(before), rows_of(after))
    result = dict(before)
    for key in content_of(found.delete):
        del result[key]
    for key, value in content_of(found.modify).items():
        assert result[key] != value
        result[key] = value
    for key, value in content_of(found.insert).items():
        assert key not in result
        result[key] = value
    assert result == after
    changed = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
    assert len(found) == len(changed)
