# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A stream of bytes that knows how far it was read, and reads no more than it is told to."""

from dataclasses import dataclass
from typing import BinaryIO

from switchgnn.capture.errors import DamageError
from switchgnn.capture.packet import Packet

_PIECE = 1 << 16


class Source:
    """The bytes of a capture.

    Args:
        stream: where they come from.
        name: what messages call it.

    Attributes:
        at: how many were taken.
    """

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream = stream
        self.name = name
        self.at = 0

    def take(self, count: int, what: str) -> bytes:
        """Return the next bytes.

        Args:
            count: how many.
            what: they are, for the message.

        Raises:
            DamageError: there are not that many.
        """
        found = self._read(count)
        if len(found) < count:
            raise self.damage(f"it ends in the middle of {what}")
        return found

    def take_or_end(self, count: int, what: str) -> bytes | None:
        """Return the next bytes, or None at the end.

        Args:
            count: how many.
            what: they are, for the message.

        Raises:
            DamageError: there are some, but not that many.
        """
        found = self._read(count)
        if not found:
            return None
        if len(found) < count:
            raise self.damage(f"it ends in the middle of {what}")
        return found

    def skip(self, count: int, what: str) -> None:
        """Pass over bytes, piece by piece.

        Args:
            count: how many.
            what: they are, for the message.

        Raises:
            DamageError: there are not that many.
        """
        while count:
            count -= len(self.take(min(count, _PIECE), what))

    def damage(self, why: str) -> DamageError:
        """Return an error that says where the stream is."""
        return DamageError(
            f"{self.name} is damaged at byte {self.at:,}: {why}. What comes before was read."
        )

    def _read(self, count: int) -> bytes:
        try:
            found = self._stream.read(count)
        except OSError as error:
            raise self.damage(f"it cannot be read any further ({error.strerror})") from error
        self.at += len(found)
        return found


@dataclass(frozen=True)
class Wanted:
    """A filter; what is None, or empty, lets all packets pass.

    Attributes:
        kinds: numbers of kinds.
        rounds: their numbers.
        blocks: their numbers; packets between hosts have none.
        workers: their numbers; one of them sends or receives the packet.
    """

    kinds: frozenset[int] = frozenset()
    rounds: frozenset[int] = frozenset()
    blocks: frozenset[int] = frozenset()
    workers: frozenset[int] = frozenset()

    def takes(self, packet: Packet) -> bool:
        """Tell whether a packet is wanted."""
        if self.workers and not self._of_workers(packet):
            return False
        fields = packet.fields
        if fields is None:
            return not (self.kinds or self.rounds or self.blocks)
        if self.kinds and fields.kind not in self.kinds:
            return False
        if self.rounds and fields.round not in self.rounds:
            return False
        return not self.blocks or (not packet.direct and fields.block_id in self.blocks)

    def _of_workers(self, packet: Packet) -> bool:
        ends = (packet.sender, packet.receiver)
        return any(f"w{worker}" in ends for worker in self.workers)
