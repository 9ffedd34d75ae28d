# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A worker that has gone mad: for a time its line takes what it likes, beside its own frames."""

from collections import deque
from collections.abc import Iterable
from random import Random

from switchgnn.host.wire.header import BODY_AT, KIND_AT, KIND_MASK, LAST_ROUND, Kind
from switchgnn.virtual.mad.generator import ON_A_WIRE, Generator
from switchgnn.virtual.network.fields import read_field
from switchgnn.virtual.network.wire import Wire
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.timing.scheduler import SECOND, Scheduler
from switchgnn.virtual.trace import Trace

# What it does not send more of, each time it goes mad: a frame costs as much as a sound one.
_MOST_FRAMES = 300
_VOLLEY = 6
# Between two volleys, in magnitudes: from nanoseconds of less than a way to this share of the time.
_SHORTEST_GAP, _LONGEST_GAP = 5_000, 0.1
# Of each kind of packet this many of the last ones are remembered.
_REMEMBERED = 8
# How often it draws a frame about the plan, changes one that has passed, or says that it is done
# with what is to come; otherwise raw bytes.
_ABOUT_THE_PLAN, _OF_THOSE_THAT_PASSED, _AHEAD = 0.4, 0.4, 0.15
_SESSION_SHIFT = 24
_MAC_BYTES, _WITH_ADDRESSES = 12, 0.5


class MadWorker:
    """Sends what it likes over the line of a worker; an onlooker of its switch.

    Args:
        number: of the worker.
        generator: draws frames about the plan.
        up: the line.
        port: of the switch that the line leads to.
        scheduler: keeps the time.
        trace: hears of each volley.

    Attributes:
        began: whether it has gone mad yet.
    """

    def __init__(
        self,
        number: int,
        generator: Generator,
        up: Wire,
        port: int,
        *,
        scheduler: Scheduler,
        trace: Trace,
    ) -> None:
        self.began = False
        self._name = f"w{number}"
        self._generator = generator
        self._random: Random = generator.random
        self._up = up
        self._port = port
        self._scheduler = scheduler
        self._trace = trace
        self._passed: dict[int, deque[bytes]] = {}
        self._own: deque[bytes] = deque(maxlen=_MOST_FRAMES)
        self._until = 0
        self._left = 0
        self._raves = False
        self._gaps = (0.0, 0.0)

    def rave(self, seconds: float) -> None:
        """Send what it likes for that long, or until it has sent enough."""
        self.began = True
        self._until = max(self._until, self._scheduler.now + int(seconds * SECOND))
        self._left = _MOST_FRAMES
        self._gaps = _SHORTEST_GAP / SECOND, max(_SHORTEST_GAP / SECOND, _LONGEST_GAP * seconds)
        if not self._raves:
            self._raves = True
            self._fire()

    def calm(self) -> None:
        """Send nothing of its own any more."""
        self._until = self._left = 0

    def taken(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        """Remember what the worker's process has sent.

        Args:
            switch: where.
            port: its port.
            frames: all of them.
        """
        if port == self._port:
            self._remember(frame for frame in frames if frame not in self._own)

    def given(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        """Remember what has come for it.

        Args:
            switch: where.
            port: its port.
            frames: all of them.
        """
        if port == self._port:
            self._remember(frames)

    def _remember(self, frames: Iterable[bytes]) -> None:
        for frame in frames:
            kind = frame[KIND_AT] & KIND_MASK if len(frame) >= BODY_AT else -1
            self._passed.setdefault(kind, deque(maxlen=_REMEMBERED)).append(frame)

    def ends(self, switch: VirtualSwitch) -> None:
        """Remember what has passed, whatever the switch forgets."""

    def _fire(self) -> None:
        if self._scheduler.now > self._until or self._left <= 0:
            self._raves = False
            return
        number = self._random.randint(1, min(_VOLLEY, self._left))
        self._left -= number
        self._trace.note(self._name, f"is mad, and sends {number} frames")
        frames = [self._frame() for _ in range(number)]
        self._own.extend(frames)
        self._up.send(frames)
        least, most = self._gaps
        gap = int(SECOND * least * (most / least) ** self._random.random())
        self._scheduler.after(gap, self._fire)

    def _frame(self) -> bytes:
        sort = self._random.random()
        if sort < _ABOUT_THE_PLAN:
            return self._generator.shot().aim(*self._present())
        if sort < _ABOUT_THE_PLAN + _OF_THOSE_THAT_PASSED and self._passed:
            frames = self._passed[self._random.choice(list(self._passed))]
            return self._generator.changed(self._random.choice(frames))
        done = self._passed.get(Kind.DONE)
        if sort < _ABOUT_THE_PLAN + _OF_THOSE_THAT_PASSED + _AHEAD and done:
            return self._generator.ahead(done[-1])
        raw = self._random.randbytes(int(ON_A_WIRE ** self._random.random()))
        with_addresses = self._passed and self._random.random() < _WITH_ADDRESSES
        return next(iter(self._passed.values()))[-1][:_MAC_BYTES] + raw if with_addresses else raw

    def _present(self) -> tuple[int, int]:
        """Return session and round of the last barrier that has passed."""
        for kind in (Kind.ADVANCE, Kind.DONE):
            if kind in self._passed:
                number = read_field(self._passed[kind][-1], "round")
                return number >> _SESSION_SHIFT, number & LAST_ROUND
        return 1, 1
