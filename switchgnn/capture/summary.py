"""Summaries of captured packets: a chapter for each block of a round, or round between hosts.

An all-reduce has a chapter for as many fragments as the switch has slots for them.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from switchgnn.capture.packet import KIND_NAMES, DecodedPacket, kind_name
from switchgnn.host.wire.header import OPENING_BLOCK, Header, Kind, session_and_round

_BILLION = 1_000_000_000
_WORKER = re.compile(r"w\d+")
_CABLE = re.compile(r"l\d+s\d+")
# A hostile capture may have as many addresses as packets.
_MOST_PARTIES = 512
_OTHERS = "others"
# A repeated FEATURE or REDUCE, and a raw FEATURE on request.
AGAIN, RAW = "again", "raw"
# REDUCE_SLOTS of headers.p4.
_REDUCED_TOGETHER = 512
# In signs of life while nothing is reduced; they would keep a chapter open.
_NO_FRAGMENT = 0
_REPEATED = (Kind.FEATURE, Kind.REDUCE)
_MOST_OPEN = 4
# About 25 MB.
_MOST_REMEMBERED = 1 << 18


class ChapterKey(NamedTuple):
    """The key of a chapter; between hosts (`direct`) session and block are 0.

    Of an all-reduce (`reduce`), round and block are the upper and lower bits of the first fragment.
    """

    direct: bool
    session: int
    round: int
    block: int
    reduce: bool = False

    def words(self) -> str:
        """Return the key as text."""
        if self.direct:
            return f"round {self.round} between hosts"
        if self.reduce:
            first = self.round << 16 | self.block
            last = first + _REDUCED_TOGETHER - 1
            return f"session {self.session}, all-reduce of fragments {first} to {last}"
        what = "opening" if self.block == OPENING_BLOCK else f"block {self.block}"
        return f"session {self.session}, round {self.round}, {what}"


def chapter_key(packet: DecodedPacket, header: Header) -> ChapterKey:
    """Return the chapter to which a packet belongs."""
    if packet.direct:
        return ChapterKey(True, 0, session_and_round(header.session, header.round), 0)
    if packet.number is not None:
        first = header.block_id // _REDUCED_TOGETHER * _REDUCED_TOGETHER
        return ChapterKey(False, header.session, header.round, first, True)
    return ChapterKey(False, header.session, header.round, header.block_id)


class Chapter:
    """Counts the packets of one chapter by sender and receiver; all times are ns since 1970."""

    def __init__(self, key: ChapterKey, begin: int) -> None:
        self.key = key
        self._begin = self._end = begin
        self._first: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._sent: dict[str, Counter[str]] = {}
        self._got: dict[str, Counter[str]] = {}
        self._fragments: set[int] = set()
        self._seen: set[int] = set()
        self._forgetful = False

    @property
    def remembered(self) -> int:
        """The number of features remembered to detect repetitions."""
        return len(self._seen)

    def forget(self) -> None:
        """Stop detecting repetitions."""
        self._seen.clear()
        self._forgetful = True

    def note(self, packet: DecodedPacket, header: Header) -> None:
        """Count a packet."""
        time, kind = packet.captured.time, kind_name(header)
        self._begin, self._end = min(self._begin, time), max(self._end, time)
        self._first[kind] = min(self._first.get(kind, time), time)
        self._last[kind] = max(self._last.get(kind, time), time)
        if header.kind in (Kind.FEATURE, Kind.SUM):
            self._fragments.add(header.fragment)
        elif header.kind in (Kind.REDUCE, Kind.REDUCED) and packet.number is not None:
            self._fragments.add(packet.number)
        sends, gets = _ends_that_count(packet)
        if sends:
            self._count(self._sent, packet.sender, kind)
            if header.kind in _REPEATED:
                self._count_feature(packet, header)
        if gets:
            self._count(self._got, packet.receiver, kind)

    def _count(self, counts: dict[str, Counter[str]], party: str, what: str) -> None:
        if party not in counts and len(counts) >= _MOST_PARTIES:
            party = _OTHERS
        counts.setdefault(party, Counter())[what] += 1

    def _count_feature(self, packet: DecodedPacket, header: Header) -> None:
        if header.resend and header.kind == Kind.FEATURE:
            self._count(self._sent, packet.sender, RAW)
            return
        if self._forgetful:
            return
        # Between hosts, and from leaves to spines, ids are those of one receiver.
        part = header.fragment if packet.number is None else packet.number
        feature = hash((header.src_id, part, packet.sender, packet.receiver))
        if feature in self._seen:
            self._count(self._sent, packet.sender, AGAIN)
        else:
            self._seen.add(feature)

    def lines(self, begin: int) -> list[str]:
        """Return the chapter as lines, with times in seconds since `begin` (ns since 1970)."""
        times = f"{_seconds(self._begin, begin)} to {_seconds(self._end, begin)} s"
        title = f"{self.key.words()}: {times}"
        if self._fragments:
            title += f", {len(self._fragments)} fragment{'s' if len(self._fragments) > 1 else ''}"
        told = [
            f"{when} {kind} at {_seconds(moments[kind], begin)}"
            for when, kind, moments in (
                ("first", "feature", self._first),
                ("last", "sum", self._last),
                ("last", "advance", self._last),
                ("first", "reduce", self._first),
                ("last", "reduced", self._last),
            )
            if kind in moments
        ]
        lines = ["; ".join([title, *told])]
        for party in self._parties():
            sent, got = self._words(self._sent, party), self._words(self._got, party)
            both = [words for words in (sent and f"sent {sent}", got and f"got {got}") if words]
            lines.append(f"  {party} {'; '.join(both)}")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return the chapter as plain data for JSON, with times in ns since 1970."""
        return {
            **self.key._asdict(),
            "begin_ns": self._begin,
            "end_ns": self._end,
            "fragments": len(self._fragments),
            "first_ns": dict(self._first),
            "last_ns": dict(self._last),
            "repetitions_known": not self._forgetful,
            "parties": {
                party: {
                    "sent": dict(self._sent.get(party, {})),
                    "got": dict(self._got.get(party, {})),
                }
                for party in self._parties()
            },
        }

    def _parties(self) -> list[str]:
        return sorted({*self._sent, *self._got}, key=_by_number)

    def _words(self, counts: dict[str, Counter[str]], party: str) -> str:
        words = []
        here = counts.get(party, Counter())
        for number, kind in KIND_NAMES.items():
            if not here[kind]:
                continue
            word = f"{here[kind]:,} {kind}"
            if number in _REPEATED:
                notes = [f"{here[what]:,} {what}" for what in (AGAIN, RAW) if here[what]]
                if self._forgetful and counts is self._sent:
                    notes.append("repetitions not looked for")
                word += f" ({', '.join(notes)})" if notes else ""
            words.append(word)
        return ", ".join(words)


def _ends_that_count(packet: DecodedPacket) -> tuple[bool, bool]:
    """Return whether the packet counts for its sender, and for its receiver.

    On a worker's link only the worker counts, and between switches only the switches, so that
    nothing counts twice if all links of a run are read. On unknown links workers count, or both
    ends if neither is a worker.
    """
    link, ends = packet.captured.link, (packet.sender, packet.receiver)
    workers = [bool(_WORKER.fullmatch(end)) for end in ends]
    if _WORKER.fullmatch(link):
        counts = [end == link for end in ends]
    elif _CABLE.fullmatch(link):
        counts = [not worker for worker in workers] if not all(workers) else [False, False]
    else:
        counts = workers if any(workers) else [True, True]
    return counts[0], counts[1]


def _seconds(time: int, begin: int) -> str:
    return f"{(time - begin) / _BILLION:.6f}"


def _by_number(party: str) -> tuple[str, int, str]:
    words = re.fullmatch(r"(\D*?)(\d{1,9})", party)
    return (words[1], int(words[2]), party) if words else (party, 0, party)


class Summary:
    """Turns packets in order into chapters.

    `late` counts packets of chapters that were already closed, `unsound` those that are invalid or
    truncated before the end of the header.
    """

    def __init__(self, most_open: int = _MOST_OPEN, remembered: int = _MOST_REMEMBERED) -> None:
        self.late = 0
        self.unsound = 0
        self._most_open, self._most_remembered = most_open, remembered
        self._open: dict[ChapterKey, Chapter] = {}
        # The last closed ones, so that late packets open no new chapter.
        self._told: dict[ChapterKey, None] = {}

    def note(self, packet: DecodedPacket) -> Iterator[Chapter]:
        """Count a packet; yield chapters that are presumably complete."""
        if packet.parsed is None or packet.problem is not None:
            self.unsound += 1
            return
        if packet.number == _NO_FRAGMENT:
            return
        header = packet.parsed.header
        key = chapter_key(packet, header)
        if key in self._told:
            self.late += 1
            return
        chapter = self._open.get(key)
        if chapter is None:
            chapter = self._open[key] = Chapter(key, packet.captured.time)
        chapter.note(packet, header)
        while len(self._open) > self._most_open:
            yield self._close_first()
        yield from self._keep_memory_small()

    def rest(self) -> Iterator[Chapter]:
        """Yield the open chapters."""
        while self._open:
            yield self._close_first()

    def _close_first(self) -> Chapter:
        key = next(iter(self._open))
        self._told[key] = None
        if len(self._told) > 64 * self._most_open:
            del self._told[next(iter(self._told))]
        return self._open.pop(key)

    def _keep_memory_small(self) -> Iterator[Chapter]:
        while sum(each.remembered for each in self._open.values()) > self._most_remembered:
            if len(self._open) > 1:
                yield self._close_first()
            else:
                next(iter(self._open.values())).forget()
