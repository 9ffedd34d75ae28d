# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Dataclasses from JSON; errors name the field."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from switchgnn.base.records import RecordError, make_record, parse_json


@dataclass(frozen=True)
class Part:
    size: int


@dataclass(frozen=True)
class Whole:
    name: str
    parts: tuple[Part, ...]
    by_name: Mapping[str, Part]
    rates: tuple[float | None, ...] = (None,)
    where: Mapping[str, str | int] | None = None
    exact: bool = False


RIGHT = {"name": "n", "parts": [{"size": 1}], "by_name": {"a": {"size": 2}}}


def test_what_is_right_is_a_frozen_record():
    made = make_record(Whole, RIGHT | {"rates": [1, None, 0.5], "where": {"a": 1, "b": "c"}})
    assert made == Whole("n", (Part(1),), {"a": Part(2)}, (1.0, None, 0.5), {"a": 1, "b": "c"})
    assert make_record(Part, {"size": 10**30}) == Part(10**30)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": 1}, "name: expected str, got int"),
        ({"name": None}, "name: expected str, got null"),
        ({"exact": 1}, "exact: expected bool, got int"),
        ({"parts": [{"size": 1}, {"size": True}]}, "parts[1].size: expected int, got bool"),
        ({"parts": [{"size": 1.0}]}, "parts[0].size: expected int, got float"),
        ({"parts": {}}, "parts: expected array, got object"),
        ({"parts": [{}]}, "parts[0]: object missing required field size"),
        ({"parts": [{"size": 1, "hue": 2}]}, "parts[0]: unknown field hue; known: size"),
        ({"by_name": {"a": {"size": 1, "hue": 2}}}, "by_name.a: unknown field hue; known: size"),
        ({"by_name": {"a": {"size": "1"}}}, "by_name[...].size: expected int, got str"),
        ({"where": {"a": 1.5}}, "where[...]: expected int | str, got float"),
        (
            {"hue": 1},
            "unknown field hue; known: by_name, exact, name, parts, rates, where",
        ),
    ],
)
def test_what_is_wrong_is_named(changes, said):
    with pytest.raises(RecordError) as error:
        make_record(Whole, RIGHT | changes)
    assert str(error.value) == said


@pytest.mark.parametrize("told", [None, [], 1, "text"])
def test_another_thing_than_an_object(told):
    with pytest.raises(RecordError, match="expected object"):
        make_record(Whole, told)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff", b"NaN", b"[Infinity]", b"{'a': 1}", b"1e999", b"[" * 10**5]
)
def test_what_is_not_json(data):
    with pytest.raises(RecordError, match="it is not JSON") as error:
        parse_json(data)
    assert "\n" not in str(error.value)
