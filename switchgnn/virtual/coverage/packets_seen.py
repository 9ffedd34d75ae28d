# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Which packets have passed a place, by kind, flags and age."""

from switchgnn.host.wire.header import Kind
from switchgnn.virtual.checks.packets.packet import Packet, is_sound, kind_in, read_packet
from switchgnn.virtual.coverage.buckets import bucket_of

_FLAGS_AT, _NUMBER_AT, _END = slice(46, 47), slice(52, 56), 60
_FLAGS = {0x80: "A", 0x40: "F", 0x20: "E", 0x10: "R"}
_RELEASED = 0xFFFF


class PacketsSeen:
    """Notes what passes, whatever the number.

    Args:
        where: what the states begin with.

    Attributes:
        states: what has been seen.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._now = b""
        self._known: set[bytes] = set()
        self.states: set[str] = set()

    def note(self, frames: list[bytes], now: bytes) -> None:
        """Look at frames.

        Args:
            frames: those that pass.
            now: session and newest round, as packets have them.
        """
        known = self._known
        if now != self._now:
            self._now = now
            known.clear()
        for frame in frames:
            key = frame[_FLAGS_AT] + frame[_NUMBER_AT]
            if key not in known:
                known.add(key)
                self._look(frame)

    def _look(self, frame: bytes) -> None:
        """Look at a frame of which there was none in this round; one with wrong bits is none."""
        if len(frame) < _END or (frame[46] & 0xF) not in _KINDS:
            return
        packet = read_packet(frame)
        if is_sound(packet):
            kind = Kind(packet.flags & 0xF).name
            flags = "".join(letter for bit, letter in _FLAGS.items() if packet.flags & bit)
            self.states.add(f"{self._where} {kind}{flags and '.'}{flags}{self._age(frame)}")

    def _age(self, frame: bytes) -> str:
        number, now = frame[_NUMBER_AT], self._now
        if number == now:
            return ""
        if number[0] != now[0]:
            return " of another session"
        return " of a later round" if number > now else " of an earlier round"


_KINDS = frozenset(Kind)


def answer_in(frame: bytes) -> str:
    """Return what a MISSING says of a slot, or a WAITING of a worker."""
    packet: Packet = read_packet(frame)
    if kind_in(frame) == Kind.WAITING:
        return f"refused {packet.number}" if packet.number else "waiting"
    if packet.number in (0, _RELEASED):
        return "a slot is released" if packet.number else "a slot is empty"
    return f"a slot grows {bucket_of(packet.number)}"
