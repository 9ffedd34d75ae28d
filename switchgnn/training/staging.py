# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Rows between a GPU and NumPy, copied while the GPU and the worker do other things.

Rows go through pinned memory, which a GPU copies from and to by itself, on streams beside the one
that computes. Who asks for a copy goes on at once; only who needs the rows waits, on the host for
an event, on the GPU by a stream that waits for one. Pinned memory is dear to take, so it is used
again, as soon as the last copy from or to it is done. Rows on the CPU are not copied at all.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Shape = tuple[int, ...]


class Event(Protocol):
    """The end of a copy."""

    def synchronize(self) -> None:
        """Wait until the copy is done."""

    def query(self) -> bool:
        """Tell whether the copy is done."""


class Lane(Protocol):
    """Copies from and to one device, beside what it computes."""

    def pinned(self, shape: Shape) -> Tensor:
        """Return new float32 memory on the host, which the device copies from and to by itself."""

    def down(self, rows: Tensor, pinned: Tensor) -> Event:
        """Begin to copy rows to the host, behind what the caller has had computed so far."""

    def up(self, pinned: Tensor) -> tuple[Tensor, Event]:
        """Begin to copy rows to the device; return where they will be."""

    def need(self, rows: Tensor, event: Event) -> None:
        """Let what the caller has computed from now on wait for a copy to the device."""


class CudaLane:
    """A lane to a GPU of NVIDIA.

    Args:
        device: which one.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        # Two of them: sums that have come must not wait behind rows that are not computed yet.
        self._down = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._up = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def pinned(self, shape: Shape) -> Tensor:
        """Return new float32 memory on the host, pinned."""
        return torch.empty(shape, dtype=torch.float32, pin_memory=True)

    def down(self, rows: Tensor, pinned: Tensor) -> Event:
        """Begin to copy rows to the host, behind what is on the current stream."""
        self._down.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(self._down):
            pinned.copy_(rows, non_blocking=True)
            event: torch.cuda.Event = self._down.record_event()
        # Their memory may be given to others only when they are copied.
        rows.record_stream(self._down)
        return event

    def up(self, pinned: Tensor) -> tuple[Tensor, Event]:
        """Begin to copy rows to the device; return where they will be."""
        with torch.cuda.stream(self._up):
            rows = pinned.to(self._device, non_blocking=True)
            return rows, self._up.record_event()

    def need(self, rows: Tensor, event: Event) -> None:
        """Let the current stream wait for a copy to the device."""
        current = torch.cuda.current_stream(self._device)
        assert isinstance(event, torch.cuda.Event)  # noqa: S101  it is one of this lane
        current.wait_event(event)
        # Their memory belongs to the other stream, which must not give it to others before.
        rows.record_stream(current)


class OnHost:
    """Rows on their way to the host.

    Args:
        values: where they will be.
        event: the end of the copy; None: they are there.
        give_back: called when nobody looks at them any more.
    """

    def __init__(self, values: Tensor, event: Event | None, give_back: Callable[[], None]) -> None:
        self._values = values
        self._event = event
        self._give_back = give_back

    @contextmanager
    def array(self) -> Iterator[NDArray[np.float32]]:
        """Wait for the rows; they are there until the end of the block."""
        if self._event is not None:
            self._event.synchronize()
        try:
            yield self._values.numpy()
        finally:
            self._give_back()


class OnDevice:
    """Rows on their way to a device.

    Args:
        rows: where they will be.
        need: lets what the caller has computed from now on wait for them.
    """

    def __init__(self, rows: Tensor, need: Callable[[], None]) -> None:
        self._rows = rows
        self._need = need

    def tensor(self) -> Tensor:
        """Return the rows; what is computed with them by the caller waits for them."""
        self._need()
        return self._rows


class Staging:
    """Copies rows between devices and the host; threads may share it.

    Args:
        lane: makes the lane of a device, when it is first needed.
    """

    def __init__(self, lane: Callable[[torch.device], Lane] = CudaLane) -> None:
        self._make = lane
        self._stages: dict[torch.device, _Stage] = {}
        self._lock = threading.Lock()

    def to_host(self, rows: Tensor) -> OnHost:
        """Begin to bring rows to the host, as float32.

        Args:
            rows: [n, F] on any device; they must stay as they are until they are there.

        Returns:
            The rows on their way.
        """
        rows = rows.detach().to(torch.float32).contiguous()
        if rows.device.type == "cpu":
            return OnHost(rows, None, _nothing)
        return self._stage(rows.device).to_host(rows)

    def to_device(self, rows: NDArray[np.float32], device: torch.device) -> OnDevice:
        """Begin to bring rows to a device.

        Args:
            rows: float32[n, F].
            device: any.

        Returns:
            The rows on their way.
        """
        values = torch.from_numpy(rows)
        if device.type == "cpu":
            return OnDevice(values, _nothing)
        return self._stage(device).to_device(values)

    def _stage(self, device: torch.device) -> "_Stage":
        with self._lock:
            if device not in self._stages:
                self._stages[device] = _Stage(self._make(device))
            return self._stages[device]


class _Stage:
    """The lane of a device, and the pinned memory beside it."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._pool = _Pool(lane)

    def to_host(self, rows: Tensor) -> OnHost:
        pinned = self._pool.take(tuple(rows.shape))
        event = self._lane.down(rows, pinned)
        return OnHost(pinned, event, lambda: self._pool.give(pinned, event))

    def to_device(self, values: Tensor) -> OnDevice:
        pinned = self._pool.take(tuple(values.shape))
        pinned.copy_(values)
        rows, event = self._lane.up(pinned)
        self._pool.give(pinned, event)
        return OnDevice(rows, lambda: self._lane.need(rows, event))


class _Pool:
    """Pinned memory that nobody uses, by its shape, each with the last copy from or to it."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._free: defaultdict[Shape, list[tuple[Tensor, Event]]] = defaultdict(list)
        self._lock = threading.Lock()

    def take(self, shape: Shape) -> Tensor:
        """Return memory that no copy uses any more; new memory where there is none."""
        with self._lock:
            for place, (pinned, event) in enumerate(self._free[shape]):
                if event.query():
                    del self._free[shape][place]
                    return pinned
        return self._lane.pinned(shape)

    def give(self, pinned: Tensor, event: Event) -> None:
        """Take memory back, which the copy may still use."""
        with self._lock:
            self._free[tuple(pinned.shape)].append((pinned, event))


def _nothing() -> None:
    """There is nothing to wait for, and nothing to give back."""
