# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`switchgnn capture`: packets of a file or an interface, and the story that they tell."""

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from switchgnn.base.described import read_network
from switchgnn.base.options import OUTPUT, PACKETS
from switchgnn.capture.errors import CaptureError, DamageError
from switchgnn.capture.files import STANDARD_INPUT, CaptureFiles
from switchgnn.capture.live import Interface, interfaces
from switchgnn.capture.names import names_in, usual_names
from switchgnn.capture.wanted import Wanted
from switchgnn.commands.capture.telling import Form, Telling
from switchgnn.commands.shared.interruption import end_like_interrupted
from switchgnn.host.wire.header import Kind

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
