"""The table of operations: what becomes of the rows of a vertex's remote neighbours.

Rows travel as words of 32 bits, which the switch and workers combine lane by lane. The word 0
must change nothing, as it fills frames. `p4src/addition.p4` has the same numbers of fragments.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from switchgnn.base.array_types import Float32s, UInt32s
from switchgnn.host.base.errors import TransportError

_SIGN = np.uint32(1 << 31)


def _ascending(rows: Float32s) -> UInt32s:
    """Return words that compare without a sign as the numbers do; none of them is 0."""
    words = rows.view(np.uint32)
    return np.where(words & _SIGN, ~words, words | _SIGN)


def _ascended(words: UInt32s) -> Float32s:
    """Return the numbers of words; of 0, which is less than all others, minus infinity."""
    rows = np.where(words & _SIGN, words ^ _SIGN, ~words).view(np.float32)
    rows[words == 0] = -np.inf
    return rows


@dataclass(frozen=True)
class Words:
    """The words of rows, same shape, and the rows of words."""

    encode: Callable[[Float32s], UInt32s]
    decode: Callable[[UInt32s], Float32s]


_HIGHEST = Words(_ascending, _ascended)
_LOWEST = Words(lambda rows: _ascending(-rows), lambda words: -_ascended(words))


@dataclass(frozen=True)
class Rule:
    """How an operation combines rows."""

    first_fragment: int  # Its fragments are numbered from here on, as in p4src/addition.p4.
    combine: np.ufunc  # Makes one word of two, as the switch does.
    over_rows: np.ufunc  # The same for numbers, to compare with.
    nothing: float  # The number that a vertex without remote neighbours gets.
    words: Words | None = None  # None: fixed point, at a scale that all workers agree on.


class Operation(str, Enum):
    """What becomes of the features of a vertex's remote neighbours."""

    SUM = "sum", Rule(0, np.add, np.add, 0.0)
    MAX = "max", Rule(256, np.maximum, np.maximum, -np.inf, _HIGHEST)
    MIN = "min", Rule(256, np.maximum, np.minimum, np.inf, _LOWEST)

    rule: Rule
    _value_: str

    def __new__(cls, name: str, rule: Rule) -> "Operation":
        """Make an entry; its value is the name alone."""
        made = str.__new__(cls, name)
        made._value_, made.rule = name, rule
        return made

    def refuse(self, where: str) -> None:
        """Raise TransportError unless this is SUM, for a transport that only adds."""
        if self is not Operation.SUM:
            raise TransportError(
                f"{where} has sums only: exchange a {self.value} over the transport switch, by a "
                "plan that leaves nothing to the hosts."
            )


SUM = Operation.SUM
