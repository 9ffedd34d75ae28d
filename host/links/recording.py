"""Keeps what passes a link in a pcap file, which tcpdump and Wireshark read.

Each frame is in the file before anybody sees it, or before it leaves: nothing is dropped, and a
file is whole whenever its writer ends, however it ends.

https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-05.html
"""

import os
import struct
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from switchgnn.base.files import writing
from switchgnn.host.links import WrappedLink
from switchgnn.host.wire.batches import FrameBatch, FrameRows
from switchgnn.host.wire.link import Link

# Nanoseconds, in the order of bytes of most machines; Ethernet.
_FILE_HEADER = struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, 1)
EMPTY_BYTES = len(_FILE_HEADER)
_FRAME_HEADER = struct.Struct("<IIII")
_BILLION = 1_000_000_000


def begin_recording(path: Path) -> None:
    """Create a file without frames for a ``Recording``."""
    with path.open("xb") as file:
        file.write(_FILE_HEADER)


class Recording:
    """Appends frames to a file from ``begin_recording``; several threads may add at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writing = threading.Lock()
        with writing(path):
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            self._end = os.fstat(self._file).st_size

    def add(self, frames: Iterable[bytes | memoryview]) -> None:
        """Add frames that pass now."""
        seconds, part = divmod(time.time_ns(), _BILLION)
        pieces: list[bytes | memoryview] = []
        for frame in frames:
            pieces.append(_FRAME_HEADER.pack(seconds, part, len(frame), len(frame)))
            pieces.append(frame)
        with self._writing, writing(self._path):
            self._write(b"".join(pieces))

    def _write(self, content: bytes) -> None:
        # Unbuffered, so that nothing is lost if the process is killed.
        done = 0
        try:
            while done < len(content):
                done += os.write(self._file, content[done:] if done else content)
        except OSError:
            os.ftruncate(self._file, self._end)
            raise
        self._end += done

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class RecordingLink(WrappedLink):
    """A recorded link, as a tap at the switch's end of a worker's link would see it."""

    def __init__(self, link: Link, recording: Recording) -> None:
        super().__init__(link)
        self._recording = recording

    def send(self, frame: bytes | memoryview) -> None:
        """Record a frame, and send it."""
        # First, so that no answer is older than its question.
        self._recording.add((frame,))
        self._link.send(frame)

    def send_rows(self, rows: FrameRows, first: int, count: int) -> None:
        """Record some frames, and send them in their order."""
        self._recording.add(rows.frame(index) for index in range(first, first + count))
        self._link.send_rows(rows, first, count)

    def receive(self, seconds: float) -> memoryview | None:
        """Return the next frame, recorded."""
        frame = self._link.receive(seconds)
        if frame is not None:
            self._recording.add((frame,))
        return frame

    def receive_batch(self, seconds: float) -> FrameBatch | None:
        """Return the next frames, recorded."""
        batch = self._link.receive_batch(seconds)
        if batch is not None:
            self._recording.add(batch.frame(index) for index in range(batch.first, batch.count))
        return batch

    def keep_batch(self) -> bool:
        """See ``Link``."""
        return self._link.keep_batch()

    def close(self) -> None:
        """Close the link and the file."""
        super().close()
        self._recording.close()
