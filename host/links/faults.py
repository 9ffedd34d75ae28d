"""Faults on purpose: links that lose, repeat, reorder and corrupt frames.

Those of a worker sit between it and its real link, so they work on every fabric and
with every switch; those between switches are in ``topologies/relay.py``. Everything is
drawn from a seed.
"""

import random
import re
import threading
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from switchgnn.host.base.errors import HostError
from switchgnn.host.links import WrappedLink
from switchgnn.host.links.recording import Recording, RecordingLink
from switchgnn.host.links.split import LinkHalf
from switchgnn.host.wire.header import ETHERNET_BYTES, PROTOCOL
from switchgnn.host.wire.link import Link, open_link

DIRECTIONS = ("up", "down")
WORKERS, CABLES = "workers", "cables"
_CABLE = re.compile(r"l\d+s\d+")
_WORKER = re.compile(r"w\d+")
_LONGEST_DELAY = 4


class FaultError(HostError):
    """A description of faults that cannot be read."""


@dataclass(frozen=True)
class FaultRates:
    """Probabilities per frame, in one direction of one link.

    `reorder`: up to four later frames overtake it. `corrupt`: one to three of its bits are flipped.
    """

    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    corrupt: float = 0.0


@dataclass(frozen=True)
class Faults:
    """The faults on the links of a run: those of workers, and cables between switches.

    The link of worker 3 is ``w3``; ``l0s1`` is the cable from leaf 0 to spine 1. Up is away from
    the workers.
    """

    seed: int = 0  # All draws follow from it, the link and the direction.
    # By (link, `workers`, `cables`, or None for all; direction or None for both), the given
    # probabilities by the names of `FaultRates`.
    rates: Mapping[tuple[str | None, str | None], Mapping[str, float]] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> "Faults":
        """Read ``loss=0.01,duplicate=0.005,seed=7``.

        A direction, a link or a kind of links, or both may precede a name and override the general
        value: ``loss=0.01,up.loss=0.05,w3.down.corrupt=0.1,cables.loss=0``.
        """
        seed = 0
        values: dict[tuple[str | None, str | None], dict[str, float]] = {}
        for word in filter(None, (part.strip() for part in text.split(","))):
            name, _, number = word.partition("=")
            if name == "seed":
                seed = int(_number(word, number))
                continue
            *scope, kind = name.split(".")
            if kind not in {each.name for each in fields(FaultRates)}:
                raise FaultError(
                    f"There is no fault {word!r}: write loss, duplicate, reorder or corrupt with a "
                    "probability, like loss=0.01 or w3.down.loss=0.1, or seed=7."
                )
            value = _number(word, number)
            if not 0 <= value < 1:
                raise FaultError(f"The probability in {word!r} must be at least 0 and less than 1.")
            values.setdefault(_scope(word, scope), {})[kind] = value
        return cls(seed, values)

    @property
    def on_cables(self) -> bool:
        """Whether any faults apply to cables."""
        return any(link is None or _kind(link) == CABLES for link, _ in self.rates)

    def check(self, links: Collection[str]) -> None:
        """Reject rates for other links than these."""
        known = {*links, *map(_kind, links), None}
        for link, _ in self.rates:
            if link not in known:
                raise FaultError(
                    f"There is no link {link} for faults: the links are {', '.join(links)}."
                )

    def of(self, link: str, direction: str) -> FaultRates:
        """Return the rates of one direction of one link: the most specific ones win."""
        merged: dict[str, float] = {}
        for scope in (None, _kind(link), link):
            for where in (None, direction):
                merged |= self.rates.get((scope, where), {})
        return FaultRates(**merged)


@dataclass
class FaultCounts:
    """The number of frames by fault."""

    lost: int = 0
    duplicated: int = 0
    reordered: int = 0
    corrupted: int = 0


class FaultyLink(WrappedLink):
    """The link of a worker, with faults in both directions."""

    def __init__(self, link: Link, faults: Faults, worker: int) -> None:
        super().__init__(link)
        self._up = FaultyDirection(faults, worker_link(worker), "up")
        self._down = FaultyDirection(faults, worker_link(worker), "down")
        self.counts = {"up": self._up.counts, "down": self._down.counts}
        self._arrived: deque[bytes] = deque()
        self._sending = threading.Lock()

    def send(self, frame: bytes | memoryview) -> None:
        """Send the frame, subject to faults."""
        with self._sending:
            frames = self._up.disturb(frame)
        for each in frames:
            self._link.send(each)

    def receive(self, seconds: float) -> memoryview | None:
        """Return the next frame that survives the faults."""
        while not self._arrived:
            frame = self._link.receive(0.0)
            if frame is None:
                # No later frame overtakes a delayed one any more, so it arrives now.
                if self._up.holds:
                    with self._sending:
                        frames = self._up.release()
                    for each in frames:
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


def injected_faults(link: Link) -> dict[str, FaultCounts]:
    """Return the faults on a link by direction; empty without injection."""
    while isinstance(link, LinkHalf):
        link = link.whole
    return link.counts if isinstance(link, FaultyLink) else {}


def open_worker_link(
    description: str,
    faults: str,
    worker: int,
    protocols: tuple[int, ...] = (PROTOCOL,),
    recording: Path | None = None,
) -> Link:
    """Open the link of a worker, with faults and a recording if asked for.

    `recording`: a file from ``begin_recording``, or None. It has the frames as the switch sees
    them.
    """
    parsed = Faults.parse(faults)
    link = open_link(description, *protocols)
    if recording is not None:
        link = RecordingLink(link, Recording(recording))
    return FaultyLink(link, parsed, worker) if parsed.rates else link


class FaultyDirection:
    """Applies faults to the frames of one direction of a link, and counts them."""

    def __init__(self, faults: Faults, link: str, direction: str) -> None:
        self.counts = FaultCounts()
        self._rates = faults.of(link, direction)
        self._random = random.Random(f"{faults.seed}/{link}/{direction}")  # noqa: S311
        self._delayed: list[tuple[int, bytes]] = []

    @property
    def holds(self) -> bool:
        """Whether a delayed frame waits to be overtaken."""
        return bool(self._delayed)

    def disturb(self, frame: bytes | memoryview) -> list[bytes]:
        """Return the frames that arrive when this one is sent."""
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


def worker_link(worker: int) -> str:
    """Return what the link of a worker is called."""
    return f"w{worker}"


def _kind(link: str) -> str:
    return CABLES if link == CABLES or _CABLE.fullmatch(link) else WORKERS


def _scope(word: str, scope: list[str]) -> tuple[str | None, str | None]:
    link: str | None = None
    direction: str | None = None
    for part in scope:
        if part in DIRECTIONS:
            direction = part
        elif part in (WORKERS, CABLES) or _WORKER.fullmatch(part) or _CABLE.fullmatch(part):
            link = part
        else:
            raise FaultError(
                f"The {part!r} in {word!r} is neither up, down, workers, cables, a worker like w3, "
                "nor a cable like l0s1."
            )
    return link, direction


def _number(word: str, number: str) -> float:
    try:
        return float(number)
    except ValueError as error:
        raise FaultError(f"The value in {word!r} must be a number, not {number!r}.") from error
