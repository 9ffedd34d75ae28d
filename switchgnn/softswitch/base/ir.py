"""The intermediate representation of a program: expressions and statements.

`lowering` makes it from BMv2's JSON; `interpreter` runs it, and `native/source.py` renders it as
C++. Expressions are unbounded integers whose range is known, so that their meaning does not depend
on a type; only assignments reduce them to a width.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

# A shift to the left by more gives 0.
WIDEST_SHIFT = 1 << 16
# Ends infinite loops, which would stop the switch; BMv2 has no limit.
MOST_TURNS = 1 << 20


@dataclass(frozen=True)
class Variable:
    """A variable of a packet's state or of one function."""

    name: str
    low: int
    high: int
    raw_bytes: int = 0  # the bytes of undecoded fields that it holds; 0: it holds a number


@dataclass(frozen=True, eq=False)
class Expr:
    """An integer from `low` to `high`."""

    # an operator of P4, or one of `const`, `var` (`variable`), `wire` (bytes of the packet: offset
    # from its begin, size), `cell` (of the register `name`: index), `action` (of the current
    # entry), `parameter` (of that action: `name` is the table; the action's and the parameter's
    # number), `random` (from, to), `digest` (the last)
    op: str
    low: int
    high: int
    args: tuple["Expr", ...] = ()
    ones: int = -1  # the bits that may be one, if it is never negative; otherwise -1
    name: str = ""
    variable: Variable | None = None

    @property
    def constant(self) -> int | None:
        """Its value if known, or None."""
        return self.low if self.low == self.high else None

    def within(self, low: int, high: int) -> bool:
        """Return whether its range lies in [low, high]."""
        return low <= self.low and self.high <= high


@dataclass(frozen=True)
class Assign:
    """Sets a variable, whose range includes that of the value."""

    variable: Variable
    value: Expr


@dataclass(frozen=True)
class Let:
    """Names a value until the end of the block."""

    variable: Variable
    value: Expr


@dataclass(frozen=True)
class If:
    """Runs the block of the first condition that holds."""

    branches: tuple[tuple[Expr, "Block"], ...]
    otherwise: "Block" = ()


@dataclass(frozen=True)
class Repeat:
    """Repeats a block until it breaks."""

    body: "Block"


@dataclass(frozen=True)
class Parse:
    """Parses the packet; may be left out for one whose headers are still those of its bytes."""

    body: "Block"


@dataclass(frozen=True)
class Deparse:
    """Writes the packet; may be left out for one that stays in the switch as it is."""

    body: "Block"


class Simple(Enum):
    """A statement without parts."""

    BREAK = "leaves the innermost loop"
    CONTINUE = "begins the innermost loop again"
    DROP = "sends nothing"
    EMIT_REST = "appends what the parser has not read to the outgoing packet"
    RESTORE_KEPT = "sets the fields that a resubmitted or recirculated packet keeps"


@dataclass(frozen=True)
class WriteCell:
    """Writes a cell of a register."""

    register: str
    index: Expr
    value: Expr


@dataclass(frozen=True)
class Count:
    """Counts the packet in a cell of a counter array."""

    counter: str
    index: Expr


@dataclass(frozen=True)
class Lookup:
    """Makes an entry of a table, or its default entry, the current one and counts the packet.

    `hit` becomes 1 if an entry matches, otherwise 0.
    """

    table: str
    key: tuple[Expr, ...]
    hit: Variable


@dataclass(frozen=True)
class ReadRaw:
    """Reads undecoded bytes of the packet."""

    variable: Variable
    offset: Expr


@dataclass(frozen=True)
class Emit:
    """Appends the low bytes of a value, the first one highest, to the outgoing packet."""

    value: Expr
    size: int


@dataclass(frozen=True)
class Piece:
    """The low `bits` of a value, included in a digest if `valid` holds."""

    value: Expr
    bits: int
    valid: Expr


@dataclass(frozen=True)
class Digest:
    """Computes a hash or checksum over pieces, padded to bytes, and what the parser has left."""

    algorithm: str
    pieces: tuple[Piece, ...]
    payload: bool


Statement = (
    Assign | Let | If | Repeat | Parse | Deparse | Simple | WriteCell | Count | Lookup
    | ReadRaw | Emit | Digest
)  # fmt: skip
Block = tuple[Statement, ...]


def either(condition: Expr, then: Block, otherwise: Block = ()) -> If:
    """Return the statement that runs one of two blocks."""
    return If(((condition, then),), otherwise)


def statements_in(block: Block) -> Iterator[Statement]:
    """Yield the statements of a block and of the blocks inside it."""
    for statement in block:
        yield statement
        if isinstance(statement, If):
            for _, inside in statement.branches:
                yield from statements_in(inside)
            yield from statements_in(statement.otherwise)
        elif isinstance(statement, (Repeat, Parse, Deparse)):
            yield from statements_in(statement.body)


def variables_read(block: Block) -> set[Variable]:
    """Return the variables whose values a block uses."""
    found: set[Variable] = set()
    for statement in statements_in(block):
        # Statements in its blocks have a turn of their own.
        left: list[object] = list(vars(statement).values())
        while left:
            part = left.pop()
            if isinstance(part, Expr):
                left += part.args
                if part.variable is not None:
                    found.add(part.variable)
            elif isinstance(part, Piece):
                left += (part.value, part.valid)
            elif isinstance(part, tuple):
                left += part
    return found


def variables_set(block: Block) -> set[Variable]:
    """Return the variables that a block sets, without those of its Lets."""
    return {each.variable for each in statements_in(block) if isinstance(each, (Assign, ReadRaw))}
