"""Frames of a full fragment there and back: one stream through the switch, and the kernel alone."""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

import numpy as np

from bench.errors import BenchError
from bench.testbeds.veth import make_pair, remove_pair
from switchgnn.host.base.pace import Pace
from switchgnn.host.reduce.frames import LANES
from switchgnn.host.reduce.stream import ReduceStream
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.batches import FrameRows
from switchgnn.host.wire.header import ETHERTYPE_IPV4, PROTOCOL, feature_frame_bytes
from switchgnn.host.wire.link import InterfaceLink, Link

_BYTES = feature_frame_bytes(LANES)
# Frames on their way.
_WINDOW = 128
_AT_ONCE = 32
_WAIT = 1.0
_START = 30.0
# Where the Ethernet type begins, and the protocol of IPv4.
_TYPE_AT, _PROTOCOL_AT = 12, 23


def stream_rate(
    link: Link, addresses: Addresses, *, session: int, plan: int, fragments: int
) -> float:
    """Return the numbers per second that a switch adds for a single worker."""
    stream = ReduceStream(
        link,
        addresses,
        worker=0,
        workers=1,
        session=session,
        plan_id=plan,
        pace=Pace(window=_WINDOW),
    )
    stream.start(stream.query().first)
    values = np.arange(fragments * LANES, dtype=np.int32)
    started = time.perf_counter()
    reduction = stream.submit(values)
    while not reduction.done:
        stream.step(_WAIT)
    return len(values) / (time.perf_counter() - started)


@contextmanager
def echo() -> Iterator[Callable[[int], float]]:
    """Run a process that returns frames; give a function from frames to numbers per second."""
    ours, theirs = f"e{os.getpid()}a", f"e{os.getpid()}b"
    make_pair(ours, theirs)
    parent, child = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_return_frames, args=(theirs, child), daemon=True
    )
    process.start()
    try:
        if not parent.poll(_START):
            raise BenchError("The process that returns frames does not start.")
        with InterfaceLink(ours) as link:
            yield lambda frames: _there_and_back(link, frames)
    finally:
        process.terminate()
        process.join()
        remove_pair(ours)


def _return_frames(interface: str, ready: Connection) -> None:
    rows = _frames()
    with InterfaceLink(interface) as link:
        ready.send(True)
        while True:
            batch = link.receive_batch(_WAIT)
            left = 0 if batch is None else batch.count - batch.first
            while left:
                count = min(left, rows.count)
                link.send_rows(rows, 0, count)
                left -= count


def _frames() -> FrameRows:
    """Return frames that pass the filter of an interface."""
    frames = np.zeros((_AT_ONCE, _BYTES), dtype=np.uint8)
    frames[:, _TYPE_AT] = ETHERTYPE_IPV4 >> 8
    frames[:, _PROTOCOL_AT] = PROTOCOL
    return FrameRows(frames)


def _there_and_back(link: Link, frames: int) -> float:
    """Send frames with a window and receive as many; the kernel loses none of so few."""
    rows = _frames()
    sent = received = 0
    started = time.perf_counter()
    while received < frames:
        while sent < frames and sent - received <= _WINDOW - _AT_ONCE:
            count = min(_AT_ONCE, frames - sent)
            link.send_rows(rows, 0, count)
            sent += count
        batch = link.receive_batch(_WAIT)
        received += 0 if batch is None else batch.count - batch.first
    return frames * LANES / (time.perf_counter() - started)
