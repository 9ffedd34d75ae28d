"""The frames that a native engine sends to captured ports."""

from ctypes import create_string_buffer
from functools import partial
from struct import Struct

from switchgnn.softswitch.native.engine import NativeEngine

# Before each frame: its port and its length.
_HEAD = Struct("=II")
_LONGEST = _HEAD.size + (1 << 17)
_ROOM = 2 * _LONGEST


class Captured:
    """Returns the frames sent since the last call, as (port, frame)."""

    def __init__(self, engine: NativeEngine) -> None:
        self._move = partial(engine.switch.call, "switch_captured")
        self._room = create_string_buffer(_ROOM)
        self._moved = memoryview(self._room).cast("B")

    def __call__(self) -> list[tuple[int, bytes]]:
        frames: list[tuple[int, bytes]] = []
        used = _ROOM
        # More frames remain only if another of the longest would not fit.
        while used > _ROOM - _LONGEST:
            used = self._move(self._room, _ROOM)
            end = 0
            while end < used:
                port, length = _HEAD.unpack_from(self._moved, end)
                begin = end + _HEAD.size
                end = begin + length
                frames.append((port, self._moved[begin:end].tobytes()))
        return frames
