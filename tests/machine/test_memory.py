"""Requests that exceed the memory are refused first."""

import pytest

from switchgnn.base import machine as memory


def test_what_the_memory_has_no_room_for(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 2_500_000)
    memory.require_memory("Sums", 2_500_000, "give less")
    with pytest.raises(memory.TooLargeError) as error:
        memory.require_memory("Sums", 2_600_000, "give less")
    assert str(error.value) == "Sums take 2.60 MB of memory, and 2.50 MB are free: give less."


def test_no_number_is_too_large_to_be_named(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 3_200_000_000)
    with pytest.raises(
        memory.TooLargeError, match=r"take 1(,000)+ GB of memory, and 3\.20 GB are free"
    ):
        memory.require_memory("Sums", 10**609, "give less")


def test_the_memory_of_this_machine_is_known():
    assert memory.available_memory() > 1 << 20


def test_a_machine_that_does_not_tell(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    memory.require_memory("Sums", 1 << 80, "give less")


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "0.0 kB"),
        (4_180, "4.2 kB"),
        (99_999, "100.0 kB"),
        (999_000, "999.0 kB"),
        (1_204_000, "1.20 MB"),
        (2_500_000_000, "2.50 GB"),
    ],
)
def test_bytes_are_told_in_the_unit_that_shows_them(number, words):
    assert memory.size_text(number) == words


def test_counts_have_their_nouns():
    one, none, two, more = map(memory.Amount, (1, 0, 2, 1000))
    said = f"{one:round}, {none:table entry}, {two:vertex}, {more:epoch}"
    assert said == "1 round, 0 table entries, 2 vertices, 1,000 epochs"
    assert f"{memory.Amount(2):leaf}, {memory.Amount(3):pass}" == "2 leaves, 3 passes"


@pytest.mark.parametrize(
    ("error", "bound", "said"),
    [
        (0.0, 1.5e-6, "0, within the bound 1.5e-06"),
        (0.003906, 0.00390625, "0.003906, within the bound 0.0039062"),
        (0.0039062, 0.0039061, "0.0039062, NOT WITHIN the bound 0.0039061"),
        (0.25, 0.25, "0.25, exactly the bound 0.25"),
    ],
)
def test_an_error_and_its_bound_differ_in_print(error, bound, said):
    assert memory.against_bound(error, bound) == said
