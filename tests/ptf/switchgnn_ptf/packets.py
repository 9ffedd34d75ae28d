"""Frames of workers, and the expected frames of the switch."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from switchgnn.base.network import Station, star_network
from switchgnn.host.scapy_host.layers import BarrierLayer as Barrier
from switchgnn.host.scapy_host.layers import Fragment, PlacesLayer, SwitchGNN
from switchgnn.host.scapy_host.layers import WaitingLayer as Waiting
from switchgnn.host.wire import header as wire
from switchgnn.host.wire.narrow import bits_needed, pack_lanes

Lanes = NDArray[np.int32]

PORTS = (1, 2, 3, 4)
WORKERS = (0, 1, 2)
STRANGER_PORT = 4  # wired, but no worker is behind it
NETWORK = star_network(len(PORTS))
PLAN = 0xC0FFEE01
NEXT_ROUND = (0, 0)  # what comes behind the last block of a round
PARTIAL = 2**31 + 77  # the id of some partial sum
FULL = 64  # of an all-reduce, where a case is not about others
REDUCE_SLOTS = 128  # of headers.p4, for each job
RELEASED = 0xFFFF  # the count of a slot that was given back
WIDTHS = {8 * (code + 1): code for code in range(32)}  # by the lanes of a frame
BITS = {32: 0, 16: 1, 8: 2, 0: 3}  # codes by the bits of a lane
MAXIMUM = 256  # the number of the first fragment of maxima
# What operations make of two words, by the numbers of their first fragments.
COMBINES = {0: np.add, MAXIMUM: np.maximum}
LAST_MAXIMUM = min(first for first in (*COMBINES, 512) if first > MAXIMUM) - 1

# Fields that the switch must set have other values in the frames of workers.
_TTL_SENT = 7
_TTL_OF_SWITCH = 64
_ECN_CAPABLE = 2
_TOS_SENT = 0x28 << 2 | _ECN_CAPABLE
_TOS_OF_CONTROL = 48 << 2 | _ECN_CAPABLE
EARLY, LATE = (dscp << 2 | _ECN_CAPABLE for dscp in (8, 1))  # bytes with DSCP, of all-reduces
_TOS = {wire.Kind.FEATURE: _ECN_CAPABLE, wire.Kind.SUM: _ECN_CAPABLE}
_TOS |= {wire.Kind.REDUCE: EARLY, wire.Kind.REDUCED: EARLY}
_IDENTIFICATION = 0x1234


def station(port: int) -> Station:
    return NETWORK.neighbours[port - 1].station


def port_of(worker: int) -> int:
    return NETWORK.neighbours[worker].port


def random_lanes(seed: int, number: int = wire.LANES) -> Lanes:
    """Return lanes over the whole range of int32, the same for the same seed."""
    return np.random.default_rng(seed).integers(-(2**31), 2**31, number, np.int64).astype(np.int32)


def sum_of(lanes: Iterable[Lanes]) -> Lanes:
    """Return NumPy's int32 sum, which wraps modulo 2^32."""
    return np.sum(np.stack(list(lanes)), axis=0, dtype=np.int32)


def combined(sent: Iterable[tuple[Packet, Lanes]]) -> Lanes:
    """Return what the operation of a fragment makes of the lanes that were sent."""
    packets, lanes = zip(*sent, strict=True)
    number = packets[-1][SwitchGNN].Fragment
    combine = COMBINES[max(first for first in COMBINES if first <= number)]
    return combine.reduce(np.stack(lanes).view(np.uint32), dtype=np.uint32).view(np.int32)


def feature(
    source: int,
    lanes: Lanes,
    *,
    port: int,
    block: int = 1,
    fragment: int = 0,
    round_: int = 1,
    count: int = 1,
    bits: int = 32,
    **header: int,
) -> Packet:
    """Return the FEATURE frame of a source as the worker at ``port`` sends it."""
    body = {"Count": count, "Width": WIDTHS[len(lanes)], "Bits": BITS[bits], **header}
    tag = {"Block_id": block, "Fragment": fragment, "Round": round_}
    switchgnn = SwitchGNN(Kind=wire.Kind.FEATURE, Src_id=source, **tag, **body)
    return _from_worker(port) / switchgnn / _fragment(lanes, bits)


def done(
    worker: int,
    *,
    block: int,
    round_: int = 1,
    fragment: int = 0,
    lanes: int = wire.LANES,
    magnitude: int = 0,
    plan: int = PLAN,
    incarnation: int = 0,
    following: tuple[int, int] | None = None,
    early: bool = False,
    port: int | None = None,
    heartbeat: int = 0,
    pool: int = 0,
) -> Packet:
    """Return the DONE of a worker; ``following``: block and fragment of what is next."""
    next_block, next_fragment = following or (block + 1, 0)
    width = WIDTHS[lanes]
    unit = next_fragment << 7 | pool << 5 | (width if next_block else 0)
    following_unit = {"Count": next_block, "Feature_group": unit, "Echo": int(early)}
    tag = {"Block_id": block, "Fragment": fragment, "Round": round_, "Pool": pool}
    own = {"Src_id": worker, "Dst_id": incarnation, "Width": width if block else 0}
    header = SwitchGNN(Kind=wire.Kind.DONE, **own, **tag, **following_unit)
    body = Barrier(magnitude=magnitude, plan=plan, workers=heartbeat)
    return _from_sender(worker, port) / header / body


def sum_to(
    port: int,
    vertex: int,
    lanes: Lanes,
    *,
    count: int,
    completed_by: Packet,
    sources: int = 0,
    **header: int,
) -> Packet:
    """Return the SUM that leaves when ``completed_by`` brings the last contribution, or recalls."""
    bits = int(bits_needed(lanes[np.newaxis])[0]) if completed_by[SwitchGNN].Bits else 32
    ids = {"Src_id": sources, "Dst_id": vertex, "Count": count}
    fields = {"Kind": int(wire.Kind.SUM), "Bits": BITS[bits], "Echo": 0, "ECN": 0, **header}
    switchgnn = _answer(completed_by, **ids, **fields)
    return _from_switch(port, switchgnn) / switchgnn / _fragment(lanes, bits)


def bundle_to(
    port: int,
    rows: Mapping[int, Lanes],
    *,
    of: int,
    completed_by: Packet,
    worker: int | None = None,
) -> Packet:
    """Return the bundle of sums, by the place of each row, with room for `of` rows."""
    lanes = np.zeros((of, len(next(iter(rows.values())))), dtype=np.int32)
    lanes[: len(rows)] = list(rows.values())
    name = wire.SUM_BUNDLES + (port - 1 if worker is None else worker)
    one = sum_to(port, name, lanes.reshape(-1), count=len(rows), completed_by=completed_by)
    layer = one[SwitchGNN]
    body = layer.payload
    layer.remove_payload()
    layer.add_payload(
        PlacesLayer(places=[*rows, *[wire.NO_PLACE] * (wire.PLACES - len(rows))]) / body
    )
    del one[IP].len
    return one


def ack_of(packet: Packet, *, accepted: int) -> Packet:
    """Return the ACK for a FEATURE with Echo, after ``accepted`` ones of its group."""
    fields = {"Kind": int(wire.Kind.ACK), "Is_ACK": 1, "Count": accepted, "Bits": BITS[32]}
    answer = _answer(packet, **fields)
    return _from_switch(_sender_port(packet), answer) / answer


def recall(
    vertex: int, *, port: int, block: int = 1, fragment: int = 0, round_: int = 1, **header: int
) -> Packet:
    fields = {"Kind": wire.Kind.RECALL, "Is_Fetch": 1, "Dst_id": vertex} | header
    tag = {"Block_id": block, "Fragment": fragment, "Round": round_}
    return _from_worker(port) / SwitchGNN(**fields, **tag)


def missing(asked: Packet, *, count: int) -> Packet:
    answer = _answer(asked, Kind=int(wire.Kind.MISSING), Count=count)
    return _from_switch(_sender_port(asked), answer) / answer


def fetch(source: int, vertex: int, *, port: int, **fields: int) -> Packet:
    return recall(vertex, port=port, Kind=wire.Kind.FETCH, Src_id=source, **fields)


def notice(
    worker: int, *, block: int = 1, fragment: int = 0, round_: int = 1, port: int | None = None
) -> Packet:
    """Return the NOTICE of a worker, sent from its own port unless told otherwise."""
    tag = {"Block_id": block, "Fragment": fragment, "Round": round_}
    return _from_sender(worker, port) / SwitchGNN(Kind=wire.Kind.NOTICE, Src_id=worker, **tag)


def reduce_(
    worker: int,
    number: int,
    lanes: Lanes,
    *,
    exponent: int = 0,
    count: int = 1,
    port: int | None = None,
    **header: int,
) -> Packet:
    """Return a worker's contribution to a fragment of an all-reduce."""
    body = {"Count": count, "Width": WIDTHS[len(lanes)], "Feature_group": exponent, **header}
    switchgnn = SwitchGNN(Kind=wire.Kind.REDUCE, Src_id=worker, **_fragment_number(number), **body)
    return _from_sender(worker, port) / switchgnn / _fragment(lanes)


def reduced(
    to: int, number: int, lanes: Lanes, *, session: int, exponent: int = 0, count: int = 3
) -> Packet:
    """Return the sum of a fragment as the worker at port ``to`` must get it."""
    body = {"Count": count, "Width": WIDTHS[len(lanes)], "Feature_group": exponent}
    tag = {"Session": session & wire.SESSION_MASK, **_fragment_number(number)}
    switchgnn = SwitchGNN(Kind=wire.Kind.REDUCED, **tag, **body)
    return _from_switch(to, switchgnn) / switchgnn / _fragment(lanes)


def reducing(
    worker: int, number: int, *, heartbeat: int = 0, workers: int = 0, port: int | None = None
) -> Packet:
    """Return a worker's question who has contributed to a fragment."""
    tag = _fragment_number(number)
    switchgnn = SwitchGNN(Kind=wire.Kind.REDUCING, Src_id=worker, Width=WIDTHS[FULL], **tag)
    body = Barrier(workers=workers) / Waiting(heartbeats=heartbeat << worker)
    return _from_sender(worker, port) / switchgnn / body


def contributors(
    asked: Packet, *, to: int, workers: int, newest: int, heartbeats: int = 0, **header: int
) -> Packet:
    """Return who has contributed to a fragment, as the worker at port ``to`` must get it."""
    fields = {"Kind": int(wire.Kind.REDUCING), "Count": REDUCE_SLOTS, "Feature_group": 0, **header}
    answer = _answer(asked, **fields)
    known = {"magnitude": newest >> 32, "round": newest & 0xFFFFFFFF, "workers": workers}
    body = Barrier(plan=PLAN, **known) / Waiting(heartbeats=heartbeats)
    return _from_switch(to, answer) / answer / body


def _fragment_number(number: int) -> dict[str, int]:
    return {"Round": number >> 16, "Block_id": number & 0xFFFF, "Fragment": 0}


def relayed(packet: Packet, *, to: int) -> Packet:
    """Return another worker's packet as the worker at ``to`` must get it."""
    return _from_switch(to, packet) / packet[SwitchGNN].copy()


def relayed_fetch(packet: Packet, *, to: int) -> Packet:
    """Return a FETCH as the owner of the source must get it."""
    return relayed(resigned(packet, Count=0), to=to)


def barrier_answer(
    kind: wire.Kind,
    asked: Packet,
    *,
    to: int,
    workers: int,
    magnitude: int = 0,
    round_: int = 1,
    plan: int = PLAN,
    largest: int = 0,
    refusal: wire.Refusal = wire.Refusal.NONE,
    heartbeats: int = 0,
) -> Packet:
    """Return the ADVANCE or WAITING that the worker at port ``to`` must get."""
    fields = {"Kind": int(kind), "Dst_id": largest, "Count": int(refusal)}
    header = _answer(asked, ECN=0, Echo=0, Feature_group=0, **fields)
    body = Barrier(magnitude=magnitude, plan=plan, round=round_, workers=workers)
    if kind is wire.Kind.WAITING:
        body = body / Waiting(heartbeats=heartbeats)
    return _from_switch(to, header) / header / body


def no_job(asked: Packet) -> Packet:
    """Return the WAITING for a DONE of a port without a job, which has no addresses either."""
    nothing = {"workers": 0, "round_": 0, "plan": 0}
    answer = barrier_answer(wire.Kind.WAITING, asked, to=_sender_port(asked), **nothing)
    for layer in (Ether, IP):
        answer[layer].src, answer[layer].dst = asked[layer].src, asked[layer].dst
    return resigned(answer, Session=0)


def marker(port: int, serial: int) -> Packet:
    """Return an ordinary frame of the lowest class to a port, behind everything queued there."""
    ethernet = Ether(dst=station(port).mac, src="02:00:00:00:ee:ee")
    body = Raw(b"marker" + serial.to_bytes(8, "big") + bytes(60))
    return ethernet / IP(tos=LATE & ~_ECN_CAPABLE, proto=17) / body


def ordinary(port: int, to: str, *layers: Any, **ip: Any) -> Packet:
    """Return an IPv4 frame of a host, not SwitchGNN's unless the layers say so."""
    ip = {"src": station(port).ip, "dst": "10.0.0.77", "proto": 17, "ttl": _TTL_SENT} | ip
    packet = Ether(src=station(port).mac, dst=to) / IP(**ip)
    for layer in layers:
        packet = packet / layer
    return packet


def resigned(packet: Packet, **changes: int) -> Packet:
    """Return a copy with other SwitchGNN fields and a checksum that fits them."""
    copy = packet.copy()
    copy[SwitchGNN].Checksum = None
    for name, value in changes.items():
        setattr(copy[SwitchGNN], name, value)
    return copy


def _answer(asked: Packet, **changes: int) -> Packet:
    """Return the header of an answer to a packet, which has the other fields of that packet."""
    header = resigned(asked, **changes)[SwitchGNN]
    header.remove_payload()
    return header


def _fragment(lanes: Lanes, bits: int = 32) -> Packet:
    if bits == 32:
        return Fragment(lanes=[int(lane) for lane in lanes])
    return Raw(pack_lanes(lanes[np.newaxis], bits).tobytes())


def _from_sender(worker: int, port: int | None) -> Packet:
    return _from_worker(port_of(worker) if port is None else port)


def _from_worker(port: int) -> Packet:
    own = station(port)
    ethernet = Ether(src=own.mac, dst=NETWORK.switch.mac)
    return ethernet / _ip(src=own.ip, dst=NETWORK.switch.ip, ttl=_TTL_SENT)


def _from_switch(port: int, header: Packet) -> Packet:
    to = station(port)
    ethernet = Ether(src=NETWORK.switch.mac, dst=to.mac)
    tos = _TOS.get(header[SwitchGNN].Kind, _TOS_OF_CONTROL)
    return ethernet / _ip(src=NETWORK.switch.ip, dst=to.ip, ttl=_TTL_OF_SWITCH, tos=tos)


def _ip(*, src: str, dst: str, ttl: int, tos: int = _TOS_SENT) -> IP:
    return IP(src=src, dst=dst, ttl=ttl, tos=tos, id=_IDENTIFICATION, proto=253)


def _sender_port(packet: Packet) -> int:
    return next(own.port for own in NETWORK.neighbours if own.station.mac == packet[Ether].src)
