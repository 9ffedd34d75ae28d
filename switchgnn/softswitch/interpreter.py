# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The functions of a program as nested Python closures, to run it without a compiler."""

import operator
import random
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

from switchgnn.softswitch import ir
from switchgnn.softswitch.hashing import ALGORITHMS
from switchgnn.softswitch.lowering import variables as var
from switchgnn.softswitch.lowering.arithmetic import constant
from switchgnn.softswitch.state import ProgramState, log_message

Values = dict[str, int]
Value = Callable[["Frame"], int]
Step = Callable[["Frame"], "Signal | None"]


_POSITION, _PACKET_BYTES = var.POSITION.name, var.PACKET_BYTES.name


class Signal(Enum):
    """Why a block ends before its last statement."""

    BREAK = 1
    CONTINUE = 2


class Zeros(dict[str, int]):
    """Variables, which are 0 at first."""

    def __missing__(self, name: str) -> int:
        return 0


class Frame:
    """One call of a function: its variables, the packet, and what statements leave to others."""

    def __init__(self, values: Values, data: bytes, kept: Values | None = None) -> None:
        self.values = values
        self.data = data
        self.kept = kept
        self.out = bytearray()
        self.dropped = False
        self.entry: tuple[Any, ...] = ()
        self.digest = 0


def _shifted_left(number: int, by: int) -> int:
    return number << by if by <= ir.WIDEST_SHIFT else 0


_OPERATORS: Mapping[str, Callable[..., int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda left, right: left // right if right else 0,
    "%": lambda left, right: left % right if right else 0,
    "<<": _shifted_left,
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


class Closures:
    """Turns statements and expressions over one state into Python functions."""

    def __init__(self, state: ProgramState) -> None:
        self._state = state

    def block(self, block: ir.Block) -> Step:
        """Return the function that runs a block."""
        steps = [self._step(statement) for statement in block]

        def run(frame: Frame) -> Signal | None:
            for step in steps:
                signal = step(frame)
                if signal is not None:
                    return signal
            return None

        return run

    def _step(self, statement: ir.Statement) -> Step:  # noqa: PLR0911, PLR0912  a case for each
        match statement:
            case ir.Assign(variable=variable, value=value) | ir.Let(variable=variable, value=value):
                return self._assign(variable.name, self.value(value))
            case ir.If(branches=branches, otherwise=otherwise):
                return self._if(branches, self.block(otherwise))
            case ir.Parse(body=body) | ir.Deparse(body=body):
                return self.block(body)
            case ir.Repeat(body=body):
                return _loop(self.block(body))
            case ir.Break():
                return lambda _: Signal.BREAK
            case ir.Continue():
                return lambda _: Signal.CONTINUE
            case ir.Exchange(one=ir.Variable(name=one), other=ir.Variable(name=other)):
                return lambda frame: frame.values.update(
                    {one: frame.values[other], other: frame.values[one]}
                )
            case ir.WriteCell(register=name, index=index, value=value):
                cells, at, written = self._cells(name), self.value(index), self.value(value)
                return lambda frame: cells.__setitem__(at(frame), written(frame))
            case ir.Count(counter=name, index=index):
                return self._count(name, self.value(index))
            case ir.Lookup():
                return self._lookup(statement)
            case ir.ReadRaw(variable=variable, offset=offset):
                size = constant(variable.raw_bytes)
                return self._assign(variable.name, self._wire(offset, size))
            case ir.Emit(value=value, size=size):
                return self._emit(self.value(value), self.value(size))
            case ir.EmitRest():
                return lambda frame: frame.out.extend(frame.data[frame.values[_POSITION] :])
            case ir.Drop():
                return lambda frame: setattr(frame, "dropped", True)
            case ir.Digest():
                return self._digest(statement)
            case ir.Log(text=text, values=values):
                logged = [self.value(each) for each in values]
                return lambda frame: log_message(text, tuple(int(v(frame)) for v in logged))
            case ir.RestoreKept():
                return lambda frame: frame.values.update(frame.kept or {})

    def value(self, of: ir.Expr) -> Value:  # noqa: PLR0911  a case for each
        """Return the function that evaluates an expression."""
        args = [self.value(each) for each in of.args]
        match of.op:
            case "const":
                known = of.low
                return lambda _: known
            case "var" if of.variable is not None:
                name = of.variable.name
                return lambda frame: frame.values[name]
            case "cell":
                cells, index = self._cells(of.name), args[0]
                return lambda frame: cells[index(frame)]
            case "wire":
                return self._wire(*of.args)
            case "action":
                return lambda frame: frame.entry[0]
            case "parameter":
                number = of.args[1].low
                return lambda frame: frame.entry[1][number]
            case "digest":
                return lambda frame: frame.digest
            case "?":
                test, then, otherwise = args
                return lambda frame: then(frame) if test(frame) else otherwise(frame)
            case "and":
                return lambda frame: all(each(frame) for each in args)
            case "or":
                return lambda frame: any(each(frame) for each in args)
        function, first, right = _OPERATORS[of.op], args[0], of.args[-1].constant
        if len(args) == 1:
            return lambda frame: function(first(frame))
        if right is not None:
            return lambda frame: function(first(frame), right)
        second = args[1]
        return lambda frame: function(first(frame), second(frame))

    def _cells(self, register: str) -> Any:  # noqa: ANN401  as in RegisterCells
        return self._state.registers[register].cells

    def _assign(self, name: str, value: Value) -> Step:
        def run(frame: Frame) -> None:
            frame.values[name] = value(frame)

        return run

    def _if(self, branches: Sequence[tuple[ir.Expr, ir.Block]], otherwise: Step) -> Step:
        tested = [(self.value(test), self.block(block)) for test, block in branches]

        def run(frame: Frame) -> Signal | None:
            for test, block in tested:
                if test(frame):
                    return block(frame)
            return otherwise(frame)

        return run

    def _count(self, name: str, index: Value) -> Step:
        counter = self._state.counters[name]

        def run(frame: Frame) -> None:
            counter.packets[index(frame)] += 1
            counter.bytes[index(frame)] += frame.values[_PACKET_BYTES]

        return run

    def _lookup(self, statement: ir.Lookup) -> Step:
        table, hit = self._state.tables[statement.table], statement.hit.name
        key = [self.value(each) for each in statement.key]

        def run(frame: Frame) -> None:
            found = table.lookup(tuple(each(frame) for each in key)) if key else None
            frame.values[hit] = found is not None
            frame.entry = table.default if found is None else found
            if found is not None and found[2] is not None:
                found[2][0] += 1
                found[2][1] += frame.values[_PACKET_BYTES]

        return run

    def _wire(self, offset: ir.Expr, size: ir.Expr) -> Value:
        begin, length = self.value(offset), self.value(size)

        def value(frame: Frame) -> int:
            first = begin(frame)
            return int.from_bytes(frame.data[first : first + length(frame)], "big")

        return value

    def _emit(self, value: Value, size: Value) -> Step:
        def run(frame: Frame) -> None:
            length = size(frame)
            number = value(frame) & ((1 << 8 * length) - 1)
            frame.out.extend(number.to_bytes(length, "big"))

        return run

    def _digest(self, statement: ir.Digest) -> Step:
        algorithm = ALGORITHMS[statement.algorithm]
        pieces = [
            (self.value(piece.valid), self.value(piece.value), self.value(piece.bits))
            for piece in statement.pieces
        ]

        def run(frame: Frame) -> None:
            number = bits = 0
            for valid, value, width in pieces:
                if valid(frame):
                    added = width(frame)
                    number, bits = number << added | value(frame), bits + added
            data = (number << -bits % 8).to_bytes((bits + 7) // 8, "big")
            if statement.payload:
                begin = frame.values[_POSITION]
                data += frame.data[begin : begin + frame.values[var.KEPT_BYTES.name]]
            frame.digest = algorithm(data)

        return run


def _loop(body: Step) -> Step:
    def run(frame: Frame) -> None:
        while body(frame) is not Signal.BREAK:
            pass

    return run
