# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Converts packet-ins and packet-outs, whose metadata is a header in front of the frame."""

from finsy.proto import p4r

from switchgnn.softswitch.p4runtime.schema import HeaderSchema
from switchgnn.softswitch.p4runtime.values import decode, encode, invalid


def packet_out_frame(header: HeaderSchema, packet: p4r.PacketOut) -> bytes:
    """Build the frame that the program sees: its packet-out header, then the payload.

    Raises:
        RequestError: metadata is missing, unknown or too large.
    """
    given = {metadata.metadata_id: metadata.value for metadata in packet.metadata}
    value = 0
    for ident, width in header.fields:
        if ident not in given:
            raise invalid(f"The packet-out misses the metadata with id {ident}.")
        value = value << width | decode(given.pop(ident), width, f"Metadata {ident}")
    if given:
        raise invalid(f"The packet-out has unknown metadata with id {min(given)}.")
    return value.to_bytes(header.size, "big") + packet.payload


def packet_in_message(header: HeaderSchema, frame: bytes) -> p4r.StreamMessageResponse:
    """Build the message for a frame that the program sent to the controller's port."""
    packet = p4r.PacketIn(payload=frame[header.size :])
    value = int.from_bytes(frame[: header.size], "big")
    position = header.size * 8
    for ident, width in header.fields:
        position -= width
        field = value >> position & ((1 << width) - 1)
        packet.metadata.add(metadata_id=ident, value=encode(field))
    return p4r.StreamMessageResponse(packet=packet)
