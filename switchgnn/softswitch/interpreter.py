# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Run the functions of a program without a compiler."""

import operator
import random
from collections.abc import Callable, Mapping
from typing import Any

from switchgnn.softswitch import ir
from switchgnn.softswitch.hashing import ALGORITHMS
from switchgnn.softswitch.lowering import variables as var
from switchgnn.softswitch.state import ProgramState, log_message

Values = dict[str, int]
_POSITION, _PACKET_BYTES = var.POSITION.name, var.PACKET_BYTES.name


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
            case ir.Exchange(one=ir.Variable(name=one), other=ir.Variable(name=other)):
                values[one], values[other] = values[other], values[one]
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
                length = self.value(size, frame)
                number = self.value(value, frame) & ((1 << 8 * length) - 1)
                frame.out += number.to_bytes(length, "big")
            case ir.Simple.EMIT_REST:
                frame.out += frame.data[values[_POSITION] :]
            case ir.Simple.DROP:
                frame.dropped = True
            case ir.Digest():
                frame.digest = self._digest(statement, frame)
            case ir.Log(text=text, values=logged):
                log_message(text, tuple(self.value(each, frame) for each in logged))
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
                width = self.value(piece.bits, frame)
                number, bits = number << width | self.value(piece.value, frame), bits + width
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
