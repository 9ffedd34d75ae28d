# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Terms for the operators of BMv2 expressions, with constant folding."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """Python source of a value.

    ``low``/``high`` bound the value (None: unbounded); ``atomic`` source needs no
    parentheses; ``boolean`` terms are truth values, which Python also adds as 0 and 1.
    """

    text: str
    low: int | None
    high: int | None
    atomic: bool = False
    boolean: bool = False

    @property
    def inner(self) -> str:
        """The source as an operand."""
        return self.text if self.atomic else f"({self.text})"

    @property
    def constant(self) -> int | None:
        """The value if constant, or None."""
        return self.low if self.low is not None and self.low == self.high else None

    def within(self, low: int, high: int) -> bool:
        """Return whether every value lies in [low, high]."""
        return (
            self.low is not None and self.high is not None and low <= self.low <= self.high <= high
        )


def constant(value: int) -> Term:
    """Return the term of a known integer."""
    return Term(str(value) if value < 1 << 16 else hex(value), value, value, atomic=value >= 0)


def truth(text: str, *, atomic: bool = False) -> Term:
    """Return the term of a condition."""
    return Term(text, 0, 1, atomic=atomic, boolean=True)


def unsigned(text: str, width: int) -> Term:
    """Return the term of a variable of ``width`` bits."""
    return Term(text, 0, (1 << width) - 1, atomic=True)


# Longer left shifts give zero: no field is that wide.
WIDEST_SHIFT = 1 << 14

Bound = int | None


def add(left: Term, right: Term) -> Term:
    """Return the sum, which cannot overflow."""
    if left.constant == 0:
        return right
    if right.constant == 0:
        return left
    low = None if left.low is None or right.low is None else left.low + right.low
    high = None if left.high is None or right.high is None else left.high + right.high
    return _folded(f"{left.inner} + {right.inner}", low, high)


def subtract(left: Term, right: Term) -> Term:
    """Return the difference, which may be negative."""
    if right.constant == 0:
        return left
    low = None if left.low is None or right.high is None else left.low - right.high
    high = None if left.high is None or right.low is None else left.high - right.low
    return _folded(f"{left.inner} - {right.inner}", low, high)


def multiply(left: Term, right: Term) -> Term:
    """Return the product, which cannot overflow."""
    low, high = _corners(left, right, lambda a, b: a * b)
    return _folded(f"{left.inner} * {right.inner}", low, high)


def divide(left: Term, right: Term) -> Term:
    """Return the quotient of non-negative values; a division by zero gives zero."""
    return _division(left, right, "//", left.high)


def modulo(left: Term, right: Term) -> Term:
    """Return the remainder of non-negative values; a division by zero gives zero."""
    high = left.high if right.high is None else max(right.high - 1, 0)
    return _division(left, right, "%", high)


def _division(left: Term, right: Term, operator: str, high: Bound) -> Term:
    low = 0 if left.low is not None and left.low >= 0 else None
    text = f"{left.inner} {operator} {right.inner}"
    if right.low is None or right.low <= 0:
        text = f"{text} if {right.inner} else 0"
    return Term(text, low, high if low == 0 else None)


def shift_left(left: Term, right: Term) -> Term:
    """Return the left shift, which cannot overflow; beyond WIDEST_SHIFT it is zero."""
    distance = right.high
    if distance is None or distance > WIDEST_SHIFT:
        limited = f"{left.inner} << {right.inner} if {right.inner} <= {WIDEST_SHIFT} else 0"
        return Term(limited, 0 if _non_negative(left) else None, None)
    low, high = _corners(left, right, lambda a, b: a << b)
    return _folded(f"{left.inner} << {right.inner}", low, high)


def shift_right(left: Term, right: Term) -> Term:
    """Return the arithmetic right shift."""
    if right.constant == 0:
        return left
    if right.high is None or right.high > WIDEST_SHIFT:
        return Term(f"{left.inner} >> {right.inner}", *_towards_zero(left))
    low, high = _corners(left, right, lambda a, b: a >> b)
    return _folded(f"{left.inner} >> {right.inner}", low, high)


def _towards_zero(term: Term) -> tuple[Bound, Bound]:
    low = None if term.low is None else min(term.low, 0)
    return low, None if term.high is None else max(term.high, 0)


def bit_and(left: Term, right: Term) -> Term:
    """Return the bitwise and; a mask that cannot change the value is left out."""
    for value, mask in ((left, right), (right, left)):
        bits = mask.constant
        if bits is None or bits < 0:
            continue
        if bits & (bits + 1) == 0 and value.within(0, bits):
            return value
        high = bits if value.high is None or not _non_negative(value) else min(bits, value.high)
        return _folded(f"{value.inner} & {mask.inner}", 0, high)
    if _non_negative(left) and _non_negative(right):
        bounds = [term.high for term in (left, right) if term.high is not None]
        return Term(f"{left.inner} & {right.inner}", 0, min(bounds) if bounds else None)
    if _non_negative(left) or _non_negative(right):
        positive = left if _non_negative(left) else right
        return Term(f"{left.inner} & {right.inner}", 0, positive.high)
    return Term(f"{left.inner} & {right.inner}", None, None)


def bit_or(left: Term, right: Term) -> Term:
    """Return the bitwise or."""
    return _join(left, right, "|")


def bit_xor(left: Term, right: Term) -> Term:
    """Return the bitwise exclusive or."""
    return _join(left, right, "^")


def _join(left: Term, right: Term, operator: str) -> Term:
    if right.constant == 0:
        return left
    if left.constant == 0:
        return right
    text = f"{left.inner} {operator} {right.inner}"
    if not (_non_negative(left) and _non_negative(right)):
        return Term(text, None, None)
    if left.high is None or right.high is None:
        return Term(text, 0, None)
    return _folded(text, 0, (1 << max(left.high.bit_length(), right.high.bit_length())) - 1)


def bit_not(term: Term) -> Term:
    """Return the bitwise complement, which is negative for a non-negative operand."""
    low = None if term.high is None else -term.high - 1
    high = None if term.low is None else -term.low - 1
    return _folded(f"~{term.inner}", low, high)


def wrap_signed(term: Term, width: int) -> Term:
    """Return the value modulo 2^width as a two's complement number."""
    sign = 1 << (width - 1)
    if term.within(-sign, sign - 1):
        return term
    masked = bit_and(term, constant(2 * sign - 1))
    if masked.within(0, sign - 1):
        return masked
    return Term(f"({masked.inner} ^ {sign}) - {sign}", -sign, sign - 1)


def wrap_unsigned(term: Term, width: int) -> Term:
    """Return the value modulo 2^width."""
    return bit_and(term, constant((1 << width) - 1))


def clamp(term: Term, low: int, high: int) -> Term:
    """Return the value limited to [low, high]."""
    if term.within(low, high):
        return term
    return Term(f"max({low}, min({high}, {term.text}))", low, high, atomic=True)


def if_else(condition: Term, left: Term, right: Term) -> Term:
    """Return ``left`` when the condition holds, or else ``right``."""
    low = None if left.low is None or right.low is None else min(left.low, right.low)
    high = None if left.high is None or right.high is None else max(left.high, right.high)
    text = f"{left.inner} if {condition.inner} else {right.inner}"
    return Term(text, low, high, boolean=left.boolean and right.boolean)


def _non_negative(term: Term) -> bool:
    return term.low is not None and term.low >= 0


def _corners(left: Term, right: Term, operate: Callable[[int, int], int]) -> tuple[Bound, Bound]:
    if left.low is None or left.high is None or right.low is None or right.high is None:
        return (0 if _non_negative(left) and _non_negative(right) else None), None
    if operate(1, 1) != 1 and right.low < 0:
        return None, None  # a negative shift distance has no meaning
    values = [operate(a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
    return min(values), max(values)


def _folded(text: str, low: Bound, high: Bound) -> Term:
    if low is not None and low == high:
        return constant(low)
    return Term(text, low, high)
