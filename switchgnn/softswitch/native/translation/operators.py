# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Operators on C++ values with known ranges."""

from collections.abc import Callable
from dataclasses import dataclass

from switchgnn.softswitch.codegen.arithmetic import WIDEST_SHIFT
from switchgnn.softswitch.errors import UnsupportedProgramError

WORD = 64
MOST_WORDS = 1 << 12


@dataclass(frozen=True)
class Value:
    """A C++ expression with its range.

    Types are u64, u128 or W; for values that may be negative i64, i128 or a two's complement W.
    ``ones`` are the bits that may be one in a value that is never negative, or -1.
    """

    text: str
    low: int
    high: int
    ones: int = -1

    @property
    def signed(self) -> bool:
        """Whether it may be negative."""
        return self.low < 0

    @property
    def words(self) -> int:
        """64-bit words of its type."""
        return words_for(self.low, self.high)

    @property
    def bits(self) -> int:
        """The bits that may be one, if it is never negative."""
        full = (1 << self.high.bit_length()) - 1
        return full if self.ones < 0 else self.ones & full

    @property
    def type(self) -> str:
        """Its type."""
        return type_of(self.words, self.signed)

    @property
    def constant(self) -> int | None:
        """Its value if known, or None."""
        return self.low if self.low == self.high else None

    def within(self, low: int, high: int) -> bool:
        """Return whether its range lies in [low, high]."""
        return low <= self.low and self.high <= high


def words_for(low: int, high: int) -> int:
    """Return the number of words that a range needs."""
    bits = max(high.bit_length() + (low < 0), (-low - 1).bit_length() + 1 if low < 0 else 0)
    words = max(1, -(-bits // WORD))
    if words > MOST_WORDS:
        raise UnsupportedProgramError(
            f"a value of {bits} bits", "an expression", "mask it earlier, or use --backend python"
        )
    return words


def type_of(words: int, signed: bool = False) -> str:
    """Return the C++ type of numbers of ``words`` words."""
    if words > 2:
        return f"W<{words}>"
    return f"{'i' if signed else 'u'}{64 * words}"


def extended(value: Value, words: int) -> str:
    """Convert a value to ``words`` unsigned words, modulo their bits."""
    if value.words == words and (not value.signed or words > 2):
        return value.text
    if value.constant is not None:
        return literal(value.constant & ((1 << (WORD * words)) - 1), words)
    if words == 1 and value.words == 1:
        return f"(u64){value.text}"
    return f"ext<{words}, {_flag(value.signed)}>({value.text})"


def made(text: str, words: int, low: int, high: int, ones: int = -1) -> Value:
    """Return the value of an unsigned text of ``words`` words, right modulo their bits."""
    if low == high:
        return constant(low)
    needed = words_for(low, high)
    if needed != words:
        text = f"ext<{needed}, {_flag(low < 0)}>({text})"
    text = f"(i{64 * needed})({text})" if low < 0 and needed <= 2 else f"({text})"
    return Value(text, low, high, ones if low >= 0 else -1)


def constant(number: int) -> Value:
    """Return the value of a constant."""
    words = words_for(number, number)
    text = literal(number & ((1 << (WORD * words)) - 1), words)
    if number < 0 and words <= 2:
        text = f"(i{64 * words}){text}"
    return Value(text, number, number, number if number >= 0 else -1)


def literal(number: int, words: int) -> str:
    """Return an unsigned literal of ``words`` words."""
    parts = [f"{number >> (WORD * i) & ((1 << WORD) - 1):#x}ull" for i in range(words)]
    if words == 1:
        return parts[0]
    if words == 2:
        return f"pair({parts[1]}, {parts[0]})"
    return f"W<{words}>{{{{{', '.join(parts)}}}}}"


def variable(name: str, low: int, high: int) -> Value:
    """Return the value of a variable."""
    return Value(name, low, high)


def reduced(value: Value, need: int | None) -> Value:
    """Reduce a value to the words of its lowest ``need`` bits."""
    if need is None:
        return value
    words = max(1, -(-need // WORD))
    if value.words <= words:
        return value
    return Value(f"({extended(value, words)})", 0, (1 << (WORD * words)) - 1)


def _flag(condition: bool) -> str:
    return "true" if condition else "false"


# Range and ones (or -1) of each operator's result.
Result = tuple[int, int, int]


def combine(operator: str, left: Value, right: Value, need: int | None = None) -> Value:
    """Combine two values; words that cannot carry into each other are added side by side."""
    low, high, ones = _RESULTS[operator](left, right)
    words, low, high = _fitting(low, high, need)
    one, other = extended(left, words), extended(right, words)
    if operator == "+" and words > 2 and _carry_free(left, right, words):
        return made(f"add_by_words({one}, {other})", words, low, high)
    return made(f"{one} {operator} {other}", words, low, high, ones)


def _carry_free(left: Value, right: Value, words: int) -> bool:
    if left.signed or right.signed:
        return False
    tops = sum(1 << (WORD * i + WORD - 1) for i in range(words - 1))
    return not (left.bits | right.bits) & tops


def _sum(left: Value, right: Value) -> Result:
    apart = not left.signed and not right.signed and not left.bits & right.bits
    ones = left.bits | right.bits if apart else -1
    return left.low + right.low, left.high + right.high, ones


def _difference(left: Value, right: Value) -> Result:
    return left.low - right.high, left.high - right.low, -1


def _product(left: Value, right: Value) -> Result:
    corners = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
    return min(corners), max(corners), -1


def _both(left: Value, right: Value) -> Result:
    if left.signed and right.signed:
        return _signed(left, right)
    if left.signed or right.signed:
        positive = right if left.signed else left
        return 0, positive.high, positive.bits
    ones = left.bits & right.bits
    return 0, min(left.high, right.high, ones), ones


def _either(left: Value, right: Value) -> Result:
    if left.signed or right.signed:
        return _signed(left, right)
    ones = left.bits | right.bits
    return 0, (1 << ones.bit_length()) - 1, ones


def _signed(left: Value, right: Value) -> Result:
    bits = max(_magnitude(left), _magnitude(right))
    return -(1 << bits), (1 << bits) - 1, -1


def _magnitude(value: Value) -> int:
    return max(value.high.bit_length(), (-value.low - 1).bit_length() if value.low < 0 else 0)


_RESULTS: dict[str, Callable[[Value, Value], Result]] = {
    "+": _sum,
    "-": _difference,
    "*": _product,
    "&": _both,
    "|": _either,
    "^": _either,
}


def _fitting(low: int, high: int, need: int | None) -> tuple[int, int, int]:
    """Return words and range of a result of which ``need`` bits matter."""
    if need is not None:
        words = max(1, -(-need // WORD))
        # Higher words do not matter.
        if low < -(1 << (WORD * words - 1)) or high >= 1 << (WORD * words):
            return words, 0, (1 << (WORD * words)) - 1
        if low < 0 and high >= 1 << (WORD * words - 1):
            return words, 0, (1 << (WORD * words)) - 1
    return words_for(low, high), low, high


def complement(value: Value, need: int | None = None) -> Value:
    """Return the bitwise complement."""
    words, low, high = _fitting(-value.high - 1, -value.low - 1, need)
    return made(f"~{extended(value, words)}", words, low, high)


def shift_left(left: Value, right: Value, need: int | None = None) -> Value:
    """Return the left shift, by at most WIDEST_SHIFT."""
    most, least = min(max(right.high, 0), WIDEST_SHIFT), min(max(right.low, 0), WIDEST_SHIFT)
    corners = [number << by for number in (left.low, left.high) for by in (least, most)]
    words, low, high = _fitting(min(corners), max(corners), need)
    known = right.constant
    ones = left.bits << known if known is not None and not left.signed else -1
    inner = extended(left, words)
    if words <= 2 and most < WORD * words:
        text = f"{inner} << {_amount(right)}"
    else:
        text = f"shl({inner}, {_amount(right)})"
    return made(text, words, low, high, ones if low == 0 and need is None else -1)


def shift_right(left: Value, right: Value) -> Value:
    """Return the arithmetic right shift."""
    most, least = min(max(right.high, 0), 1 << 20), min(max(right.low, 0), 1 << 20)
    corners = [number >> by for number in (left.low, left.high) for by in (least, most)]
    words, low, high = left.words, min(corners), max(corners)
    amount = _amount(right)
    known = right.constant
    ones = left.bits >> known if known is not None and not left.signed else -1
    if left.signed:
        text = f"({type_of(words)})sar({left.text}, {amount})" if words <= 2 else ""
        return made(text or f"sar({left.text}, {amount})", words, low, high)
    if words <= 2 and most < WORD * words:
        return made(f"{left.text} >> {amount}", words, low, high, ones)
    return made(f"shr({left.text}, {amount})", words, low, high, ones)


def _amount(value: Value) -> str:
    if value.constant is not None:
        return str(max(value.constant, 0))
    return f"distance({value.text})"


def divide(left: Value, right: Value, part: str) -> Value:
    """Return the floored quotient or remainder; zero for a zero divisor."""
    if left.signed or right.signed:
        most = max(abs(left.low), abs(left.high), abs(right.low), abs(right.high)) + 1
        words = words_for(-most, most)
        function, low, high = "divided_down", -most, most
    else:
        words = max(left.words, right.words)
        function, low = "divided", 0
        high = left.high if part == "quotient" else min(left.high, max(right.high - 1, 0))
    kind = type_of(words)
    text = f"{function}<{kind}>({extended(left, words)}, {extended(right, words)}).{part}"
    return made(text, words, low, high)


def compare(operator: str, left: Value, right: Value) -> str:
    """Return the condition that compares two values."""
    words = words_for(min(left.low, right.low), max(left.high, right.high))
    signed = left.signed or right.signed
    one, other = extended(left, words), extended(right, words)
    if operator in {"==", "!="}:
        return f"({one} == {other})" if operator == "==" else f"!({one} == {other})"
    if operator in {">", "<="}:
        one, other = other, one
    text = f"less<{'true' if signed else 'false'}>({one}, {other})"
    return text if operator in {"<", ">"} else f"!{text}"


def if_else(condition: str, left: Value, right: Value) -> Value:
    """Return one of two values, by a condition."""
    low, high = min(left.low, right.low), max(left.high, right.high)
    words = words_for(low, high)
    text = f"({condition}) ? {extended(left, words)} : {extended(right, words)}"
    ones = -1 if left.signed or right.signed else left.bits | right.bits
    return made(f"({text})", words, low, high, ones)


def truth(condition: str) -> Value:
    """Return a condition as a number."""
    return Value(f"(u64)({condition})", 0, 1, 1)


def cut(value: Value, width: int, signed: bool = False) -> Value:
    """Return a value modulo 2^width, as two's complement if ``signed``."""
    low = -(1 << (width - 1)) if signed else 0
    if value.within(low, low + (1 << width) - 1):
        return value
    masked = combine("&", reduced(value, width), constant((1 << width) - 1))
    if not signed:
        return masked
    sign = constant(1 << (width - 1))
    return combine("-", combine("^", masked, sign), sign)


def concatenated(parts: list[tuple[Value, int]]) -> Value:
    """Concatenate (value, bits) pairs, the most significant first."""
    total = constant(0)
    for value, width in parts:
        narrow = cut(value, width)
        total = (
            narrow
            if total.constant == 0
            else combine("|", shift_left(total, constant(width)), narrow)
        )
    return total


def full_words(value: Value, words: int) -> str:
    """Convert a value to a key of ``words`` words."""
    if value.constant is not None:
        return literal(value.constant, words)
    return extended(value, words)
