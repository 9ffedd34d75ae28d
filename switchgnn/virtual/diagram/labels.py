# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a diagram says of a frame."""

from dataclasses import dataclass

from switchgnn.host.wire.header import (
    HEADER,
    HEADER_BYTES,
    KIND_MASK,
    Kind,
    Refusal,
    fragment_number,
)
from switchgnn.planner.graphs.graph import FIRST_RESERVED_ID

_IS_FETCH, _RESEND = 0x40, 0x10
_ROUND_BITS = 24
_GROUPS = {
    **dict.fromkeys((Kind.FEATURE, Kind.SUM), "data"),
    **dict.fromkeys((Kind.DONE, Kind.ADVANCE, Kind.WAITING), "barrier"),
}


@dataclass(frozen=True)
class Label:
    """What is said of a frame; frames whose labels differ in ``which`` alone are shown together.

    Attributes:
        kind: of the packet.
        tag: session, round, block and fragment.
        which: what tells it from others of its kind and tag.
        more: what else its headers say.
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
    """Return what a diagram says of a frame with these headers."""
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
