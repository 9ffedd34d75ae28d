# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A piece of generated expression together with the range of values it can take."""

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
        """The value when it is known at load time."""
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
