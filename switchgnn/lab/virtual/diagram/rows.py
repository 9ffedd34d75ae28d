# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The rows of a diagram, in the order of their observation."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from switchgnn.host.wire.header import (
    HEADER,
    HEADER_BYTES,
    KIND_MASK,
    Kind,
    Refusal,
    fragment_number,
)
from switchgnn.lab.virtual.scenario import FaultKind, IncidentKind, Scenario
from switchgnn.planner.graphs.graph import FIRST_RESERVED_ID
from switchgnn.planner.partition.leaf_spine import even_leaf_spine
from switchgnn.topologies.site import cable_name

_IS_FETCH, _RESEND = 0x40, 0x10
_ROUND_BITS = 24
_GROUPS = {
    **dict.fromkeys((Kind.FEATURE, Kind.SUM, Kind.REDUCE, Kind.REDUCED), "data"),
    **dict.fromkeys((Kind.DONE, Kind.ADVANCE, Kind.WAITING), "barrier"),
}


@dataclass(frozen=True)
class Label:
    """The label of a frame; frames whose labels differ in ``which`` alone are shown together.

    Attributes:
        tag: session, round, block and fragment.
        which: distinguishes it from others of its kind and tag.
        more: further header fields.
        group: `data`, `barrier` or `repair`.
        exchange: its session and round.
    """

    kind: str
    tag: str
    which: str
    more: str
    group: str
    exchange: tuple[int, int]


def label_of(headers: bytes) -> Label:
    """Return the label of a frame with these headers."""
    if len(headers) < HEADER_BYTES or headers[12] & KIND_MASK not in set(Kind):
        return Label("another protocol", "", "", "", "repair", (0, 0))
    source, target, block, count, flags, _, word, group, number, _ = HEADER.unpack(
        headers[:HEADER_BYTES]
    )
    kind = Kind(flags & KIND_MASK)
    session, round_number = number >> _ROUND_BITS, number & ((1 << _ROUND_BITS) - 1)
    which, more = "", ""
    if kind is Kind.FETCH or (kind is Kind.FEATURE and flags & _RESEND):
        which = f"{_vertex(source)} for {target}"
    elif kind is Kind.FEATURE:
        which = _vertex(source)
    elif kind is Kind.RECALL:
        which = str(target)
    elif kind in (Kind.SUM, Kind.MISSING):
        which = f"{target} ({count})"
        more = "after a recall" if flags & _IS_FETCH else ""
    elif kind is Kind.ACK:
        more = f"group {group}: {count}"
    elif kind is Kind.DONE:
        more = f"next {count}.{fragment_number(group)}"
    elif kind is Kind.WAITING and count in set(Refusal) - {Refusal.NONE}:
        more = f"refuses: {Refusal(count).name.lower()}"
    return Label(
        kind=kind.name,
        tag=f"{session}.{round_number}.{block}.{fragment_number(word)}",
        which=which,
        more=more,
        group=_GROUPS.get(kind, "repair"),
        exchange=(session, round_number),
    )


def _vertex(source: int) -> str:
    if source < FIRST_RESERVED_ID:
        return str(source)
    return f"partial {source - FIRST_RESERVED_ID}"


_FRAME_WORDS = 5


@dataclass(frozen=True)
class Crossing:
    """A frame on a line, sent at `time` in nanoseconds; `arrives` is 0 if it is lost."""

    time: int
    line: str
    fate: str
    arrives: int
    headers: bytes


@dataclass(frozen=True)
class Note:
    """A note of a part, a line or `check`, at `time` in nanoseconds."""

    time: int
    where: str
    what: str


def read_trace(lines: Iterable[str]) -> list[Crossing | Note]:
    """Parse the lines of a trace, as `switchgnn.lab.virtual.timing.Trace` writes them."""
    return [_read(line) for line in lines]


def _read(line: str) -> Crossing | Note:
    words = line.split(" ")
    if len(words) == _FRAME_WORDS and words[1].endswith((".up", ".down")):
        time, where, fate, arrives, headers = words
        return Crossing(int(time), where, fate, int(arrives), bytes.fromhex(headers))
    time, where, what = line.split(" ", 2)
    return Note(int(time), where, what)


_LATER = (FaultKind.LATE.value, FaultKind.REORDER.value)
_AGAIN = FaultKind.DUPLICATE.value
_MOST_NAMED = 6
_INCIDENTS = tuple(f"{kind.value} " for kind in IncidentKind)
_CHECK = "check"
# Prefixes of marks at which a party goes or comes, or all workers are new ones.
GONE, BACK, NEW_WORKERS = ("ends", "is killed", "gives up"), ("starts",), "has installed"
_MICROSECONDS, _MILLISECONDS, _SECONDS = 1e3, 1e6, 1e9


@dataclass(frozen=True)
class Arrow:
    """A frame, or some that arrive together.

    Attributes:
        time: of arrival, or of sending if it does not arrive, in nanoseconds.
        line: the line and the direction.
        comes: whether it arrives in this row.
        later: whether it arrives later; lost if neither.
        faulty: whether it has a fault.
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
    """An event at a party."""

    time: int
    party: str
    words: str

    @property
    def what(self) -> str:
        """The event without the party."""
        return self.words.removeprefix(self.party).strip()

    @property
    def changes(self) -> bool:
        """Whether a party comes or goes."""
        return self.what.startswith((*GONE, *BACK, NEW_WORKERS))


@dataclass(frozen=True)
class Across:
    """An event across all columns; `broken` names a violated invariant, or is empty."""

    time: int
    words: str
    broken: str = ""


@dataclass(frozen=True)
class Gap:
    """Omitted rows, from `time` on."""

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
    """Return a time with a suitable unit."""
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
    """Merge frames that differ only in what they carry."""
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


CONTROLLER = "controller"


def parties_of(scenario: Scenario) -> tuple[str, ...]:
    """Return workers, switches and the controller, neighbours close together."""
    if not scenario.leaves:
        workers = [f"w{number}" for number in range(scenario.workers)]
        half = len(workers) // 2
        return (*workers[:half], "s0", *workers[half:], CONTROLLER)
    layout = even_leaf_spine(scenario.workers, scenario.leaves, scenario.spines)
    left, right = [], []
    for leaf in range(scenario.leaves):
        behind = [f"w{number}" for number in layout.workers_of(leaf)]
        if leaf < scenario.leaves // 2:
            left += [*behind, f"s{leaf}"]
        else:
            right += [f"s{leaf}", *behind]
    spines = [f"s{scenario.leaves + number}" for number in range(scenario.spines)]
    return (*left, *spines, *right, CONTROLLER)


def ends_of_lines(scenario: Scenario) -> dict[str, tuple[str, str]]:
    """Return sender and receiver of each line, by its name and direction."""
    places = [0] * scenario.workers
    if scenario.leaves:
        layout = even_leaf_spine(scenario.workers, scenario.leaves, scenario.spines)
        places = list(layout.leaf_of_worker)
    lower_and_upper = {
        f"w{worker}": (f"w{worker}", f"s{switch}") for worker, switch in enumerate(places)
    }
    for leaf in range(scenario.leaves):
        for spine in range(scenario.spines):
            ends = (f"s{leaf}", f"s{scenario.leaves + spine}")
            lower_and_upper[cable_name(leaf, spine)] = ends
    ends_of = {}
    for name, (lower, upper) in lower_and_upper.items():
        ends_of[f"{name}.up"] = (lower, upper)
        ends_of[f"{name}.down"] = (upper, lower)
    return ends_of
