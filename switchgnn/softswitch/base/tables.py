"""Match tables: exact, longest prefix, and prioritised ternary and range."""

from collections.abc import Iterable, MutableSequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import NamedTuple

# Action number, parameters, and [packets, bytes] or None.
Target = tuple[int, tuple[int, ...], MutableSequence[int] | None]


# The mask of a match that has to be exact, whatever the width.
EVERY_BIT = -1


def prefix_mask(length: int, width: int) -> int:
    """Return the mask of a prefix of ``length`` of ``width`` bits."""
    return ((1 << length) - 1) << (width - length)


class Ternary(NamedTuple):
    """Matches values equal to ``value`` where ``mask`` has ones; also exact ones and prefixes."""

    value: int
    mask: int


class Range(NamedTuple):
    """Matches values from ``low`` to ``high``, both included."""

    low: int
    high: int


Match = Ternary | Range
EntryKey = tuple[tuple[Match, ...], int]  # matches and priority


@dataclass
class Entry:
    """An installed entry; the largest ``priority`` wins, 0 where priorities do not apply."""

    matches: tuple[Match, ...]
    priority: int
    target: Target
    metadata: bytes = b""
    constant: bool = False

    @property
    def key(self) -> EntryKey:
        """Matches and priority, unique in a table."""
        return self.matches, self.priority

    def copied(self, counts: Iterable[int] | None) -> "Entry":
        """Return the entry with its own copy of counts."""
        number, data, _ = self.target
        return replace(self, target=(number, data, None if counts is None else list(counts)))


def matches(match: Match, value: int) -> bool:
    """Return whether a value satisfies one match field."""
    if isinstance(match, Range):
        return match.low <= value <= match.high
    return value & match.mask == match.value


class EntryTable:
    """The entries of one table, and in this class its lookup by the interpreter."""

    def __init__(self, match_type: str, initial: Target, constants: Iterable[Entry]) -> None:
        self._exact = match_type == "exact"
        self._rank = prefix_bits if match_type == "lpm" else attrgetter("priority")
        self._entries: dict[EntryKey, Entry] = {}
        self._ranked: list[Entry] | None = None
        self._fill(initial, constants)

    def _fill(self, initial: Target, constants: Iterable[Entry]) -> None:
        self.initial_default = initial
        self.set_default(initial)
        for entry in constants:
            self.put(entry)

    def set_default(self, target: Target) -> None:
        """Replace the default entry."""
        self.default = target

    def find(self, key: EntryKey) -> Entry | None:
        """Return the entry with this key, if there is one."""
        return self._entries.get(key)

    def put(self, entry: Entry) -> None:
        """Add an entry, or replace the one with the same key, whose counts stay."""
        known = self._entries.get(entry.key)
        if known is not None:
            entry = replace(entry, target=(*entry.target[:2], known.target[2]))
        self._entries[entry.key] = entry
        self._ranked = None

    def remove(self, key: EntryKey) -> None:
        """Remove the entry with this key."""
        del self._entries[key]
        self._ranked = None

    def lookup(self, key: tuple[int, ...]) -> Target | None:
        """Return the target of the entry that matches, if there is one."""
        if self._exact:
            found = self._entries.get((tuple(Ternary(value, EVERY_BIT) for value in key), 0))
            return None if found is None else found.target
        if self._ranked is None:
            # Of equals the oldest entry comes first.
            self._ranked = sorted(self._entries.values(), key=self._rank, reverse=True)
        matching = (each for each in self._ranked if all(map(matches, each.matches, key)))
        return next((each.target for each in matching), None)

    def snapshot(self) -> Iterable[Entry]:
        """Return a copy of the entries with their counts."""
        return [each.copied(each.target[2]) for each in self._entries.values()]

    def __len__(self) -> int:
        return len(self._entries)


def prefix_bits(entry: Entry) -> int:
    """Return what orders the entries of a table with a prefix: the bits that they compare."""
    return sum(match.mask.bit_count() for match in entry.matches if isinstance(match, Ternary))
