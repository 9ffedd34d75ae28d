"""Scapy layers: what the packets mean, for people, for tests, and for hosts in Scapy.

No other host imports this module. Scapy is GPL-2.0; see the README.
"""

import zlib
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from scapy import fields
from scapy.error import Scapy_Exception
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, bind_layers

from switchgnn.host.innetwork.endpoint import Endpoint
from switchgnn.host.wire import header as wire
from switchgnn.host.wire.addresses import ECN_CAPABLE, dscp_of
from switchgnn.host.wire.header import Kind, Unit
from switchgnn.host.wire.narrow import pack_lanes, unpack_lanes

(_BANK_WIDTH,) = wire.fragment_words(wire.LANES, wire.LANES)
_WHOLE = wire.BITS[0]
# A packet of Scapy, or a part of one; Scapy has no types.
Layers = Any
# Of an IP packet; without a limit of ours Scapy takes 100 numbers at most.
_MOST_ROWS_BYTES = 1 << 16


_ENUMS = {
    "Kind": {int(kind): kind.name for kind in Kind},
    "Bits": {code: f"{bits} bits" for code, bits in enumerate(wire.BITS)},
    "Width": {
        code: f"{lanes} lanes"
        for code, lanes in enumerate(map(wire.lanes_of, range(wire.LAST_WIDTH + 1)))
    },
}
_DEFAULTS = {"Kind": int(Kind.FEATURE), "Version": wire.VERSION, "Width": _BANK_WIDTH}


def _scapy_field(name: str, bits: int) -> Any:  # noqa: ANN401
    if name == "Checksum":
        return fields.XIntField(name, None)
    if name in _ENUMS:
        return fields.BitEnumField(name, _DEFAULTS.get(name, 0), bits, _ENUMS[name])
    return fields.BitField(name, _DEFAULTS.get(name, 0), bits)


class SwitchGNN(Packet):
    """The SwitchGNN header: the paper's fields, then the extension."""

    name = "SwitchGNN"
    fields_desc = [_scapy_field(*field) for field in wire.HEADER_FIELDS]  # noqa: RUF012

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        """Fill in the checksum over header and body unless one was given."""
        if self.Checksum is None:
            checksum = zlib.crc32(pay, zlib.crc32(pkt[: wire.CHECKED_BYTES]))
            pkt = pkt[: wire.CHECKED_BYTES] + checksum.to_bytes(4, "big")
        return pkt + pay

    def guess_payload_class(self, payload: bytes) -> Any:  # noqa: ANN401
        """Return the body that the kind calls for."""
        if self.Kind == Kind.SUM and self.Dst_id >= wire.SUM_BUNDLES:
            return PlacesLayer
        if self.Kind in wire.LANE_KINDS:
            return self.body_of_lanes(payload)
        if self.Kind in wire.BARRIER_KINDS:
            return BarrierLayer
        return super().guess_payload_class(payload)

    def body_of_lanes(self, payload: bytes) -> Any:  # noqa: ANN401
        """Return the layer of the numbers, by their bits."""
        bits = wire.BITS[self.Bits]
        if bits == _WHOLE:
            return Fragment
        return NarrowFragment if bits else Packet.guess_payload_class(self, payload)


class BetweenHosts(SwitchGNN):
    """The same header between hosts, where the IPv4 length gives that of the rows."""

    name = "SwitchGNN between hosts"
    fields_desc = [  # noqa: RUF012
        fields.ShortField("Fragment", 0) if field.name == "Fragment" else field
        for field in SwitchGNN.fields_desc
        if field.name != "Width"
    ]

    def guess_payload_class(self, payload: bytes) -> Any:  # noqa: ANN401
        """Return the body that the kind calls for."""
        return RowsLayer if self.Kind == Kind.FEATURE else Packet.guess_payload_class(self, payload)


class RowsLayer(Packet):
    """Rows of features or sums, or parts of them, as far as the packet goes."""

    name = "Rows"
    fields_desc = [  # noqa: RUF012
        fields.FieldListField(
            "lanes",
            [],
            fields.IEEEFloatField("lane", 0),
            count_from=lambda packet: len(packet.original) // 4,
            max_count=_MOST_ROWS_BYTES // 4,
        )
    ]


class PlacesLayer(Packet):
    """What precedes the numbers of a bundle of sums."""

    name = "Places"
    fields_desc = [  # noqa: RUF012
        fields.FieldListField(
            "places",
            [wire.NO_PLACE] * wire.PLACES,  # type: ignore[list-item]
            fields.ShortField("place", wire.NO_PLACE),
            count_from=lambda _packet: wire.PLACES,
        )
    ]

    def guess_payload_class(self, payload: bytes) -> Any:  # noqa: ANN401
        """Return the layer of the numbers."""
        header = cast(Any, self.underlayer)
        return (
            super().guess_payload_class(payload)
            if header is None
            else header.body_of_lanes(payload)
        )


class Fragment(Packet):
    """Lanes of a feature or of a sum; Width gives their number."""

    name = "Fragment"
    fields_desc = [  # noqa: RUF012
        fields.FieldListField(
            "lanes",
            [0] * wire.LANES,  # type: ignore[list-item]
            fields.SignedIntField("lane", 0),
            count_from=lambda packet: wire.lanes_of(_header_of(packet).Width),
            max_count=wire.lanes_of(wire.LAST_WIDTH),
        )
    ]


class _NarrowLanes(fields.Field[list[int], bytes]):
    """The numbers of a body of fewer bits."""

    islist = 1

    def getfield(self, pkt: Any, s: bytes) -> tuple[bytes, list[int]]:  # noqa: ANN401
        """Return what follows the numbers, and the numbers."""
        lanes, bits = _shape(pkt)
        size = wire.payload_bytes(_header_of(pkt).Width, bits)
        if len(s) < size or bits not in wire.allowed_bits(lanes):
            raise Scapy_Exception(f"{len(s)} bytes are no {lanes} numbers of {bits} bits.")
        body = np.frombuffer(s[:size], dtype=np.uint8)[np.newaxis]
        return s[size:], unpack_lanes(body, lanes, bits)[0].tolist()

    def addfield(self, pkt: Any, s: bytes, val: list[int] | None) -> bytes:  # noqa: ANN401
        """Append the numbers."""
        _, bits = _shape(pkt)
        return s + pack_lanes(np.array([val or []], dtype=np.int32), bits).tobytes()


def _header_of(pkt: Any) -> Any:  # noqa: ANN401
    """Return the header before numbers, and before the places of a bundle."""
    before = pkt.underlayer
    return before.underlayer if isinstance(before, PlacesLayer) else before


def _shape(pkt: Any) -> tuple[int, int]:  # noqa: ANN401
    header = _header_of(pkt)
    return wire.lanes_of(header.Width), wire.BITS[header.Bits]


class NarrowFragment(Packet):
    """Lanes of fewer than 32 bits; Width and Bits give their number and size."""

    name = "Narrow fragment"
    fields_desc = [_NarrowLanes("lanes", [])]  # noqa: RUF012


class BarrierLayer(Packet):
    """Body of DONE, ADVANCE, WAITING and REDUCING."""

    name = "Barrier"
    fields_desc = [_scapy_field(*field) for field in wire.BARRIER_FIELDS]  # noqa: RUF012

    def guess_payload_class(self, payload: bytes) -> Any:  # noqa: ANN401
        """Return what a WAITING or REDUCING has besides."""
        if self.underlayer is not None and self.underlayer.Kind in wire.HEARTBEAT_KINDS:
            return WaitingLayer
        return super().guess_payload_class(payload)


class WaitingLayer(Packet):
    """What follows the barrier's body in a WAITING or REDUCING."""

    name = "Waiting"
    fields_desc = [_scapy_field(*field) for field in wire.WAITING_FIELDS]  # noqa: RUF012


bind_layers(IP, SwitchGNN, proto=wire.PROTOCOL)


def to_switch(
    end: Endpoint, unit: Unit, kind: Kind, fields: Mapping[str, int], body: Layers = None
) -> Layers:
    """Return a packet of a worker to its switch; one without numbers goes first (DSCP 48).

    `unit`: what it is about; `fields`: those of the header that follow from neither.
    """
    here, there = end.addresses.worker, end.addresses.switch
    header = cast(Any, SwitchGNN)(Kind=int(kind), Session=end.session & wire.SESSION_MASK, **fields)
    header.Round, header.Block_id = unit.round, unit.block
    word = unit.fragment
    header.Fragment, header.Width = wire.fragment_number(word), wire.width_code(word)
    ip = IP(src=here.ip, dst=there.ip, tos=dscp_of(kind) << 2 | ECN_CAPABLE, id=0)
    packet: Layers = Ether(src=here.mac, dst=there.mac) / ip / header
    return packet if body is None else packet / body
