# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Differences between sets of rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.controller.errors import PlanRefusedError
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.controller.p4runtime.rows import difference, make_rows, require_unique
from switchgnn.p4src import load_program

SOURCE = Layout.from_text(load_program().p4info).table("source")
entries = st.dictionaries(st.integers(0, 30), st.integers(0, 2))


def rows_of(content):
    values = {"src_id": list(content), "port": list(content.values()), "index": 0}
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


def test_an_entry_named_twice_is_refused_by_its_key():
    values = {"src_id": np.array([4, 7, 7]), "port": 0, "index": 0}
    rows = make_rows(SOURCE, "set_source", values, 3)
    with pytest.raises(PlanRefusedError, match="table source twice: src_id 7"):
        require_unique(rows)
