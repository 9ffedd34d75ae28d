# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What has happened, row by row, in the order in which it is noticed."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from switchgnn.virtual.diagram.happenings import Crossing, Note
from switchgnn.virtual.diagram.labels import Label, label_of
from switchgnn.virtual.scenario.scenario import FaultKind, IncidentKind

_LATER = (FaultKind.LATE.value, FaultKind.REORDER.value)
_AGAIN = FaultKind.DUPLICATE.value
_MOST_NAMED = 6
_INCIDENTS = tuple(f"{kind.value} " for kind in IncidentKind)
_CHECK = "check"
# What marks begin with by which a party goes or comes, or all workers are new ones.
GONE, BACK, NEW_WORKERS = ("ends", "is killed", "gives up"), ("starts",), "has installed"
_MICROSECONDS, _MILLISECONDS, _SECONDS = 1e3, 1e6, 1e9


@dataclass(frozen=True)
class Arrow:
    """A frame, or some that come together.

    Attributes:
        time: when it comes, or when it is sent if it does not come, in nanoseconds.
        line: the line and the direction.
        comes: whether it arrives in this row.
        later: whether it comes later; it is lost if it neither comes nor comes later.
        faulty: whether something has happened to it.
        frames: how many there are.
        label: what it is.
        words: all that is said of it.
    """

    time: int
    line: str
    comes: bool
    later: bool
    faulty: bool
    frames: int
    label: Label
    words: str


@dataclass(frozen=True)
class Mark:
    """Something that a party does or suffers.

    Attributes:
        time: in nanoseconds.
        party: who.
        words: what.
    """

    time: int
    party: str
    words: str

    @property
    def what(self) -> str:
        """What, without who."""
        return self.words.removeprefix(self.party).strip()

    @property
    def changes(self) -> bool:
        """Whether somebody comes or goes by it."""
        return self.what.startswith((*GONE, *BACK, NEW_WORKERS))


@dataclass(frozen=True)
class Across:
    """Something that all should see.

    Attributes:
        time: in nanoseconds.
        words: what.
        broken: the name of an invariant that does not hold; empty for what happens on purpose.
    """

    time: int
    words: str
    broken: str = ""


@dataclass(frozen=True)
class Gap:
    """Rows that are left out.

    Attributes:
        time: of the first of them, in nanoseconds.
        words: how many there are.
    """

    time: int
    words: str


Row = Arrow | Mark | Across | Gap


def rows_of(happenings: Iterable[Crossing | Note]) -> list[Row]:
    """Return the rows of a diagram."""
    rows: list[Row] = []
    for happening in happenings:
        if isinstance(happening, Note):
            rows.append(_noted(happening))
        else:
            rows += _arrows(happening)
    rows.sort(key=lambda row: row.time)
    return list(_together(rows))


def how_long(nanoseconds: int) -> str:
    """Return a time as a person says it."""
    for unit, name in ((_SECONDS, "s"), (_MILLISECONDS, "ms"), (_MICROSECONDS, "us")):
        if nanoseconds >= unit:
            return f"{nanoseconds / unit:.3g} {name}"
    return f"{nanoseconds} ns"


def _noted(note: Note) -> Row:
    if note.where == _CHECK:
        return Across(note.time, note.what, broken=note.what.partition(":")[0])
    if note.what.startswith(_INCIDENTS):
        kind, _, seconds = note.what.partition(" ")
        lasts = f", {seconds} s" if seconds != "0" else ""
        return Across(note.time, f"{kind} of {note.where}{lasts}")
    return Mark(note.time, note.where, f"{note.where} {note.what}")


def _arrows(crossing: Crossing) -> Iterator[Arrow]:
    label = label_of(crossing.headers)
    fate, _, bits = crossing.fate.partition(":")
    comes = crossing.arrives > 0
    at = crossing.arrives if comes else crossing.time
    said = {
        "passed": "",
        "loss": "lost",
        "silence": "lost, the line is silent",
        _AGAIN: "comes twice",
        FaultKind.CORRUPT.value: f"changed on its way, bit {bits.replace(',', ', ')}",
    }
    whole = Arrow(at, crossing.line, comes, False, fate != "passed", 1, label, said.get(fate, fate))
    if fate not in _LATER:
        yield whole
        return
    lasts = how_long(crossing.arrives - crossing.time)
    what = "comes again" if fate == FaultKind.LATE.value else "held back, comes"
    words = f"{what} {lasts} after it was sent"
    yield replace(whole, time=crossing.time, comes=False, later=True, words=words)
    yield replace(whole, words=f"sent {lasts} ago")


def _together(rows: list[Row]) -> Iterator[Row]:
    """Put frames into one row that differ in what they carry only."""
    for _, equal in groupby(rows, key=_alike):
        group = list(equal)
        first = group[0]
        if not isinstance(first, Arrow):
            yield from group
            continue
        arrows = [row for row in group if isinstance(row, Arrow)]
        yield replace(first, frames=len(arrows), words=_words(arrows))


def _alike(row: Row) -> object:
    if not isinstance(row, Arrow):
        return row
    return (
        row.time,
        row.line,
        row.comes,
        row.later,
        row.words,
        row.label.kind,
        row.label.tag,
        row.label.more,
    )


def _words(arrows: list[Arrow]) -> str:
    label = arrows[0].label
    named = [arrow.label.which for arrow in arrows[:_MOST_NAMED]]
    which = ", ".join(dict.fromkeys(name for name in named if name))
    if len(arrows) > _MOST_NAMED:
        which += f" and {len(arrows) - _MOST_NAMED} more"
    words = [label.kind, label.tag, f"of {which}" if which else "", label.more]
    said = " ".join(word for word in words if word)
    if len(arrows) > 1:
        said = f"{len(arrows)} x {said}"
    return f"{said}: {arrows[0].words}" if arrows[0].words else said
