# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Prints packets, or their story, as they come."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import typer

from switchgnn.capture.captured import Captured
from switchgnn.capture.chapter import Chapter
from switchgnn.capture.lines import line_of, object_of
from switchgnn.capture.packet import Packet, decode
from switchgnn.capture.story import Story
from switchgnn.capture.wanted import Wanted
from switchgnn.host.wire.header import Kind


@dataclass(frozen=True)
class Form:
    """How packets are told.

    Attributes:
        story: block by block.
        details: every field, with Scapy.
        as_json: as objects.
        at_once: nothing waits in a buffer.
    """

    story: bool = False
    details: bool = False
    as_json: bool = False
    at_once: bool = False


@dataclass
class _Counts:
    kinds: Counter[str] = field(default_factory=Counter)
    unsound: int = 0
    hidden: int = 0
    others: int = 0


class Telling:
    """Takes frames, and prints what somebody wants to see of them.

    Args:
        names: of workers and switches, by Ethernet address.
        wanted: which packets are told.
        form: how.
        limit: packets, or blocks of a story, after which it ends; None: never.
    """

    def __init__(
        self, names: Mapping[bytes, str], wanted: Wanted, form: Form, limit: int | None
    ) -> None:
        self._names, self._wanted, self._form, self._limit = names, wanted, form, limit
        self._story = Story()
        self._counts = _Counts()
        self._begin: int | None = None
        self._told = 0

    def tell(self, frames: Iterable[Captured]) -> None:
        """Print packets until there are no more, or the limit is reached."""
        for captured in frames:
            packet = decode(captured, self._names)
            if packet is None:
                self._counts.others += 1
                continue
            if self._begin is None:
                self._begin = captured.time
            if not self._wanted.takes(packet):
                self._counts.hidden += 1
                continue
            self._count(packet)
            if self._form.story:
                self._tell_story(packet)
            else:
                self._tell_packet(packet)
            if self._full():
                return

    def finish(self, dropped: int = 0) -> None:
        """Print the end of the story, and the counts on standard error.

        Args:
            dropped: frames that were lost because they came too fast.
        """
        for chapter in self._story.rest():
            if not self._full():
                self._tell_chapter(chapter)
        sys.stdout.flush()
        counts = self._counts
        kinds = ", ".join(
            f"{counts.kinds[name]:,} {name}"
            for name in (kind.name.lower() for kind in Kind)
            if counts.kinds[name]
        )
        total = counts.kinds.total() + counts.unsound
        words = f"{total:,} packets" + (f": {kinds}" if kinds else "")
        for number, what in (
            (counts.unsound, "not sound"),
            (self._story.late, "later than their block was told"),
            (counts.hidden, "of others than those asked for"),
            (counts.others, "frames of other protocols"),
            (dropped, "lost, as they came faster than they were read"),
        ):
            words += f"; {number:,} {what}" if number else ""
        typer.echo(f"{words}.", err=True)

    def _full(self) -> bool:
        return self._limit is not None and self._told >= self._limit

    def _count(self, packet: Packet) -> None:
        if packet.fields is None or packet.problem is not None:
            self._counts.unsound += 1
        else:
            self._counts.kinds[packet.fields.kind_name] += 1

    def _tell_packet(self, packet: Packet) -> None:
        self._told += 1
        if self._form.as_json:
            self._print(json.dumps(object_of(packet)))
            return
        self._print(line_of(packet, self._begin or 0))
        if self._form.details:
            # Scapy takes half a second to begin, and is GPL-2.0: see the README.
            from switchgnn.capture.details import details_of  # noqa: PLC0415

            self._print(details_of(packet))

    def _tell_story(self, packet: Packet) -> None:
        for chapter in self._story.note(packet):
            if not self._full():
                self._tell_chapter(chapter)

    def _tell_chapter(self, chapter: Chapter) -> None:
        self._told += 1
        if self._form.as_json:
            self._print(json.dumps(chapter.to_dict()))
            return
        for line in chapter.lines(self._begin or 0):
            self._print(line)

    def _print(self, text: str) -> None:
        sys.stdout.write(f"{text}\n")
        if self._form.at_once:
            sys.stdout.flush()
