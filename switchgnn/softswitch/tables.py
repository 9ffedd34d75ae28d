# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Match tables at run time: exact, longest prefix, and prioritised ternary and range."""

from bisect import insort
from collections.abc import Callable, Iterator, MutableSequence
from dataclasses import dataclass, field
from typing import Protocol

Key = int | tuple[int, ...]
# What the generated code reads: action number, parameters, and [packets, bytes] or None.
Target = tuple[int, tuple[int, ...], MutableSequence[int] | None]


@dataclass(frozen=True)
class Exact:
    """Matches one value."""

    value: int


@dataclass(frozen=True)
class Prefix:
    """Matches values that share the first ``length`` of ``width`` bits."""

    value: int
    length: int
    width: int

    @property
    def mask(self) -> int:
        """Ones over the prefix."""
        return ((1 << self.length) - 1) << (self.width - self.length)


@dataclass(frozen=True)
class Ternary:
    """Matches values equal to ``value`` where ``mask`` has ones."""

    value: int
    mask: int


@dataclass(frozen=True)
class Range:
    """Matches values from ``low`` to ``high``, both included."""

    low: int
    high: int


Match = Exact | Prefix | Ternary | Range
EntryKey = tuple[tuple[Match, ...], int]  # matches and priority


@dataclass
class Entry:
    """One installed entry; the largest ``priority`` wins, and it is 0 where it has no meaning."""

    matches: tuple[Match, ...]
    priority: int
    target: Target
    metadata: bytes = b""
    constant: bool = False

    @property
    def key(self) -> EntryKey:
        """The matches and the priority, which together are unique in a table."""
        return self.matches, self.priority


class Matcher(Protocol):
    """Finds the target of a key among installed entries."""

    lookup: Callable[[Key], Target | None]

    def insert(self, entry: Entry) -> None:
        """Add an entry, or replace the one with the same matches and priority."""

    def remove(self, entry: Entry) -> None:
        """Remove an entry."""

    def clear(self) -> None:
        """Remove every entry."""


class ExactMatcher:
    """Matches keys whose fields are all exact, with one dictionary."""

    def __init__(self) -> None:
        self._targets: dict[Key, Target] = {}
        self.lookup: Callable[[Key], Target | None] = self._targets.get

    def insert(self, entry: Entry) -> None:
        """Add or replace an entry."""
        self._targets[_exact_key(entry)] = entry.target

    def remove(self, entry: Entry) -> None:
        """Remove an entry."""
        del self._targets[_exact_key(entry)]

    def clear(self) -> None:
        """Remove every entry."""
        self._targets.clear()


def _exact_key(entry: Entry) -> Key:
    values = tuple(match.value for match in entry.matches if isinstance(match, Exact))
    return values[0] if len(values) == 1 else values


class PrefixMatcher:
    """Matches one prefix among exact fields, with one dictionary per prefix length.

    Args:
        position: the place of the prefix field in the key.
        width: the width of the prefix field in bits.
        single: whether the prefix field is the only one, so that a key is one integer.
    """

    def __init__(self, position: int, width: int, single: bool) -> None:
        self._position = position
        self._width = width
        self._single = single
        self._by_length: dict[int, dict[Key, Target]] = {}
        self._order: tuple[tuple[int, dict[Key, Target]], ...] = ()
        self.lookup: Callable[[Key], Target | None] = (
            self._lookup_single if single else self._lookup_tuple
        )

    def insert(self, entry: Entry) -> None:
        """Add or replace an entry."""
        length = self._length(entry)
        if length not in self._by_length:
            self._by_length[length] = {}
            self._reorder()
        self._by_length[length][self._key(entry)] = entry.target

    def remove(self, entry: Entry) -> None:
        """Remove an entry."""
        length = self._length(entry)
        del self._by_length[length][self._key(entry)]
        if not self._by_length[length]:
            del self._by_length[length]
            self._reorder()

    def clear(self) -> None:
        """Remove every entry."""
        self._by_length.clear()
        self._order = ()

    def _reorder(self) -> None:
        longest_first = sorted(self._by_length.items(), reverse=True)
        self._order = tuple((self._width - length, table) for length, table in longest_first)

    def _length(self, entry: Entry) -> int:
        match = entry.matches[self._position]
        return match.length if isinstance(match, Prefix) else self._width

    def _key(self, entry: Entry) -> Key:
        shift = self._width - self._length(entry)
        values = [0 if isinstance(match, Range) else match.value for match in entry.matches]
        values[self._position] >>= shift
        return values[0] if self._single else tuple(values)

    def _lookup_single(self, key: Key) -> Target | None:
        value = key if isinstance(key, int) else key[0]
        for shift, table in self._order:
            target = table.get(value >> shift)
            if target is not None:
                return target
        return None

    def _lookup_tuple(self, key: Key) -> Target | None:
        parts = list(key) if isinstance(key, tuple) else [key]
        value = parts[self._position]
        for shift, table in self._order:
            parts[self._position] = value >> shift
            target = table.get(tuple(parts))
            if target is not None:
                return target
        return None


@dataclass(order=True)
class _Ranked:
    order: tuple[int, int]
    entry: Entry = field(compare=False)


# Remembered answers per table; when there are more, all are forgotten.
_REMEMBERED = 4096
_UNKNOWN: Target = (-2, (), None)


class PriorityMatcher:
    """Matches ternary and range fields by priority, and remembers recent keys."""

    def __init__(self) -> None:
        self._ranked: list[_Ranked] = []
        self._by_key: dict[EntryKey, _Ranked] = {}
        self._recent: dict[Key, Target | None] = {}
        self._sequence = 0
        self.lookup: Callable[[Key], Target | None] = self._lookup

    def insert(self, entry: Entry) -> None:
        """Add an entry, or replace the one with the same matches and priority."""
        known = self._by_key.get(entry.key)
        if known is not None:
            known.entry = entry
        else:
            self._sequence += 1
            ranked = _Ranked((-entry.priority, self._sequence), entry)
            self._by_key[entry.key] = ranked
            insort(self._ranked, ranked)
        self._recent.clear()

    def remove(self, entry: Entry) -> None:
        """Remove an entry."""
        self._ranked.remove(self._by_key.pop(entry.key))
        self._recent.clear()

    def clear(self) -> None:
        """Remove every entry."""
        self._ranked.clear()
        self._by_key.clear()
        self._recent.clear()

    def _lookup(self, key: Key) -> Target | None:
        target = self._recent.get(key, _UNKNOWN)
        if target is not _UNKNOWN:
            return target
        found = self._search((key,) if isinstance(key, int) else key)
        if len(self._recent) >= _REMEMBERED:
            self._recent.clear()
        self._recent[key] = found
        return found

    def _search(self, key: tuple[int, ...]) -> Target | None:
        for ranked in self._ranked:
            if all(map(matches, ranked.entry.matches, key)):
                return ranked.entry.target
        return None


def matches(match: Match, value: int) -> bool:
    """Return whether a value satisfies one match field."""
    if isinstance(match, Exact):
        return value == match.value
    if isinstance(match, Range):
        return match.low <= value <= match.high
    return value & match.mask == match.value & match.mask


class MatchTable:
    """The entries of one table; ``default`` stays the same list object.

    Args:
        matcher: finds the entry of a key.
        initial: the program's default entry.
        constants: the entries that the program declares.
    """

    def __init__(self, matcher: Matcher, initial: Target, constants: tuple[Entry, ...]) -> None:
        self.matcher = matcher
        self.entries: dict[EntryKey, Entry] = {}
        self.initial_default = initial
        self.default: list[Target] = [initial]
        self._constants = constants
        self.reset()

    def put(self, entry: Entry) -> None:
        """Add an entry, or replace the one with the same key."""
        self.entries[entry.key] = entry
        self.matcher.insert(entry)

    def remove(self, key: EntryKey) -> None:
        """Remove the entry with this key."""
        self.matcher.remove(self.entries.pop(key))

    def set_default(self, target: Target) -> None:
        """Replace the default entry."""
        self.default[0] = target

    def reset(self) -> None:
        """Restore the entries and the default entry of the program."""
        self.entries.clear()
        self.matcher.clear()
        self.set_default(self.initial_default)
        for entry in self._constants:
            self.put(entry)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries.values())
