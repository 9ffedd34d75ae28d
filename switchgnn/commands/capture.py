"""`switchgnn capture`: packets of a file or an interface, one by one or as a summary."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from pathlib import Path

import typer

from switchgnn.base.interruptible import INTERRUPTED, end_like_interrupted
from switchgnn.base.names import no_such
from switchgnn.base.network_file import read_network
from switchgnn.base.options import OUTPUT, PACKETS, argument, with_groups
from switchgnn.capture import packet as packets
from switchgnn.capture.files import STANDARD_INPUT, CaptureFiles
from switchgnn.capture.lines import details_of, line_of, object_of
from switchgnn.capture.live import ListeningInterface, interfaces
from switchgnn.capture.summary import Chapter, Summary
from switchgnn.commands.shared.options import json_option
from switchgnn.host.wire.header import Kind

_KINDS = ", ".join(kind.name.lower() for kind in Kind)
KindOption = Enum("KindOption", {kind.name: kind.name.lower() for kind in Kind}, type=str)  # type: ignore[misc]
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class PacketPrinter:
    """Prints frames; `limit` counts packets, or blocks of a summary."""

    def __init__(
        self,
        names: Mapping[bytes, str],
        wanted: packets.Wanted,
        form: "CaptureOptions",
        *,
        live: bool,
    ) -> None:
        self._names, self._wanted, self._form, self._live = names, wanted, form, live
        self._summary = Summary()
        self._kinds: Counter[str] = Counter()
        self._unsound = self._hidden = self._others = self._links = 0
        self._begin: int | None = None
        self._printed = 0

    def print_frames(self, frames: Iterable[packets.Captured]) -> None:
        """Print packets until there are no more, or the limit is reached."""
        for captured in chain.from_iterable(map(packets.frames_in, frames)):
            packet = packets.decode(captured, self._names)
            if packet is None:
                self._others += bool(captured.frame)
                self._links += not captured.frame
                continue
            if self._begin is None:
                self._begin = captured.time
            if not self._wanted.takes(packet):
                self._hidden += 1
                continue
            if packet.parsed is None or packet.problem is not None:
                self._unsound += 1
            else:
                self._kinds[packets.kind_name(packet.parsed.header)] += 1
            if self._form.summary:
                self._print_chapters(self._summary.note(packet))
            else:
                self._print_packet(packet)
            if self._full():
                return

    def finish(self, dropped: int = 0) -> None:
        """Print the end of the summary, and the counts on standard error."""
        self._print_chapters(self._summary.rest())
        sys.stdout.flush()
        names = (kind.name.lower() for kind in Kind)
        kinds = ", ".join(f"{self._kinds[name]:,} {name}" for name in names if self._kinds[name])
        total = self._kinds.total() + self._unsound
        words = f"{total:,} packet{'s' * (total != 1)}" + (f": {kinds}" if kinds else "")
        for number, what in (
            (self._unsound, "not sound"),
            (self._summary.late, "later than their block was printed"),
            (self._hidden, "of others than those asked for"),
            (self._others, f"frame{'s' * (self._others > 1)} of other protocols"),
            (self._links, f"frame{'s' * (self._links > 1)} of links that are not Ethernet"),
            (dropped, "lost, as they came faster than they were read"),
        ):
            words += f"; {number:,} {what}" if number else ""
        typer.echo(f"{words}.", err=True)

    def _full(self) -> bool:
        return self._form.limit is not None and self._printed >= self._form.limit

    def _print_packet(self, packet: packets.DecodedPacket) -> None:
        self._printed += 1
        if self._form.as_json:
            self._print(json.dumps(object_of(packet)))
            return
        self._print(line_of(packet, self._begin or 0))
        if self._form.details:
            self._print(details_of(packet))

    def _print_chapters(self, chapters: Iterable[Chapter]) -> None:
        for chapter in chapters:
            if self._full():
                return
            self._printed += 1
            if self._form.as_json:
                self._print(json.dumps(chapter.to_dict()))
            else:
                self._print("\n".join(chapter.lines(self._begin or 0)))

    def _print(self, text: str) -> None:
        sys.stdout.write(f"{text}\n")
        if self._live:
            sys.stdout.flush()


@dataclass(frozen=True)
class CaptureOptions:
    """Which packets to show, and how."""

    files: list[str] | None = argument(
        "FILE",
        "pcap or pcapng files, gzipped or not, or folders of them, merged by time; - for "
        "standard input.",
    )
    interface: str | None = PACKETS.option(
        "NAME", "Listen on this interface until Ctrl-C instead; needs root."
    )
    network: Path | None = OUTPUT.option(
        "FILE", "Show addresses by their names in this network file."
    )
    kind: list[KindOption] | None = PACKETS.option(
        "KIND", f"Show only packets of this kind; repeatable: {_KINDS}."
    )
    round_number: list[int] | None = PACKETS.option(
        "N", "Show only packets of this round; repeatable.", "--round", min=0
    )
    block: list[int] | None = PACKETS.option(
        "N", "Show only packets of this block; repeatable.", min=0
    )
    worker: list[int] | None = PACKETS.option(
        "N", "Show only packets to or from this worker; repeatable.", min=0
    )
    limit: int | None = PACKETS.option(
        "N", "End after N packets, or after N blocks of a summary.", min=1
    )
    summary: bool = OUTPUT.flag("Summarize the packets block by block.", "--summary")
    details: bool = OUTPUT.flag("Show every field of each packet, with Scapy.", "--details")
    as_json: bool = json_option("Print one JSON object per packet or block.")

    def check(self) -> None:
        """Refuse options that contradict each other."""
        if bool(self.files) == (self.interface is not None):
            raise packets.CaptureError(
                "Say what to read: files, - for standard input, or --interface."
            )
        if self.details and (self.summary or self.as_json):
            raise packets.CaptureError("--details goes neither with --summary nor with --json.")

    def printer(self) -> "PacketPrinter":
        """Return what prints the packets."""
        wanted = packets.Wanted(
            frozenset(int(Kind[each.name]) for each in self.kind or ()),
            frozenset(self.round_number or ()),
            frozenset(self.block or ()),
            frozenset(self.worker or ()),
        )
        # Live packets are printed at once.
        pipes = (each == STANDARD_INPUT or Path(each).is_fifo() for each in self.files or ())
        live = self.interface is not None or any(pipes)
        names = (
            packets.usual_names()
            if self.network is None
            else packets.names_in(read_network(self.network))
        )
        return PacketPrinter(names, wanted, self, live=live)


@app.command(epilog="Example: switchgnn capture packets --kind feature --limit 10")
@with_groups
def capture(asked: CaptureOptions) -> None:
    """Show packets: a line for each, or a summary by block.

    `switchgnn run --pcap FOLDER` and `tcpdump -w FILE` write such files. A line
    has the seconds since the first packet, sender and receiver, the fields of
    the header, and what is wrong with an unsound packet. Counts come at the end.
    The exit code is 2 if a file is damaged; you see what comes before the damage.
    """
    asked.check()
    end_like_interrupted()
    printer = asked.printer()
    files = asked.files
    code = _from_files(files, printer) if files else _from_interface(str(asked.interface), printer)
    if code:
        raise typer.Exit(code)


def _from_files(names: list[str], printer: PacketPrinter) -> int:
    with CaptureFiles(names) as opened:
        try:
            printer.print_frames(opened)
        except KeyboardInterrupt:
            printer.finish()
            return INTERRUPTED
        printer.finish()
    if opened.damages:
        raise packets.DamageError("\n".join(map(str, opened.damages)))
    return 0


def _from_interface(name: str, printer: PacketPrinter) -> int:
    """Listen until Ctrl-C, which is no failure: nothing else ends it."""
    if name not in interfaces():
        raise packets.CaptureError(no_such("interface", name, interfaces(), where=" here"))
    with ListeningInterface(name) as listening:
        typer.echo(f"Listening at {name}; Ctrl-C ends it.", err=True)
        try:
            printer.print_frames(listening)
        except KeyboardInterrupt:
            pass
        finally:
            printer.finish(dropped=listening.dropped())
    return 0
