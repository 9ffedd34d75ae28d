"""Interpret a program: take packets through ingress, replication and egress without a compiler."""

import operator
import random
import time
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from switchgnn.softswitch.base import ir
from switchgnn.softswitch.base.hashing import ALGORITHMS
from switchgnn.softswitch.base.ports import CLASSES, ForwardingCounts, Sender
from switchgnn.softswitch.base.program import DROP_PORT
from switchgnn.softswitch.base.state import ProgramState, Replicas
from switchgnn.softswitch.lowering import variables as var
from switchgnn.softswitch.lowering.program import LoweredProgram

Values = dict[str, int]
_POSITION, _PACKET_BYTES = var.POSITION.name, var.PACKET_BYTES.name


class Frame:
    """One call of a function: its variables, 0 at first, the packet, and what statements leave."""

    def __init__(self, values: Values, data: bytes, kept: Values | None = None) -> None:
        self.values = values
        self.data = data
        self.kept = kept
        self.out = bytearray()
        self.dropped = False
        self.entry: tuple[Any, ...] = ()
        self.digest = 0


_OPERATORS: Mapping[str, Callable[..., int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda left, right: left // right if right else 0,
    "%": lambda left, right: left % right if right else 0,
    "<<": lambda number, by: number << by if by <= ir.WIDEST_SHIFT else 0,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "~": operator.invert,
    "not": operator.not_,
    "random": random.SystemRandom().randint,
}


class Interpreter:
    """Runs statements and evaluates expressions over one state."""

    def __init__(self, state: ProgramState) -> None:
        self._state = state

    def run(self, block: ir.Block, frame: Frame) -> ir.Simple | None:
        """Run a block; return what ends it before its last statement."""
        for statement in block:
            end = self._step(statement, frame)
            if end is not None:
                return end
        return None

    def _step(self, statement: ir.Statement, frame: Frame) -> ir.Simple | None:  # noqa: PLR0912  a case for each
        values = frame.values
        match statement:
            case ir.Assign(variable=variable, value=value) | ir.Let(variable=variable, value=value):
                values[variable.name] = self.value(value, frame)
            case ir.If(branches=branches, otherwise=otherwise):
                for test, block in branches:
                    if self.value(test, frame):
                        return self.run(block, frame)
                return self.run(otherwise, frame)
            case ir.Parse(body=body) | ir.Deparse(body=body):
                return self.run(body, frame)
            case ir.Repeat(body=body):
                while self.run(body, frame) is not ir.Simple.BREAK:
                    pass
            case ir.Simple.BREAK | ir.Simple.CONTINUE:
                return statement
            case ir.WriteCell(register=name, index=index, value=value):
                cells = self._state.registers[name].cells
                cells[self.value(index, frame)] = self.value(value, frame)
            case ir.Count(counter=name, index=index):
                counter, place = self._state.counters[name], self.value(index, frame)
                counter.packets[place] += 1
                counter.bytes[place] += values[_PACKET_BYTES]
            case ir.Lookup():
                self._lookup(statement, frame)
            case ir.ReadRaw(variable=variable, offset=offset):
                begin = self.value(offset, frame)
                data = frame.data[begin : begin + variable.raw_bytes]
                values[variable.name] = int.from_bytes(data, "big")
            case ir.Emit(value=value, size=size):
                number = self.value(value, frame) & ((1 << 8 * size) - 1)
                frame.out += number.to_bytes(size, "big")
            case ir.Simple.EMIT_REST:
                frame.out += frame.data[values[_POSITION] :]
            case ir.Simple.DROP:
                frame.dropped = True
            case ir.Digest():
                frame.digest = self._digest(statement, frame)
            case ir.Simple.RESTORE_KEPT:
                values.update(frame.kept or {})
        return None

    def _lookup(self, statement: ir.Lookup, frame: Frame) -> None:
        table = self._state.tables[statement.table]
        key = tuple(self.value(each, frame) for each in statement.key)
        found = table.lookup(key) if key else None
        frame.values[statement.hit.name] = found is not None
        frame.entry = table.default if found is None else found
        if found is not None and found[2] is not None:
            found[2][0] += 1
            found[2][1] += frame.values[_PACKET_BYTES]

    def _digest(self, statement: ir.Digest, frame: Frame) -> int:
        number = bits = 0
        for piece in statement.pieces:
            if self.value(piece.valid, frame):
                number = number << piece.bits | self.value(piece.value, frame)
                bits += piece.bits
        data = (number << -bits % 8).to_bytes((bits + 7) // 8, "big")
        if statement.payload:
            begin = frame.values[_POSITION]
            data += frame.data[begin : begin + frame.values[var.KEPT_BYTES.name]]
        return ALGORITHMS[statement.algorithm](data)

    def value(self, of: ir.Expr, frame: Frame) -> int:  # noqa: PLR0911  a case for each
        """Evaluate an expression."""
        args = of.args
        if of.variable is not None:
            return frame.values[of.variable.name]
        if of.op in _OPERATORS:
            return _OPERATORS[of.op](*[self.value(each, frame) for each in args])
        match of.op:
            case "const":
                return of.low
            case "cell":
                return int(self._state.registers[of.name].cells[self.value(args[0], frame)])
            case "wire":
                begin, size = (self.value(each, frame) for each in args)
                return int.from_bytes(frame.data[begin : begin + size], "big")
            case "action":
                return int(frame.entry[0])
            case "parameter":
                return int(frame.entry[1][args[1].low])
            case "digest":
                return frame.digest
            case "?":
                return self.value(args[1] if self.value(args[0], frame) else args[2], frame)
            case "and":
                return all(self.value(each, frame) for each in args)
            case "or":
                return any(self.value(each, frame) for each in args)
        raise AssertionError(of.op)


NORMAL = 0
INGRESS_CLONE = 1
EGRESS_CLONE = 2
RECIRCULATED = 4
REPLICATED = 5
RESUBMITTED = 6

# Recirculated packets that may wait per port; others are dropped.
AGAIN_LIMIT = 256

_Again = tuple[bytes, int, Values]


class _RoundRobin:
    """A bounded queue for each port. Ports with packets take turns, one packet each."""

    def __init__(self) -> None:
        # Of ports with packets, the next one first.
        self._queues: OrderedDict[int, deque[_Again]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._queues)

    def add(self, port: int, item: _Again) -> bool:
        queue = self._queues.setdefault(port, deque())
        if len(queue) >= AGAIN_LIMIT:
            return False
        queue.append(item)
        return True

    def take(self) -> _Again:
        port, queue = self._queues.popitem(last=False)
        item = queue.popleft()
        if queue:
            self._queues[port] = queue
        return item

    def clear(self) -> None:
        self._queues.clear()


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
        # Resubmitted packets are at DROP_PORT, which no packet leaves from.
        self._again = _RoundRobin()
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
            data, instance_type, kept = again.take()
            self._pass(data, 0, instance_type, kept)

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
        frame = Frame(defaultdict(int, given), data, kept)
        self._interpreter.run(self._lowered.ingress, frame)
        state = frame.values
        spec, group, priority = (
            self._interpreter.value(each, frame) for each in self._lowered.results
        )
        packet = _Packet(state, data, REPLICATED)
        session = self.state.sessions.get(state[var.CLONE_SESSION.name])
        if session is not None:
            parsed = Frame(defaultdict(int, given), data)
            self._interpreter.run(self._lowered.reparse or (), parsed)
            cloned = self._cloned(state[var.CLONE_LIST.name], parsed.values, state)
            self._clone(session, _Packet(cloned, data, INGRESS_CLONE))
        resubmit = state[var.RESUBMIT.name]
        if resubmit:
            self.counts.resubmitted += 1
            self._enter_again(DROP_PORT, (data, RESUBMITTED, self._kept(resubmit, state)))
        elif group:
            # Copies are new packets: truncating the original does not truncate them.
            self._replicate(self.state.groups.get(group, ()), packet, priority)
        elif spec == DROP_PORT:
            self.counts.ingress_drops += 1
        else:
            cut = state[var.KEPT_BYTES.name]
            self._enqueue(spec, packet._replace(instance_type=NORMAL, cut=cut), priority)
        while self._queue:
            port, of_class, packet, found = self._queue.popleft()
            self._lengths[port, of_class] -= 1
            self._egress(port, packet, found, self._lengths[port, of_class])

    def _kept(self, field_list: int, state: Values) -> Values:
        listed = self._lowered.lists[field_list]
        return {v.name: state[v.name] if v in listed else 0 for v in self._lowered.kept}

    def _cloned(self, field_list: int, state: Values, original: Values) -> Values:
        lost = {each.name for each in self._lowered.metadata}
        cloned = {name: value for name, value in state.items() if name not in lost}
        listed = self._lowered.lists[field_list]
        return defaultdict(int, cloned | {each.name: original[each.name] for each in listed})

    def _enter_again(self, port: int, item: _Again) -> None:
        if not self._again.add(port, item):
            self.counts.again_drops += 1

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
        frame = Frame(defaultdict(int, packet.state | inputs), packet.data)
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
            again = bytes(frame.out), RECIRCULATED, self._kept(recirculate, state)
            self._enter_again(port, again)
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
