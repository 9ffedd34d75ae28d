# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The link of a worker that speaks another version of the protocol."""

from switchgnn.host.wire.header import BODY_AT, VERSION
from switchgnn.virtual.network.fields import EXTENSION_AT, seal
from switchgnn.virtual.network.link import VirtualLink

_SHIFT = 4


class OtherVersionLink(VirtualLink):
    """Writes another version into what leaves, and takes packets of that version only.

    Attributes:
        version: it.
    """

    version: int = VERSION

    def arrive(self, frames: list[bytes]) -> None:
        """Take frames for the worker."""
        super().arrive([self._of(frame, VERSION) for frame in frames if self._is_known(frame)])

    def _send(self, frames: list[bytes]) -> None:
        super()._send([self._of(frame, self.version) for frame in frames])

    def _is_known(self, frame: bytes) -> bool:
        return len(frame) >= BODY_AT and frame[EXTENSION_AT] >> _SHIFT == self.version

    def _of(self, frame: bytes, version: int) -> bytes:
        changed = bytearray(frame)
        changed[EXTENSION_AT] = version << _SHIFT | changed[EXTENSION_AT] & 0xF
        seal(changed)
        return bytes(changed)
