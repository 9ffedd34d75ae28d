# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Values in C++: an expression whose type follows from the numbers that it can be."""

from dataclasses import dataclass

from switchgnn.softswitch.errors import UnsupportedProgramError

WORD = 64
MOST_WORDS = 1 << 12


@dataclass(frozen=True)
class Value:
    """An expression in C++, the smallest and the largest number that it can be.

    One word is a u64, two are a u128, more are a W; what may be negative is an i64, an i128, or a W
    in two's complement. ``ones`` has the bits that may be one, of what is never negative.
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
        """The words of its type."""
        return words_for(self.low, self.high)

    @property
    def bits(self) -> int:
        """The bits that may be one; only of what is never negative."""
        full = (1 << self.high.bit_length()) - 1
        return full if self.ones < 0 else self.ones & full

    @property
    def type(self) -> str:
        """Its type."""
        return type_of(self.words, self.signed)

    @property
    def constant(self) -> int | None:
        """The number that it always is, or None."""
        return self.low if self.low == self.high else None

    def within(self, low: int, high: int) -> bool:
        """Return whether it always lies between two numbers."""
        return low <= self.low and self.high <= high


def words_for(low: int, high: int) -> int:
    """Return the fewest words that hold all numbers between two.

    Raises:
        UnsupportedProgramError: they are too many.
    """
    bits = max(high.bit_length() + (low < 0), (-low - 1).bit_length() + 1 if low < 0 else 0)
    words = max(1, -(-bits // WORD))
    if words > MOST_WORDS:
        raise UnsupportedProgramError(
            f"a value of {bits} bits", "an expression", "mask it earlier, or use --backend python"
        )
    return words


def type_of(words: int, signed: bool = False) -> str:
    """Return the type of numbers with this number of words."""
    if words > 2:
        return f"W<{words}>"
    return f"{'i' if signed else 'u'}{64 * words}"


def extended(value: Value, words: int) -> str:
    """Return a value in this number of words without a sign; what does not fit is cut off."""
    if value.words == words and (not value.signed or words > 2):
        return value.text
    if value.constant is not None:
        return literal(value.constant & ((1 << (WORD * words)) - 1), words)
    if words == 1 and value.words == 1:
        return f"(u64){value.text}"
    return f"ext<{words}, {_flag(value.signed)}>({value.text})"


def made(text: str, words: int, low: int, high: int, ones: int = -1) -> Value:
    """Return the value of a text in some words without a sign, which is right modulo these bits.

    Args:
        text: an expression of the type without a sign.
        words: the words of its type.
        low: the smallest number that the value can be.
        high: the largest.
        ones: the bits that may be one, or -1.

    Returns:
        The value, in the type that belongs to its numbers.
    """
    if low == high:
        return constant(low)
    needed = words_for(low, high)
    if needed != words:
        text = f"ext<{needed}, {_flag(low < 0)}>({text})"
    text = f"(i{64 * needed})({text})" if low < 0 and needed <= 2 else f"({text})"
    return Value(text, low, high, ones if low >= 0 else -1)


def constant(number: int) -> Value:
    """Return a known number."""
    words = words_for(number, number)
    text = literal(number & ((1 << (WORD * words)) - 1), words)
    if number < 0 and words <= 2:
        text = f"(i{64 * words}){text}"
    return Value(text, number, number, number if number >= 0 else -1)


def literal(number: int, words: int) -> str:
    """Return a number without a sign in this number of words."""
    parts = [f"{number >> (WORD * i) & ((1 << WORD) - 1):#x}ull" for i in range(words)]
    if words == 1:
        return parts[0]
    if words == 2:
        return f"pair({parts[1]}, {parts[0]})"
    return f"W<{words}>{{{{{', '.join(parts)}}}}}"


def variable(name: str, low: int, high: int) -> Value:
    """Return a variable whose type follows from its range.

    Args:
        name: its name.
        low: the smallest number that it can be.
        high: the largest.

    Returns:
        The value.
    """
    return Value(name, low, high)


def reduced(value: Value, need: int | None) -> Value:
    """Return a value that is the same in its lowest ``need`` bits, in no more words than that."""
    if need is None:
        return value
    words = max(1, -(-need // WORD))
    if value.words <= words:
        return value
    return Value(f"({extended(value, words)})", 0, (1 << (WORD * words)) - 1)


def _flag(condition: bool) -> str:
    return "true" if condition else "false"
