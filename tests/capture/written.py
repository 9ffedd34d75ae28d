"""Capture files built byte by byte from their specifications."""

import struct

MAGIC = {1000: 0xA1B2C3D4, 1: 0xA1B23C4D}


def pcap(frames, order="<", unit=1, link_type=1, snap=1 << 18):
    """A file with (nanoseconds, frame) or (nanoseconds, frame, whole length)."""
    parts = [struct.pack(f"{order}IHHIIII", MAGIC[unit], 2, 4, 0, 0, snap, link_type)]
    for time, frame, *size in frames:
        seconds, part = divmod(time, 10**9)
        length = size[0] if size else len(frame)
        parts += [struct.pack(f"{order}IIII", seconds, part // unit, len(frame), length), frame]
    return b"".join(parts)


def block(order, kind, body):
    body += bytes(-len(body) % 4)
    length = struct.pack(f"{order}I", len(body) + 12)
    return struct.pack(f"{order}I", kind) + length + body + length


def option(order, code, value):
    return struct.pack(f"{order}HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(order="<"):
    return block(order, 0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))


def interface(order="<", name=b"", resolution=9, link_type=1, more=b""):
    options = option(order, 9, bytes([resolution])) + more
    if name:
        options += option(order, 2, name)
    return block(order, 1, struct.pack(f"{order}HxxI", link_type, 0) + options + bytes(4))


def enhanced(order, number, ticks, frame, size=None):
    head = struct.pack(
        f"{order}5I", number, ticks >> 32, ticks & 0xFFFFFFFF, len(frame), size or len(frame)
    )
    return block(order, 6, head + frame)


def pcapng(frames, order="<", resolution=9, name=b""):
    """A file of one section and one interface, with (nanoseconds, frame)."""
    a_second = 1 << (resolution & 0x7F) if resolution & 0x80 else 10**resolution
    parts = [section(order), interface(order, name, resolution)]
    for time, frame in frames:
        parts.append(enhanced(order, 0, time * a_second // 10**9, frame))
    return b"".join(parts)
