# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Faults on purpose: a link that loses, repeats, reorders and corrupts frames.

It sits between a worker and its real link, so it works on every fabric and
with every switch. Everything is drawn from a seed.
"""

import random
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from switchgnn.host.errors import HostError
from switchgnn.host.header import ETHERNET_BYTES
from switchgnn.host.link import Link, Traffic

DIRECTIONS = ("up", "down")
_LONGEST_DELAY = 4


class FaultError(HostError):
    """A description of faults that cannot be read."""


@dataclass(frozen=True)
class FaultRates:
    """Probabilities per frame, in one direction of one link.

    Attributes:
        loss: the frame is dropped.
        duplicate: it arrives twice.
        reorder: up to four later frames overtake it.
        corrupt: one to three of its bits are flipped.
    """

    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    corrupt: float = 0.0


@dataclass(frozen=True)
class Faults:
    """What happens on the links of a run.

    Attributes:
        seed: all draws follow from it, the worker and the direction.
        rates: by (worker or None for all, direction or None for both), the probabilities
            that were given, by the names of ``FaultRates``.
    """

    seed: int = 0
    rates: Mapping[tuple[int | None, str | None], Mapping[str, float]] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> "Faults":
        """Read ``loss=0.01,duplicate=0.005,seed=7``.

        A name may be preceded by a direction, a worker, or both, which then replace what
        holds for all: ``loss=0.01,up.loss=0.05,w3.down.corrupt=0.1``.

        Raises:
            FaultError: an unknown name or a number that is no probability.
        """
        seed = 0
        values: dict[tuple[int | None, str | None], dict[str, float]] = {}
        for word in filter(None, (part.strip() for part in text.split(","))):
            name, _, number = word.partition("=")
            if name == "seed":
                seed = int(_number(word, number))
                continue
            *scope, kind = name.split(".")
            if kind not in {each.name for each in fields(FaultRates)}:
                raise FaultError(
                    f"{word!r} is no fault: write loss, duplicate, reorder or corrupt with a "
                    "probability, like loss=0.01 or w3.down.loss=0.1, or seed=7."
                )
            values.setdefault(_scope(word, scope), {})[kind] = _probability(word, number)
        return cls(seed, values)

    def of(self, worker: int, direction: str) -> FaultRates:
        """Return the rates of one direction of one link: the nearest description wins."""
        merged: dict[str, float] = {}
        for scope in ((None, None), (None, direction), (worker, None), (worker, direction)):
            merged |= self.rates.get(scope, {})
        return FaultRates(**merged)


@dataclass
class FaultCounts:
    """How many frames met which fault."""

    lost: int = 0
    duplicated: int = 0
    reordered: int = 0
    corrupted: int = 0


class FaultyLink(Link):
    """A link with faults in both directions."""

    def __init__(self, link: Link, faults: Faults, worker: int) -> None:
        self._link = link
        self._up = _Direction(faults, worker, "up")
        self._down = _Direction(faults, worker, "down")
        self._arrived: deque[bytes] = deque()

    @property
    def name(self) -> str:
        """What the link is attached to, for messages."""
        return self._link.name

    @property
    def traffic(self) -> Traffic:
        """What has passed the real link."""
        return self._link.traffic

    @property
    def counts(self) -> dict[str, FaultCounts]:
        """The faults by direction."""
        return {"up": self._up.counts, "down": self._down.counts}

    def send(self, frame: bytes | memoryview) -> None:
        """Send what becomes of the frame."""
        for each in self._up.disturb(frame):
            self._link.send(each)

    def receive(self, seconds: float) -> memoryview | None:
        """Return what becomes of the frames that arrive."""
        while not self._arrived:
            frame = self._link.receive(0.0)
            if frame is None:
                # Nobody overtakes a delayed frame any more, so it arrives now.
                for each in self._up.release():
                    self._link.send(each)
                self._arrived.extend(self._down.release())
                if self._arrived or seconds <= 0:
                    break
                frame = self._link.receive(seconds)
                seconds = 0.0
            if frame is None:
                break
            self._arrived.extend(self._down.disturb(frame))
        return memoryview(self._arrived.popleft()) if self._arrived else None

    def close(self) -> None:
        """Close the real link."""
        self._link.close()


class _Direction:
    def __init__(self, faults: Faults, worker: int, direction: str) -> None:
        self.counts = FaultCounts()
        self._rates = faults.of(worker, direction)
        self._random = random.Random(f"{faults.seed}/{worker}/{direction}")  # noqa: S311
        self._delayed: list[tuple[int, bytes]] = []

    def disturb(self, frame: bytes | memoryview) -> list[bytes]:
        """Return the frames that arrive because this one was sent."""
        rates, draw = self._rates, self._random.random
        if rates.loss and draw() < rates.loss:
            self.counts.lost += 1
            return self._pass_delayed([])
        whole = bytes(frame)
        if rates.corrupt and draw() < rates.corrupt:
            self.counts.corrupted += 1
            whole = self._corrupt(whole)
        if rates.reorder and draw() < rates.reorder:
            self.counts.reordered += 1
            self._delayed.append((self._random.randint(1, _LONGEST_DELAY), whole))
            return []
        frames = [whole]
        if rates.duplicate and draw() < rates.duplicate:
            self.counts.duplicated += 1
            frames.append(whole)
        return self._pass_delayed(frames)

    def release(self) -> list[bytes]:
        """Return all delayed frames."""
        frames = [frame for _, frame in self._delayed]
        self._delayed.clear()
        return frames

    def _pass_delayed(self, frames: list[bytes]) -> list[bytes]:
        due = [frame for wait, frame in self._delayed if wait <= 1]
        self._delayed = [(wait - 1, frame) for wait, frame in self._delayed if wait > 1]
        return frames + due

    def _corrupt(self, frame: bytes) -> bytes:
        changed = bytearray(frame)
        for _ in range(self._random.randint(1, 3)):
            bit = self._random.randrange(8 * ETHERNET_BYTES, 8 * len(changed))
            changed[bit // 8] ^= 1 << bit % 8
        return bytes(changed)


def _scope(word: str, scope: list[str]) -> tuple[int | None, str | None]:
    worker: int | None = None
    direction: str | None = None
    for part in scope:
        if part in DIRECTIONS:
            direction = part
        elif part.startswith("w") and part[1:].isdigit():
            worker = int(part[1:])
        else:
            raise FaultError(f"{word!r}: {part!r} is neither up, down nor a worker like w3.")
    return worker, direction


def _number(word: str, number: str) -> float:
    try:
        return float(number)
    except ValueError as error:
        raise FaultError(f"{word!r}: {number!r} is no number.") from error


def _probability(word: str, number: str) -> float:
    value = _number(word, number)
    if not 0 <= value < 1:
        raise FaultError(f"{word!r}: a probability is at least 0 and less than 1.")
    return value
