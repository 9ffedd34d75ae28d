# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Match tables: exact, longest prefix, and prioritised ternary and range."""

from abc import ABC, abstractmethod
from bisect import insort
from collections.abc import Callable, Iterable, MutableSequence
from dataclasses import dataclass, field, replace
from typing import Protocol

Key = int | tuple[int, ...]
# For generated code: action number, parameters, and [packets, bytes] or None.
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
    """Matches exact keys with one dictionary."""

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
    """Matches one prefix among exact fields, with a dictionary per prefix length."""

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


# Cached answers per table; the cache is cleared when full.
_REMEMBERED = 4096
_UNKNOWN: Target = (-2, (), None)


class PriorityMatcher:
    """Matches ternary and range fields by priority; caches recent keys."""

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


class EntryTable(ABC):
    """The entries of one table; generated code holds the list ``default``."""

    def __init__(self, initial: Target, constants: tuple[Entry, ...]) -> None:
        self.initial_default = initial
        self.default: list[Target] = [initial]
        self._constants = constants
        self._fill()

    @abstractmethod
    def find(self, key: EntryKey) -> Entry | None:
        """Return the entry with this key, if there is one."""

    @abstractmethod
    def put(self, entry: Entry) -> None:
        """Add an entry, or replace the one with the same key."""

    @abstractmethod
    def remove(self, key: EntryKey) -> None:
        """Remove the entry with this key."""

    @abstractmethod
    def clear(self) -> None:
        """Remove every entry."""

    @abstractmethod
    def set_counts(self, key: EntryKey, counts: tuple[int, int]) -> None:
        """Set the packet and byte counts of an entry with direct counters."""

    @abstractmethod
    def snapshot(self) -> Iterable[Entry]:
        """Return a copy of the entries with their counts."""

    @abstractmethod
    def __len__(self) -> int: ...

    def set_default(self, target: Target) -> None:
        """Replace the default entry."""
        self.default[0] = target

    def reset(self) -> None:
        """Restore the entries and the default entry of the program."""
        self.clear()
        self._fill()

    def _fill(self) -> None:
        self.set_default(self.initial_default)
        for entry in self._constants:
            self.put(entry)


class MatchTable(EntryTable):
    """A table of a program that runs as Python."""

    def __init__(self, matcher: Matcher, initial: Target, constants: tuple[Entry, ...]) -> None:
        self.matcher = matcher
        self._entries: dict[EntryKey, Entry] = {}
        super().__init__(initial, constants)

    def find(self, key: EntryKey) -> Entry | None:
        """Return the entry with this key, if there is one."""
        return self._entries.get(key)

    def put(self, entry: Entry) -> None:
        """Add an entry, or replace the one with the same key."""
        self._entries[entry.key] = entry
        self.matcher.insert(entry)

    def remove(self, key: EntryKey) -> None:
        """Remove the entry with this key."""
        self.matcher.remove(self._entries.pop(key))

    def clear(self) -> None:
        """Remove every entry."""
        self._entries.clear()
        self.matcher.clear()

    def set_counts(self, key: EntryKey, counts: tuple[int, int]) -> None:
        """Set the packet and byte counts of an entry with direct counters."""
        here = self._entries[key].target[2]
        if here is not None:
            here[:] = counts

    def snapshot(self) -> Iterable[Entry]:
        """Return a copy of the entries with their counts."""
        return [_copied(entry) for entry in self._entries.values()]

    def __len__(self) -> int:
        return len(self._entries)


def _copied(entry: Entry) -> Entry:
    number, data, counts = entry.target
    return entry if counts is None else replace(entry, target=(number, data, list(counts)))


@dataclass(frozen=True)
class ActionFormat:
    """P4Runtime's encoding of an action: (id, bits) of each parameter."""

    ident: int
    number: int
    parameters: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class EntryFormat:
    """P4Runtime's encoding of the entries of an exact table.

    Attributes:
        size: maximum number of entries; 0: unlimited.
        writable: whether controllers may change the entries.
        fields: (id, bits) of each key field.
    """

    name: str
    ident: int
    size: int
    writable: bool
    fields: tuple[tuple[int, int], ...]
    actions: tuple[ActionFormat, ...]


class Batch(Protocol):
    """The updates of a Write request; ``rest`` is the request without those read natively."""

    rest: bytes

    def __len__(self) -> int: ...

    def apply(self, begin: int, end: int) -> int:
        """Apply updates from ``begin`` on; return the place of the first left to Python, or end."""

    def is_read(self, place: int) -> bool:
        """Return whether an update was read natively, so that it is not in the rest."""

    def update(self, place: int) -> bytes:
        """Return the bytes of an update."""


class Batches(Protocol):
    """Reads and writes many entries at once."""

    def read(self, request: bytes) -> Batch | None:
        """Read a Write request; None if its encoding is unusual."""

    def answers(self, ident: int, entries: Iterable[Entry], at_most: int) -> Iterable[bytes] | None:
        """Encode entries as Read responses of at most ``at_most`` entries, or return None."""
