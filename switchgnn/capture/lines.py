"""Packets as lines of text and as plain data for JSON."""

import math
import struct
from typing import Any

from switchgnn.capture.packet import DecodedPacket, kind_name
from switchgnn.host.wire import header as wire

_BILLION = 1_000_000_000
_WORKERS = 128


def line_of(packet: DecodedPacket, begin: int) -> str:
    """Return a packet as a line, with its time in seconds since `begin` (ns since 1970)."""
    seconds = (packet.captured.time - begin) / _BILLION
    return f"{seconds:.6f} {packet.sender} > {packet.receiver} {description(packet)}"


def description(packet: DecodedPacket) -> str:
    """Return a packet as text without time, sender and receiver."""
    words = ["direct"] if packet.direct else []
    if packet.parsed is not None:
        header = packet.parsed.header
        words.append(_direct_words(header) if packet.direct else _words(header, packet.number))
        if flags := flag_names(header):
            words.append(f"[{' '.join(flags)}]")
        if packet.body is not None:
            words.append(_body_words(header, packet.body, packet.number))
    if packet.cut:
        words.append(f"CUT: {len(packet.captured.frame)} of {packet.captured.size} bytes")
    if packet.problem is not None:
        words.append(f"UNSOUND: {packet.problem}")
    return " ".join(words)


def flag_names(header: wire.Header) -> list[str]:
    """Return the names of the set flags."""
    names = ("is_ack", "is_fetch", "ecn", "resend", "echo")
    return [name.removeprefix("is_") for name in names if getattr(header, name)]


def object_of(packet: DecodedPacket) -> dict[str, Any]:
    """Return a packet as plain data for JSON."""
    captured, body = packet.captured, packet.body
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
    if packet.parsed is not None:
        header, checksum = packet.parsed
        found |= header._asdict() | {"kind": kind_name(header), "checksum": checksum}
        found |= dict.fromkeys(("pool", "width", "lanes"))
        if not packet.direct:
            word = header.fragment
            found["fragment"], found["width"] = wire.fragment_number(word), wire.width_code(word)
            found["pool"], found["lanes"] = wire.pool_of(word), wire.lanes_of(word)
        if packet.number is not None:
            found["number"] = packet.number
    if body is not None:
        found["body"] = _body_of(body, packet.number)
    return found


def _body_of(body: wire.BarrierBody, number: int | None) -> dict[str, Any]:
    found: dict[str, Any] = {"plan": body.plan, "workers": workers_of(body.workers)}
    if number is not None:
        found["newest"] = _newest(body)
    else:
        found |= {"magnitude": body.magnitude, "round": body.round}
    if body.heartbeats is not None:
        found["heartbeats"] = workers_of(body.heartbeats)
    return found


def workers_of(bits: int) -> list[int]:
    """Return the numbers of set bits."""
    return [worker for worker in range(_WORKERS) if bits >> worker & 1]


def _words(header: wire.Header, number: int | None) -> str:
    lanes = wire.lanes_of(header.fragment)
    if number is not None:
        return (
            f"{kind_name(header)} session {header.session} number {number} lanes {lanes} "
            f"code {header.feature_group} src {header.src_id} count {header.count}"
        )
    bits = "" if header.bits == wire.BITS[0] else f" bits {header.bits}"
    pool = f" pool {own}" if (own := wire.pool_of(header.fragment)) else ""
    return (
        f"{kind_name(header)} session {header.session} round {header.round} "
        f"block {header.block_id} fragment {wire.fragment_number(header.fragment)}{pool} lanes "
        f"{lanes}{bits} group {header.feature_group} src {header.src_id} dst {header.dst_id} "
        f"count {header.count} level {header.level}"
    )


def _direct_words(header: wire.Header) -> str:
    return (
        f"{kind_name(header)} round {wire.session_and_round(header.session, header.round)} "
        f"number {header.src_id} tag {header.dst_id:#010x} "
        f"from {header.block_id >> 8} to {header.block_id & 0xFF} "
        f"count {header.count} fragment {header.fragment} group {header.feature_group} "
        f"level {header.level}"
    )


def _body_words(header: wire.Header, body: wire.BarrierBody, number: int | None) -> str:
    if number is not None:
        words = f"newest {_newest(body)} plan {body.plan:08x}"
    else:
        words = f"magnitude {_float(body.magnitude)} plan {body.plan:08x} at round {body.round}"
    words += f" workers {_listed(body.workers)}"
    if body.heartbeats is not None:
        words += f" heartbeats {_listed(body.heartbeats)}"
    if header.kind == wire.Kind.WAITING and header.count:
        words += f" refused: {_refusal(header.count)}"
    return words


def _newest(body: wire.BarrierBody) -> int:
    return (body.magnitude & 0xFF) << 32 | body.round


def _float(bits: int) -> str:
    (value,) = struct.unpack(">f", bits.to_bytes(4, "big"))
    return "nan" if math.isnan(value) else f"{value:g}"


def _listed(bits: int) -> str:
    return ",".join(map(str, workers_of(bits))) or "none"


def _refusal(number: int) -> str:
    try:
        return wire.Refusal(number).name.lower()
    except ValueError:
        return str(number)


def details_of(packet: DecodedPacket) -> str:
    """Return a packet as shown by Scapy, which takes half a second to import."""
    from scapy.layers.inet import IP  # noqa: PLC0415
    from scapy.layers.l2 import Ether  # noqa: PLC0415

    from switchgnn.host.scapy_host.layers import BetweenHosts  # noqa: PLC0415

    frame = packet.captured.frame
    layers = Ether(frame)
    if packet.direct and IP in layers and packet.parsed is not None:
        layers[IP].remove_payload()
        layers[IP].add_payload(
            BetweenHosts(frame[wire.HEADER_AT : wire.ETHERNET_BYTES + layers[IP].len])
        )
    return str(layers.show(dump=True)).rstrip()
