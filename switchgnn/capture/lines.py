# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Packets as lines of text and as plain data for JSON."""

import math
import struct
from typing import Any

from scapy.layers.inet import IP
from scapy.layers.l2 import Ether

from switchgnn.capture.layers import BetweenHosts
from switchgnn.capture.packet import DecodedPacket, Fields
from switchgnn.host.wire.header import BITS, ETHERNET_BYTES, HEADER_AT, BarrierBody, Kind, Refusal

_BILLION = 1_000_000_000
_WORKERS = 128


def line_of(packet: DecodedPacket, begin: int) -> str:
    """Return a packet as a line, with its time in seconds since `begin` (ns since 1970)."""
    seconds = (packet.captured.time - begin) / _BILLION
    return f"{seconds:.6f} {packet.sender} > {packet.receiver} {description(packet)}"


def description(packet: DecodedPacket) -> str:
    """Return a packet as text without time, sender and receiver."""
    words = []
    if packet.direct:
        words.append("direct")
    if packet.fields is not None:
        words.append((_direct_words if packet.direct else _words)(packet.fields))
        if packet.fields.flags:
            words.append(f"[{' '.join(packet.fields.flags)}]")
    if packet.fields is not None and packet.body is not None:
        words.append(_body_words(packet.fields, packet.body))
    if packet.cut:
        words.append(f"CUT: {len(packet.captured.frame)} of {packet.captured.size} bytes")
    if packet.problem is not None:
        words.append(f"UNSOUND: {packet.problem}")
    return " ".join(words)


def object_of(packet: DecodedPacket) -> dict[str, Any]:
    """Return a packet as plain data for JSON."""
    captured, fields, body = packet.captured, packet.fields, packet.body
    found: dict[str, Any] = {
        "time_ns": captured.time,
        "link": captured.link,
        "bytes": captured.size,
        "sender": packet.sender,
        "receiver": packet.receiver,
        "direct": packet.direct,
        "cut": packet.cut,
        "problem": packet.problem,
    }
    if fields is not None:
        found |= fields._asdict() | {"kind": fields.kind_name, "lanes": fields.lanes}
        if fields.number is not None:
            found["number"] = fields.number
    if fields is not None and body is not None:
        found["body"] = _body_of(fields, body)
    return found


def _body_of(fields: Fields, body: BarrierBody) -> dict[str, Any]:
    found: dict[str, Any] = {"plan": body.plan, "workers": workers_of(body.workers)}
    if fields.number is not None:
        found["newest"] = _newest(body)
    else:
        found |= {"magnitude": body.magnitude, "round": body.round}
    if body.pulses is not None:
        found["pulses"] = workers_of(body.pulses)
    return found


def workers_of(bits: int) -> list[int]:
    """Return the numbers of set bits."""
    return [worker for worker in range(_WORKERS) if bits >> worker & 1]


def _words(fields: Fields) -> str:
    if fields.number is not None:
        return (
            f"{fields.kind_name} session {fields.session} number {fields.number} "
            f"lanes {fields.lanes} code {fields.feature_group} src {fields.src_id} "
            f"count {fields.count}"
        )
    bits = "" if fields.bits == BITS[0] else f" bits {fields.bits}"
    return (
        f"{fields.kind_name} session {fields.session} round {fields.round} "
        f"block {fields.block_id} fragment {fields.fragment} lanes {fields.lanes}{bits} "
        f"group {fields.feature_group} src {fields.src_id} dst {fields.dst_id} "
        f"count {fields.count} level {fields.level}"
    )


def _direct_words(fields: Fields) -> str:
    """Return the meaning of the fields between hosts (`docs/transports.md`)."""
    return (
        f"{fields.kind_name} round {fields.session << 24 | fields.round} number {fields.src_id} "
        f"tag {fields.dst_id:#010x} from {fields.block_id >> 8} to {fields.block_id & 0xFF} "
        f"count {fields.count} fragment {fields.fragment} group {fields.feature_group} "
        f"level {fields.level}"
    )


def _body_words(fields: Fields, body: BarrierBody) -> str:
    if fields.number is not None:
        words = f"newest {_newest(body)} plan {body.plan:08x}"
    else:
        words = f"magnitude {_float(body.magnitude)} plan {body.plan:08x} at round {body.round}"
    words += f" workers {_listed(body.workers)}"
    if body.pulses is not None:
        words += f" pulses {_listed(body.pulses)}"
    if fields.kind == Kind.WAITING and fields.count:
        words += f" refused: {_refusal(fields.count)}"
    return words


def _newest(body: BarrierBody) -> int:
    """Return the newest fragment that the switch has accepted."""
    return (body.magnitude & 0xFF) << 32 | body.round


def _float(bits: int) -> str:
    (value,) = struct.unpack(">f", bits.to_bytes(4, "big"))
    return "nan" if math.isnan(value) else f"{value:g}"


def _listed(bits: int) -> str:
    return ",".join(map(str, workers_of(bits))) or "none"


def _refusal(number: int) -> str:
    try:
        return Refusal(number).name.lower()
    except ValueError:
        return str(number)


def details_of(packet: DecodedPacket) -> str:
    """Return a packet as shown by Scapy."""
    frame = packet.captured.frame
    layers = Ether(frame)
    if packet.direct and IP in layers and packet.fields is not None:
        layers[IP].remove_payload()
        layers[IP].add_payload(BetweenHosts(frame[HEADER_AT : ETHERNET_BYTES + layers[IP].len]))
    return str(layers.show(dump=True)).rstrip()
