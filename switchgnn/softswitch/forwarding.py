# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Take packets through ingress, the traffic manager and egress."""

import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field, fields

from switchgnn.softswitch.interpreter import Interpreter, Values
from switchgnn.softswitch.lowering import variables as var
from switchgnn.softswitch.program import DROP_PORT
from switchgnn.softswitch.replication import Replica, ReplicationEngine
from switchgnn.softswitch.traffic_manager import CLASSES, Queued, TrafficManager

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


class Forwarder:
    """The packet path of one program; runs in one thread.

    A sender returns False if the frame is lost and raises BlockingIOError if it must wait.
    """

    def __init__(
        self,
        functions: Interpreter,
        *,
        replication: ReplicationEngine,
        queues: TrafficManager,
        senders: dict[int, Sender],
        counts: ForwardingCounts,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._functions = functions
        self._replication = replication
        self._queues = queues
        self._senders = senders
        self._counts = counts
        self._again: deque[tuple[bytes, int, Values]] = deque()
        self._uses_time = functions.uses_time
        # Frames refused by their ports; the packets after them stay queued.
        self.held: dict[int, bytes] = {}
        self._clock = clock
        self._started = clock()
        # Whether queued packets may be able to leave by `drain`.
        self.waiting = False

    @property
    def busy(self) -> bool:
        """Whether recirculated or resubmitted packets wait."""
        return bool(self._again)

    def receive(self, port: int, data: bytes) -> None:
        """Process a packet that arrived on a port."""
        self._counts.received[port] += 1
        self._pass(data, port, NORMAL, None)

    def run_again(self, limit: int) -> None:
        """Process up to ``limit`` recirculated and resubmitted packets."""
        again = self._again
        while again and limit:
            limit -= 1
            data, instance_type, kept = again.popleft()
            self._pass(data, 0, instance_type, kept)

    def drain(self) -> None:
        """Send every queued packet that may leave now."""
        queues = self._queues
        while (item := queues.pop(self._clock())) is not None:
            self._egress(item[0], item[1], item[2], queues.length(item[0], item[3]))
        self.waiting = False

    def writable(self, port: int) -> None:
        """Send the frames held back for a port that accepts frames again."""
        frame = self.held.pop(port, None)
        if frame is None:
            return
        self._queues.unblock(port, self._clock())
        self._transmit(port, frame)
        self.waiting = True
        self.drain()

    def _hold(self, port: int, frame: bytes) -> None:
        self.held[port] = frame
        self._queues.block(port)

    def _now(self) -> int:
        """Return the microseconds since the program was loaded; 0 if it reads no time."""
        return int((self._clock() - self._started) * 1e6) if self._uses_time else 0

    def _pass(self, data: bytes, port: int, instance_type: int, kept: Values | None) -> None:
        length = len(data)
        now = self._now() if instance_type == NORMAL else 0
        state, spec, group, priority, session, clone_list, resubmit, pos, new_length, cut = (
            self._functions.ingress(data, port, instance_type, now, kept)
        )
        if session >= 0:
            self._clone_ingress(session, clone_list, data, port, state)
        if resubmit:
            self._counts.resubmitted += 1
            self._enter_again((data, RESUBMITTED, self._functions.keep(resubmit, state)))
        elif group:
            # Copies are new packets: truncating the original does not truncate them.
            packet = (state, data, pos, REPLICATED, new_length, None, length)
            self._replicate(self._replication.groups.get(group, ()), packet, priority)
        elif spec == DROP_PORT:
            self._counts.ingress_drops += 1
        else:
            alone = (state, data, pos, NORMAL, new_length, cut, length, -1)
            self._enqueue(spec, alone, priority)
        if self.waiting:
            self.drain()

    def _enter_again(self, item: tuple[bytes, int, Values]) -> None:
        if len(self._again) >= AGAIN_LIMIT:
            self._counts.again_drops += 1
        else:
            self._again.append(item)

    def _enqueue(self, port: int, packet: Queued, priority: int) -> None:
        self.waiting = True
        self._queues.push(port, (*packet, self._now()), self._clock(), priority % CLASSES)

    def _replicate(self, replicas: tuple[Replica, ...], packet: Queued, priority: int = 0) -> None:
        for replica in replicas:
            self._enqueue(replica.port, (*packet, replica.instance), priority)

    def _clone_ingress(
        self, session: int, field_list: int, data: bytes, port: int, state: Values
    ) -> None:
        target = self._replication.sessions.get(session)
        if target is None:
            return
        length = len(data)
        pos, parsed = self._functions.reparse(data, port)
        cloned = self._functions.clone(field_list, parsed, state)
        cut = target.max_length or None
        packet = (cloned, data, pos, INGRESS_CLONE, length, cut, length)
        self._replicate(target.replicas, packet)

    def _clone_egress(
        self, session: int, field_list: int, packet: Queued, after: Values, length: int
    ) -> None:
        target = self._replication.sessions.get(session)
        if target is None:
            return
        cloned = self._functions.clone(field_list, after, after)
        _, data, pos, _, _, _, arrived, _, _ = packet
        cut = target.max_length or None
        copy = (cloned, data, pos, EGRESS_CLONE, length, cut, arrived)
        self._replicate(target.replicas, copy)

    def _egress(self, port: int, packet: Queued, queued_after: int, left_after: int) -> None:
        state, data, pos, instance_type, length, cut, arrived, instance, since = packet
        after, out, session, clone_list, recirculate, new_length, cut = self._functions.egress(
            state,
            data,
            {
                var.POSITION.name: pos,
                var.INPUT_PORT.name: port,
                var.INSTANCE.name: instance,
                var.INSTANCE_TYPE.name: instance_type,
                var.LENGTH.name: length,
                var.KEPT_BYTES.name: var.NEVER_TRUNCATED if cut is None else cut,
                var.PACKET_BYTES.name: arrived,
                var.NOW.name: self._now(),
                var.ENQUEUED_AT.name: since,
                var.DEPTH_BEFORE.name: queued_after,
                var.DEPTH_AFTER.name: left_after,
            },
        )
        if session >= 0:
            self._clone_egress(session, clone_list, packet, after, new_length)
            self.waiting = True
        if out is None:
            self._counts.egress_drops += 1
        elif recirculate:
            self._counts.recirculated += 1
            self._enter_again((out, RECIRCULATED, self._functions.keep(recirculate, after)))
        else:
            self._transmit(port, out if cut >= len(out) else out[:cut])

    def _transmit(self, port: int, frame: bytes) -> None:
        sender = self._senders.get(port)
        if sender is None:
            self._counts.unattached[port] += 1
            return
        try:
            taken = sender(frame)
        except BlockingIOError:
            self._hold(port, frame)
            return
        if taken:
            self._counts.sent[port] += 1
            self._queues.charge(port, len(frame))
        else:
            self._counts.send_errors[port] += 1
