# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Frames that arrive: waited for, received and cut apart in one step (arriving.h)."""

import errno
import os
from ctypes import Structure, addressof, c_uint32, c_uint64, c_void_p

import numpy as np

from switchgnn.host.wire.batches import FrameBatch
from switchgnn.host.wire.native.library import NativeFrames

# What the kernel puts into one message at most (UDP_MAX_SEGMENTS of linux/udp.h).
_FRAMES_OF_A_MESSAGE = 128
_A_SECOND = 1e9
# Nobody waits longer.
_LONGEST = 3600.0


class _Receiving(Structure):
    _fields_ = (
        ("room", c_void_p),
        ("message_bytes", c_uint64),
        ("messages", c_uint32),
        ("most", c_uint32),
        ("begins", c_void_p),
        ("sizes", c_void_p),
        ("count", c_uint32),
        ("bytes", c_uint64),
    )


class NativeArriving:
    """Room for what one system call receives; see ``Arriving``.

    Args:
        frames: the native code.
        descriptor: of a socket that does not block.
        messages: how many at most, up to 64.
        longest: bytes of the longest message.
        cut: whether messages may have many frames, which the kernel tells.
    """

    def __init__(
        self, frames: NativeFrames, descriptor: int, messages: int, longest: int, *, cut: bool
    ) -> None:
        most = messages * _FRAMES_OF_A_MESSAGE if cut else messages
        begins, sizes = np.zeros((2, most), dtype=np.uint32)
        self.batch = FrameBatch(np.zeros(messages * longest, dtype=np.uint8), begins, sizes)
        self._descriptor = descriptor
        self._receive = frames.receive_frames
        self._receiving = _Receiving(
            room=self.batch.room.ctypes.data,
            message_bytes=longest,
            messages=messages,
            most=most,
            begins=begins.ctypes.data,
            sizes=sizes.ctypes.data,
        )
        self._address = addressof(self._receiving)

    def receive(self, seconds: float) -> int:
        """Receive what is there, or wait for it; see ``Arriving``."""
        nanoseconds = int(min(seconds, _LONGEST) * _A_SECOND)
        failed = self._receive(self._address, self._descriptor, nanoseconds)
        # Who is interrupted looks again, when signals have been handled.
        while failed == errno.EINTR:
            failed = self._receive(self._address, self._descriptor, nanoseconds)
        batch, count = self.batch, self._receiving.count
        batch.first, batch.count = 0, count
        if failed:
            raise OSError(failed, os.strerror(failed))
        return self._receiving.bytes if count else -1
