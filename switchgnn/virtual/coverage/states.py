# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The states that hosts and program pass in a run, as words."""

from collections.abc import Iterator
from dataclasses import fields

from switchgnn.controller.controls.passage import Outcome
from switchgnn.host.wire.header import Kind
from switchgnn.virtual.checks.check import SwitchCheck
from switchgnn.virtual.coverage.buckets import bucket_of
from switchgnn.virtual.coverage.groups_apart import GROUP, MANY, GroupsApart
from switchgnn.virtual.coverage.packets_seen import PacketsSeen, answer_in
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.parts.worker import VirtualWorker
from switchgnn.virtual.scene import Scene

_OUTCOME, _EVENTS = ".outcome", ".events"
# As plain numbers: each frame is compared with them.
_KIND_AT, _SHORTEST = 46, 60
_FEATURE, _ACK, _ADVANCE = int(Kind.FEATURE), int(Kind.ACK), int(Kind.ADVANCE)
_ANSWERS = frozenset(map(int, (Kind.MISSING, Kind.WAITING)))
_SLOT_EVENTS = ("completed", "stale", "overfull", "released")


class States(SwitchCheck):
    """Notes which states a run passes; it looks as a check does, and judges nothing.

    Attributes:
        met: all of them.
    """

    def begin(self, scene: Scene) -> None:
        """Look at a scene from now on."""
        super().begin(scene)
        self.met: set[str] = set()
        self._known = 0
        self._now = bytes(4)
        site = scene.subject.site
        self._ends = {
            (site.places[worker][0], site.port(worker)): worker
            for worker in range(len(scene.workers))
        }
        self._taken, self._below = PacketsSeen("taken"), PacketsSeen("taken from a switch")
        self._given, self._above = PacketsSeen("given"), PacketsSeen("given to a switch")
        self._heard = PacketsSeen("heard")
        self._apart = GroupsApart(scene.scenario.window)
        for worker in scene.workers:
            worker.onlookers.append(self)

    def session_begins(self) -> None:
        """Begin with the first round."""
        job = self.scene.job
        if job is not None:
            self._now = bytes((job.session & 0xFF, 0, 0, 0))

    def taken(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        """Note what a switch takes.

        Args:
            switch: where.
            port: its port.
            frames: all of them.
        """
        worker = self._ends.get((switch.number, port))
        if worker is None:
            self._below.note(frames, self._now)
            return
        self._taken.note(frames, self._now)
        for frame in frames:
            # One that is shorter has no number of a group, and what is below it no kind.
            if frame[GROUP] >= MANY and frame[_KIND_AT] & 0xF == _FEATURE:
                self._apart.sent(worker, frame)

    def given(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        """Note what a switch gives.

        Args:
            switch: where.
            port: its port.
            frames: all of them.
        """
        worker = self._ends.get((switch.number, port))
        if worker is None:
            self._above.note(frames, self._now)
            return
        self._given.note(frames, self._now)
        for frame in frames:
            kind = frame[_KIND_AT] & 0xF if len(frame) >= _SHORTEST else 0
            if kind == _ACK:
                self._apart.acknowledged(worker, frame)
            elif kind == _ADVANCE:
                self._go_on(frame)
            elif kind in _ANSWERS:
                self.met.add(answer_in(frame))

    def heard(self, _worker: VirtualWorker, frames: list[bytes]) -> None:
        """Note what a worker takes."""
        # What is of this round was noted where it was given.
        for frame in frames:
            if frame[52:56] != self._now:
                self._heard.note([frame], self._now)

    def _go_on(self, frame: bytes) -> None:
        """Take note of a round that is open."""
        number = frame[52:56]
        if number[0] == self._now[0]:
            self._now = max(self._now, number)

    def ends(self, switch: VirtualSwitch) -> None:
        """Note what a switch has counted."""
        engine = switch.engine
        if engine is None:
            return
        events = [0] * len(_SLOT_EVENTS)
        for name, counter in engine.state.counters.items():
            if name.endswith(_OUTCOME):
                for outcome, number in zip(Outcome, counter.packets, strict=False):
                    self._meet(f"outcome {outcome.name}", number)
            elif name.endswith(_EVENTS):
                cells = counter.packets[: len(events)]
                events = [one + more for one, more in zip(events, cells, strict=True)]
        for event, number in zip(_SLOT_EVENTS, events, strict=True):
            self._meet(f"slot {event}", number)

    def session_ends(self) -> None:
        """Note what workers have counted, and how they have ended."""
        for worker in self.scene.workers:
            error = worker.task.error if worker.task else None
            if error is not None:
                self._meet(type(error).__name__, 1)
            if worker.exchange is not None:
                tally = worker.exchange.tally
                for each in fields(tally):
                    self._meet(each.name, getattr(tally, each.name))
        self._known = len(self.scene.happened)

    def conclude(self, *, in_time: bool) -> None:
        """Note what is left to note.

        Args:
            in_time: whether all has ended by itself.
        """
        for switch in self.scene.switches:
            self.ends(switch)
        for seen in (self._taken, self._below, self._given, self._above, self._heard):
            self.met |= seen.states
        self.met.update(f"groups apart {bucket_of(n)}" for n in self._apart.furthest)

    def _meet(self, what: str, number: int) -> None:
        """Note something, how often it was, and what is wrong meanwhile."""
        if number:
            self.met.add(f"{what} {bucket_of(number)}")
            self.met.update(f"{what} and {incident}" for incident in self._incidents())

    def _incidents(self) -> Iterator[str]:
        """Yield the kinds of what has happened in this session."""
        for _, incident in self.scene.happened[self._known :]:
            where = "controller" if incident.where == "controller" else incident.where[0]
            yield f"{incident.kind.value} {where}"
