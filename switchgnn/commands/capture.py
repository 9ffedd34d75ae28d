# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn capture`: packets of a file or an interface, and the story that they tell."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from switchgnn.base.described import read_network
from switchgnn.base.options import OUTPUT, PACKETS
from switchgnn.capture.errors import CaptureError, DamageError
from switchgnn.capture.files import STANDARD_INPUT, CaptureFiles
from switchgnn.capture.lines import line_of, object_of
from switchgnn.capture.live import Interface, interfaces
from switchgnn.capture.packet import Captured, Packet, Wanted, decode, names_in, usual_names
from switchgnn.capture.story import Chapter, Story
from switchgnn.commands.shared.console import end_like_interrupted
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
            from switchgnn.capture.lines import details_of  # noqa: PLC0415

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


_INTERRUPTED = 130

_KINDS_HELP = f"Only of this kind; repeatable: {', '.join(kind.name.lower() for kind in Kind)}."
KindOption = Enum("KindOption", {kind.name: kind.name.lower() for kind in Kind}, type=str)  # type: ignore[misc]


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog="Example: switchgnn capture packets --kind feature --limit 10")
def capture(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="pcap or pcapng files, or folders of them, merged by time; - for standard input.",
            show_default=False,
        ),
    ] = None,
    interface: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=PACKETS,
            show_default=False,
            help="Listen there instead, until Ctrl-C; needs root.",
        ),
    ] = None,
    network: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=OUTPUT,
            show_default=False,
            help="A network file: its addresses are shown as its names.",
        ),
    ] = None,
    kind: Annotated[
        list[KindOption] | None,
        typer.Option(metavar="KIND", rich_help_panel=PACKETS, show_default=False, help=_KINDS_HELP),
    ] = None,
    round_number: Annotated[
        list[int] | None,
        typer.Option(
            "--round",
            min=0,
            metavar="N",
            rich_help_panel=PACKETS,
            show_default=False,
            help="Only of this round; repeatable.",
        ),
    ] = None,
    block: Annotated[
        list[int] | None,
        typer.Option(
            min=0,
            metavar="N",
            rich_help_panel=PACKETS,
            show_default=False,
            help="Only of this block; repeatable.",
        ),
    ] = None,
    worker: Annotated[
        list[int] | None,
        typer.Option(
            min=0,
            metavar="N",
            rich_help_panel=PACKETS,
            show_default=False,
            help="Only what this worker sends or gets; repeatable.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            rich_help_panel=PACKETS,
            show_default=False,
            help="End after so many packets or, of a story, blocks.",
        ),
    ] = None,
    story: Annotated[
        bool,
        typer.Option("--story", rich_help_panel=OUTPUT, help="Tell what happened, block by block."),
    ] = False,
    details: Annotated[
        bool,
        typer.Option(
            "--details", rich_help_panel=OUTPUT, help="Every field of each packet, with Scapy."
        ),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            rich_help_panel=OUTPUT,
            help="One JSON object per line, for a packet or a block.",
        ),
    ] = False,
) -> None:
    """Show packets: a line for each, or the story of a run.

    `switchgnn run --pcap FOLDER` and `tcpdump -w FILE` write such files. A line
    has the seconds since the first packet, who sends to whom, the fields of the
    header, and, of a packet that is not sound, why. Counts come at the end. Exit
    code 2 when a file is damaged; what comes before the damage is shown.
    """
    if bool(files) == (interface is not None):
        raise CaptureError("Say what to read: files, - for the standard input, or --interface.")
    if [story, details, as_json].count(True) > 1 and not (story and as_json):
        raise CaptureError("--details goes neither with --story nor with --json.")
    end_like_interrupted()
    wanted = Wanted(
        frozenset(int(Kind[each.name]) for each in kind or ()),
        frozenset(round_number or ()),
        frozenset(block or ()),
        frozenset(worker or ()),
    )
    # What comes from elsewhere at this moment is shown at this moment.
    at_once = interface is not None or STANDARD_INPUT in (files or ())
    form = Form(story=story, details=details, as_json=as_json, at_once=at_once)
    names = usual_names() if network is None else names_in(read_network(network))
    telling = Telling(names, wanted, form, limit)
    code = _from_files(files, telling) if files else _from_interface(str(interface), telling)
    if code:
        raise typer.Exit(code)


def _from_files(names: list[str], telling: Telling) -> int:
    with CaptureFiles(names) as opened:
        try:
            telling.tell(opened)
        except KeyboardInterrupt:
            telling.finish()
            return _INTERRUPTED
        telling.finish()
    if opened.damages:
        raise DamageError("\n".join(map(str, opened.damages)))
    return 0


def _from_interface(name: str, telling: Telling) -> int:
    """Listen until Ctrl-C, which is no failure: nothing else ends it."""
    if name not in interfaces():
        raise CaptureError(
            f"There is no interface {name} here; there are {', '.join(interfaces())}."
        )
    with Interface(name) as listening:
        typer.echo(f"Listening at {name}; Ctrl-C ends it.", err=True)
        try:
            telling.tell(listening)
        except KeyboardInterrupt:
            pass
        finally:
            telling.finish(dropped=listening.dropped())
    return 0
