# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Take packets through ingress, replication and egress without a compiler."""

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import NamedTuple

from switchgnn.softswitch.interpreter import Frame, Interpreter, Values, Zeros
from switchgnn.softswitch.lowering import variables as var
from switchgnn.softswitch.lowering.program import LoweredProgram
from switchgnn.softswitch.program import DROP_PORT
from switchgnn.softswitch.queues import CLASSES
from switchgnn.softswitch.state import ProgramState, Replicas

NORMAL = 0
INGRESS_CLONE = 1
EGRESS_CLONE = 2
RECIRCULATED = 4
REPLICATED = 5
RESUBMITTED = 6

# Recirculated and resubmitted packets that may wait; others are dropped.
AGAIN_LIMIT = 1024

Sender = Callable[[bytes], bool]


@dataclass
class ForwardingCounts:
    """Packets by their fate; the Counters are by port, ``tail_drops`` those of full queues."""

    received: Counter[int] = field(default_factory=Counter)
    sent: Counter[int] = field(default_factory=Counter)
    unattached: Counter[int] = field(default_factory=Counter)
    send_errors: Counter[int] = field(default_factory=Counter)
    tail_drops: Counter[int] = field(default_factory=Counter)
    ingress_drops: int = 0
    egress_drops: int = 0
    recirculated: int = 0
    resubmitted: int = 0
    again_drops: int = 0
    without_program: int = 0
    failures: int = 0

    def __add__(self, other: "ForwardingCounts") -> "ForwardingCounts":
        pairs = {f.name: (getattr(self, f.name), getattr(other, f.name)) for f in fields(self)}
        return ForwardingCounts(**{name: one + two for name, (one, two) in pairs.items()})


class _Packet(NamedTuple):
    """A packet between ingress and egress; `cut`: the most bytes that leave."""

    state: Values
    data: bytes
    instance_type: int
    cut: int = var.NEVER_TRUNCATED
    instance: int = -1
    queued_at: int = 0


class Forwarder:
    """The packet path of an interpreted program, in one thread.

    Copies of a packet wait in one queue, of which none is left when a method returns. A sender
    returns False if the frame is lost.
    """

    def __init__(
        self,
        lowered: LoweredProgram,
        *,
        depth: int,
        senders: Mapping[int, Sender],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.state = ProgramState(lowered.program)
        self.counts = ForwardingCounts()
        self._interpreter = Interpreter(self.state)
        self._lowered = lowered
        self._depth = depth
        self._senders = senders
        self._again: deque[tuple[bytes, int, Values]] = deque()
        # By arrival: port, class, packet, and how many of them it found.
        self._queue: deque[tuple[int, int, _Packet, int]] = deque()
        self._lengths: Counter[tuple[int, int]] = Counter()
        self._clock = clock
        self._started = clock()

    def clear(self) -> None:
        """Drop all recirculated and resubmitted packets."""
        self._again.clear()

    def length(self, port: int) -> int:
        """Return the number of packets queued for a port."""
        return sum(self._lengths[port, of_class] for of_class in range(CLASSES))

    @property
    def busy(self) -> bool:
        """Whether recirculated or resubmitted packets wait."""
        return bool(self._again)

    def receive(self, port: int, data: bytes) -> None:
        """Process a packet that arrived on a port."""
        self.counts.received[port] += 1
        self._pass(data, port, NORMAL, None)

    def run_again(self, limit: int) -> None:
        """Process up to ``limit`` recirculated and resubmitted packets."""
        again = self._again
        while again and limit:
            limit -= 1
            data, instance_type, kept = again.popleft()
            self._pass(data, 0, instance_type, kept)

    def _drain(self) -> None:
        while self._queue:
            port, of_class, packet, found = self._queue.popleft()
            self._lengths[port, of_class] -= 1
            self._egress(port, packet, found, self._lengths[port, of_class])

    def _now(self) -> int:
        """Return the microseconds since the program was loaded; 0 if it reads no time."""
        return int((self._clock() - self._started) * 1e6) if self._lowered.uses_time else 0

    def _pass(self, data: bytes, port: int, instance_type: int, kept: Values | None) -> None:
        given = {
            var.PACKET_BYTES.name: len(data),
            var.INPUT_PORT.name: port,
            var.INSTANCE_TYPE.name: instance_type,
            var.NOW.name: self._now() if instance_type == NORMAL else 0,
        }
        frame = Frame(Zeros(given), data, kept)
        self._interpreter.run(self._lowered.ingress, frame)
        state = frame.values
        spec, group, priority = (
            self._interpreter.value(each, frame) for each in self._lowered.results
        )
        packet = _Packet(state, data, REPLICATED)
        session = self.state.sessions.get(state[var.CLONE_SESSION.name])
        if session is not None:
            parsed = Frame(Zeros(given), data)
            self._interpreter.run(self._lowered.reparse or (), parsed)
            cloned = self._cloned(state[var.CLONE_LIST.name], parsed.values, state)
            self._clone(session, _Packet(cloned, data, INGRESS_CLONE))
        resubmit = state[var.RESUBMIT.name]
        if resubmit:
            self.counts.resubmitted += 1
            self._enter_again((data, RESUBMITTED, self._kept(resubmit, state)))
        elif group:
            # Copies are new packets: truncating the original does not truncate them.
            self._replicate(self.state.groups.get(group, ()), packet, priority)
        elif spec == DROP_PORT:
            self.counts.ingress_drops += 1
        else:
            cut = state[var.KEPT_BYTES.name]
            self._enqueue(spec, packet._replace(instance_type=NORMAL, cut=cut), priority)
        self._drain()

    def _kept(self, field_list: int, state: Values) -> Values:
        listed = self._lowered.lists[field_list]
        return {v.name: state[v.name] if v in listed else 0 for v in self._lowered.kept}

    def _cloned(self, field_list: int, state: Values, original: Values) -> Values:
        """Return the state of a clone: that of its packet, with the listed metadata."""
        lost = {each.name for each in self._lowered.metadata}
        cloned = {name: value for name, value in state.items() if name not in lost}
        listed = self._lowered.lists[field_list]
        return Zeros(cloned | {each.name: original[each.name] for each in listed})

    def _enter_again(self, item: tuple[bytes, int, Values]) -> None:
        if len(self._again) >= AGAIN_LIMIT:
            self.counts.again_drops += 1
        else:
            self._again.append(item)

    def _enqueue(self, port: int, packet: _Packet, priority: int) -> None:
        of_class = priority % CLASSES
        found = self._lengths[port, of_class]
        if found >= self._depth:
            self.counts.tail_drops[port] += 1
            return
        self._lengths[port, of_class] += 1
        self._queue.append((port, of_class, packet._replace(queued_at=self._now()), found))

    def _replicate(self, replicas: Replicas, packet: _Packet, priority: int = 0) -> None:
        for replica in replicas:
            self._enqueue(replica.port, packet._replace(instance=replica.instance), priority)

    def _clone(self, session: tuple[Replicas, int], packet: _Packet) -> None:
        replicas, max_length = session
        self._replicate(replicas, packet._replace(cut=max_length or var.NEVER_TRUNCATED))

    def _egress(self, port: int, packet: _Packet, found: int, left: int) -> None:
        inputs = {
            var.INPUT_PORT.name: port,
            var.INSTANCE.name: packet.instance,
            var.INSTANCE_TYPE.name: packet.instance_type,
            var.KEPT_BYTES.name: packet.cut,
            var.PACKET_BYTES.name: len(packet.data),
            var.NOW.name: self._now(),
            var.ENQUEUED_AT.name: packet.queued_at,
            var.DEPTH_BEFORE.name: found,
            var.DEPTH_AFTER.name: left,
        }
        frame = Frame(Zeros(packet.state | inputs), packet.data)
        self._interpreter.run(self._lowered.egress, frame)
        state = frame.values
        session = self.state.sessions.get(state[var.CLONE_SESSION.name])
        if session is not None:
            cloned = self._cloned(state[var.CLONE_LIST.name], state, state)
            self._clone(session, packet._replace(state=cloned, instance_type=EGRESS_CLONE))
        recirculate = state[var.RECIRCULATE.name]
        if frame.dropped:
            self.counts.egress_drops += 1
        elif recirculate:
            self.counts.recirculated += 1
            self._enter_again((bytes(frame.out), RECIRCULATED, self._kept(recirculate, state)))
        else:
            self._transmit(port, bytes(frame.out[: state[var.KEPT_BYTES.name]]))

    def _transmit(self, port: int, frame: bytes) -> None:
        sender = self._senders.get(port)
        if sender is None:
            self.counts.unattached[port] += 1
        elif sender(frame):
            self.counts.sent[port] += 1
        else:
            self.counts.send_errors[port] += 1
