# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Answers that came before are what the controller makes of them."""

from dataclasses import replace

import numpy as np

from switchgnn.controller.p4runtime.wire import decode_rows
from switchgnn.lab.virtual.subject import KnownRows
from tests.controller.p4runtime.test_wire import LAYOUT, random_rows, response


def test_an_equal_answer_is_decoded_once_and_another_is_not():
    known = KnownRows()
    table = LAYOUT.table("fanout")
    one, other = (response(random_rows("fanout", seed, 20)) for seed in (1, 2))
    first = known.decode(table, [one])
    assert np.array_equal(first.data, decode_rows(table, [one]).data)
    assert known.decode(table, [one[:0], one]) is first
    assert np.array_equal(known.decode(table, [other]).data, decode_rows(table, [other]).data)


def test_a_table_of_another_program_is_another():
    known = KnownRows()
    table = LAYOUT.table("fanout")
    renamed = replace(table, name="spread")
    answer = response(random_rows("fanout", 1, 20))
    assert known.decode(table, [answer]).table == table
    assert known.decode(renamed, [answer]).table == renamed
