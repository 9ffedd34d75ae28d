# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What frames between hosts must be, by the closed form and byte for byte."""

import struct
import zlib

import numpy as np

from tests.host.direct.crew import mac_bytes


def sizes_of_frames(rows, width, mtu):
    """How long the frames of a pair are: the closed form of docs/transports.md."""
    if mtu is None:
        return [188] * rows * -(-width // 32)
    payload = (mtu - 46) // 4 * 4
    whole, rest = divmod(4 * width * rows, payload)
    return [60 + payload] * whole + [60 + rest] * bool(rest)


def payloads_of(rows, mtu):
    """The bodies of a pair's frames, in their order: the bytes of its rows, cut."""
    if mtu is None:
        padded = [np.append(row, np.zeros(-len(row) % 32)) for row in rows]
        return [
            struct.pack(">32f", *part) for row in padded for part in np.split(row, len(row) // 32)
        ]
    run = b"".join(struct.pack(f">{len(row)}f", *row) for row in rows)
    payload = (mtu - 46) // 4 * 4
    return [run[at : at + payload] for at in range(0, len(run), payload)]


def features_of(hub, sender, receiver):
    """The FEATURE frames from one worker to another, each once, by their numbers."""
    macs = [mac_bytes(each) for each in hub.stations]
    found = {}
    for frame in hub.sent:
        if frame[46] & 15 == 1 and frame[:12] == macs[receiver] + macs[sender]:
            found[int.from_bytes(frame[34:38], "big")] = frame
    return [found[number] for number in sorted(found)]


def check_frame(frame, number, sender, receiver, body, **fields):
    """Read a frame as docs/transports.md draws it, and compare all of it but its mark."""
    assert (frame[12:16], frame[18:22]) == (b"\x08\x00\x45\x02", bytes(4))
    assert frame[16:18] == (46 + len(body)).to_bytes(2, "big")
    assert frame[60:] == body
    said = struct.unpack_from(">IIHHBBHHII", frame, 34)
    names = ("number", "mark", "pair", "count", "kind", "extension", "fragment", "group", "round")
    told = dict(zip(names, said[:-1], strict=True))
    echo = told.pop("extension") - (3 << 4 | fields.pop("level") << 1)
    assert echo in (0, 1)
    del told["mark"]
    assert told == {
        **{"number": number, "pair": sender << 8 | receiver, "kind": 1, "group": number // 8},
        **fields,
    }
    assert said[-1] == zlib.crc32(frame[34:56] + body)
