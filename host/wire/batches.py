"""Many frames at a time, as they leave and as they arrive, and pauses to gather them."""

import errno
import select
import socket
import struct
import time

import numpy as np

from switchgnn.base.array_types import UInt8s, UInt32s

_NOTHING_YET = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EINTR)
_SOL_UDP, _UDP_SEGMENT = 17, 103
_MOST_SEGMENTS = 64
# What one UDP message over IPv4 takes, and a little less.
_MOST_CUT_BYTES = 65_000
_SEGMENT = struct.Struct("H")


class FrameBatch:
    """Frames that have arrived together, in the order of arrival; `first` was not taken yet.

    `room`: uint8[B], contiguous. `begins`, `sizes`: uint32[N], where each frame begins, and its
    bytes.
    """

    def __init__(self, room: UInt8s, begins: UInt32s, sizes: UInt32s) -> None:
        self.room, self.begins, self.sizes = room, begins, sizes
        self.first = self.count = 0
        # One element of an array costs more than one of a view.
        self._bytes, self._begins, self._sizes = room.data, begins.data, sizes.data

    def frame(self, index: int) -> memoryview:
        """Return a frame, valid until the next batch is received."""
        begin = self._begins[index]
        return self._bytes[begin : begin + self._sizes[index]]

    def put(self, frame: bytes | memoryview) -> None:
        """Append a frame."""
        begin = self._begins[self.count]
        self._bytes[begin : begin + len(frame)] = frame
        self._sizes[self.count] = len(frame)
        self.count += 1


def new_batch(frames: int, longest: int) -> FrameBatch:
    """Return an empty batch; `longest`: bytes of the longest frame."""
    room = np.zeros(frames * longest, dtype=np.uint8)
    begins = np.arange(frames, dtype=np.uint32) * np.uint32(longest)
    return FrameBatch(room, begins, np.zeros(frames, dtype=np.uint32))


class PlainArriving:
    """Receives frames from a socket into `batch` one by one; `longest` in bytes."""

    def __init__(self, sock: socket.socket, frames: int, longest: int) -> None:
        self.batch = new_batch(frames, longest)
        self._socket = sock
        self._rooms = [room.data for room in self.batch.room.reshape(frames, longest)]
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)

    def receive(self, seconds: float) -> int:
        """Receive frames, waiting up to ``seconds``; return their bytes, -1 for none."""
        if seconds > 0:
            self._poll.poll(seconds * 1000)
        batch = self.batch
        batch.first = batch.count = 0
        for room in self._rooms:
            try:
                batch.sizes[batch.count] = self._socket.recv_into(room)
            except OSError as error:
                if not batch.count and error.errno not in _NOTHING_YET:
                    raise
                break
            batch.count += 1
        return int(batch.sizes[: batch.count].sum()) if batch.count else -1


class FrameRows:
    """Frames to be sent many at a time: uint8[S, L], contiguous; may change between two sends.

    `sizes`: uint32[S], the bytes of each, at most L; None: all have L.
    """

    def __init__(self, frames: UInt8s, sizes: UInt32s | None = None) -> None:
        self.count, self.frame_bytes = len(frames), int(frames.shape[1])
        self.frames, self.sizes = frames, sizes
        self._bytes = frames.reshape(-1).data
        self._most_cut = min(_MOST_SEGMENTS, _MOST_CUT_BYTES // max(1, self.frame_bytes))

    def frame(self, index: int) -> memoryview:
        """Return one of them."""
        begin = index * self.frame_bytes
        return self._bytes[begin : begin + self.bytes_of(index, 1)]

    def bytes_of(self, first: int, count: int) -> int:
        """Return the total bytes of some of them."""
        if self.sizes is None:
            return count * self.frame_bytes
        return int(np.add.reduce(self.sizes[first : first + count]))

    def send_cut(self, sock: socket.socket, first: int, count: int) -> int:
        """Send some of them as one message that the kernel cuts into datagrams.

        https://man7.org/linux/man-pages/man7/udp.7.html (UDP_SEGMENT)
        """
        count = max(1, min(count, self._most_cut))
        if self.sizes is not None:
            # A message may end with a shorter frame, and goes no further.
            shorter = self.sizes[first : first + count] < self.frame_bytes
            count = int(shorter.argmax()) + 1 if shorter.any() else count
        begin = first * self.frame_bytes
        message = self._bytes[begin : begin + self.bytes_of(first, count)]
        segment = _SEGMENT.pack(min(self.frame_bytes, len(message)))
        sock.sendmsg([message], [(_SOL_UDP, _UDP_SEGMENT, segment)])
        return count


# A link lets this many frames gather where they trickle in, but never for longer than this.
_TOGETHER = 16
_LONGEST_PAUSE = 0.001
# After a longer silence frames no longer trickle in.
_SILENCE = 0.002
_SPACING_WEIGHT = 0.25


class ReceiveCoalescer:
    """Pauses between batches, so that frames of a slow line arrive several at a time.

    On a slow line every frame arrives alone, and waking up for each one takes two fifths of the
    processor time of an exchange. Network interfaces moderate their interrupts for the same reason.
    """

    def __init__(self) -> None:
        self._spacing = 0.0
        self._frames = _TOGETHER
        self._received_at = float("-inf")

    def took(self, frames: int) -> None:
        """Record a batch that has just been received."""
        now = time.monotonic()
        since, self._received_at = now - self._received_at, now
        self._frames = frames
        if since < _SILENCE:
            self._spacing += _SPACING_WEIGHT * (since / frames - self._spacing)

    def gather(self, seconds: float) -> float:
        """Pause until about a batch has arrived; return the seconds left of a wait of ``seconds``.

        After a large batch or a silence the next frame must not be delayed.
        """
        silent = time.monotonic() - self._received_at >= _SILENCE
        pause = min(_LONGEST_PAUSE, _TOGETHER * self._spacing, seconds)
        if silent or self._frames >= _TOGETHER or pause <= 0:
            return seconds
        time.sleep(pause)
        return seconds - pause
