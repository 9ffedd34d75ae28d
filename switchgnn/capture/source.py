# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A stream of bytes that knows how far it was read, and reads no more than it is told to."""

from typing import BinaryIO

from switchgnn.capture.errors import DamageError

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
