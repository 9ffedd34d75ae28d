"""Render expressions as C++.

The type of each expression follows from its range, so that nothing overflows that does not
overflow in the intermediate representation: u64, u128 or W; where it may be negative i64, i128 or a
two's complement W.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from switchgnn.softswitch.base.errors import UnsupportedProgramError
from switchgnn.softswitch.base.ir import WIDEST_SHIFT, Expr, Variable
from switchgnn.softswitch.base.program import LoadedProgram
from switchgnn.softswitch.native.build import TableShape, byte_size, cell_bytes

WORD = 64
MOST_WORDS = 1 << 12
_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
_TESTS = _COMPARISONS | {"and", "or", "not"}


class Code(NamedTuple):
    """A C++ expression and its type, of ``words`` 64-bit words."""

    text: str
    words: int
    signed: bool = False

    @property
    def type(self) -> str:
        """Its type."""
        return type_of(self.words, self.signed)


def words_for(low: int, high: int) -> int:
    """Return the number of words that a range needs."""
    bits = max(high.bit_length() + (low < 0), (-low - 1).bit_length() + 1 if low < 0 else 0)
    words = _words_of_bits(bits)
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


def type_of_variable(variable: Variable) -> str:
    """Return the C++ type of a variable."""
    if variable.raw_bytes:
        return f"Raw<{variable.raw_bytes}>"
    if is_wide(variable):
        return f"Lazy<{words_for(variable.low, variable.high)}>"
    return type_of(words_for(variable.low, variable.high), variable.low < 0)


def type_in_packet(variable: Variable) -> str:
    """Return the smallest C++ type of a variable, for records of packets."""
    if variable.low >= 0 and not variable.raw_bytes:
        for bits in (8, 16, 32):
            if variable.high < 1 << bits:
                return f"u{bits}"
    return type_of_variable(variable)


def is_wide(variable: Variable) -> bool:
    """Return whether a variable has more than two words."""
    return not variable.raw_bytes and words_for(variable.low, variable.high) > 2


def flag(condition: bool) -> str:
    """Return a C++ truth value."""
    return "true" if condition else "false"


def extended(code: Code, words: int) -> str:
    """Convert a value to ``words`` unsigned words, modulo their bits."""
    if code.words == words and (not code.signed or words > 2):
        return code.text
    if words == 1 and code.words == 1:
        return f"(u64){code.text}"
    return f"ext<{words}, {flag(code.signed)}>({code.text})"


def _shaped(text: str, words: int, wanted: tuple[int, bool]) -> Code:
    """Return an unsigned text of ``words`` words, right modulo their bits, as the wanted type."""
    needed, signed = wanted
    if needed != words:
        text = f"ext<{needed}, {flag(signed)}>({text})"
    text = f"(i{64 * needed})({text})" if signed and needed <= 2 else f"({text})"
    return Code(text, needed, signed)


def _words_of_bits(bits: int) -> int:
    return max(1, -(-bits // WORD))


def _fitting(of: Expr, need: int | None) -> tuple[int, bool]:
    """Return words and sign of an expression of which the ``need`` lowest bits matter."""
    if need is not None:
        words = _words_of_bits(need)
        top = 1 << (WORD * words)
        # Higher words do not matter.
        if of.low < -top // 2 or of.high >= top or (of.low < 0 and of.high >= top // 2):
            return words, False
    return words_for(of.low, of.high), of.low < 0


class Renderer:
    """Renders expressions of one program."""

    def __init__(self, program: LoadedProgram, shapes: Mapping[str, TableShape]) -> None:
        self.registers = {
            name: (number, cell_bytes(array.width))
            for number, (name, array) in enumerate(program.registers.items())
        }
        self.shapes = shapes
        # The names of wide literals, by their number of words and these: they stand once.
        self._wide: dict[tuple[int, str], str] = {}

    def literals(self) -> Iterator[str]:
        """Yield the definitions of the wide literals so far."""
        for (words, text), name in self._wide.items():
            yield f"static constexpr W<{words}> {name}{text};"

    def _literal(self, number: int, words: int) -> str:
        """Return an unsigned literal of ``words`` words, modulo their bits; of many, its name."""
        parts = [f"{number >> (WORD * i) & ((1 << WORD) - 1):#x}ull" for i in range(words)]
        if words <= 2:
            return parts[0] if words == 1 else f"pair({parts[1]}, {parts[0]})"
        text = f"{{{{{', '.join(parts)}}}}}"
        return self._wide.setdefault((words, text), f"k{len(self._wide)}")

    def value(self, of: Expr, need: int | None = None) -> Code:
        """Render an expression of which the ``need`` lowest bits matter (None: all)."""
        code = self._value(of, need)
        words = code.words if need is None else _words_of_bits(need)
        if code.words <= words:
            return code
        return Code(f"({extended(code, words)})", words)

    def unsigned(self, of: Expr, words: int, need: int | None = None) -> str:
        """Render an expression as ``words`` unsigned words, modulo their bits."""
        if of.constant is not None:
            return self._literal(of.constant, words)
        return extended(self.value(of, need), words)

    def index(self, of: Expr) -> str:
        """Render a number that fits into one word."""
        return self.unsigned(of, 1)

    def as_variable(self, of: Expr, variable: Variable) -> str:
        """Render an expression with the type of a variable."""
        words = words_for(variable.low, variable.high)
        text = self.unsigned(of, words)
        return f"({type_of(words, True)})({text})" if variable.low < 0 and words <= 2 else text

    def test(self, of: Expr) -> str:
        """Render a condition."""
        if of.op in {"and", "or"}:
            operator = " && " if of.op == "and" else " || "
            return "(" + operator.join(map(self.test, of.args)) + ")"
        if of.op == "not":
            return f"!{self.test(of.args[0])}"
        if of.op in _COMPARISONS:
            return self._comparison(of)
        if of.constant is not None:
            return flag(bool(of.constant))
        return f"nonzero({self.value(of).text})"

    def _comparison(self, of: Expr) -> str:
        left, right = of.args
        words = words_for(min(left.low, right.low), max(left.high, right.high))
        one, other = self.unsigned(left, words), self.unsigned(right, words)
        if of.op in {"==", "!="}:
            return f"({one} == {other})" if of.op == "==" else f"!({one} == {other})"
        if of.op in {">", "<="}:
            one, other = other, one
        text = f"less<{flag(left.low < 0 or right.low < 0)}>({one}, {other})"
        return text if of.op in {"<", ">"} else f"!{text}"

    def _value(self, of: Expr, need: int | None) -> Code:
        if of.op in _TESTS:
            return Code(f"(u64)({self.test(of)})", 1)
        return _VALUES.get(of.op, Renderer._binary)(self, of, need)

    def _constant(self, of: Expr, need: int | None) -> Code:
        words, signed = _fitting(of, need)
        text = self._literal(of.low, words)
        return Code(f"(i{64 * words}){text}" if signed and words <= 2 else text, words, signed)

    def _variable(self, of: Expr, _need: int | None) -> Code:
        words, signed = words_for(of.low, of.high), of.low < 0
        name = of.variable.name if of.variable else ""
        # Records of packets have smaller types, in which sums would overflow.
        text = f"{name}.get()" if words > 2 else f"({type_of(words, signed)}){name}"
        return Code(text, words, signed)

    def _binary(self, of: Expr, need: int | None) -> Code:
        words, signed = _fitting(of, need)
        one, other = (self.unsigned(each, words, need) for each in of.args)
        if of.op == "+" and words > 2 and _carry_free(of, words):
            return _shaped(f"add_by_words({one}, {other})", words, (words, signed))
        return _shaped(f"{one} {of.op} {other}", words, (words, signed))

    def _and(self, of: Expr, need: int | None) -> Code:
        for mask in of.args:
            bits = mask.constant
            if bits is not None and bits >= 0:
                # Of the other operand, only the bits of the mask matter.
                width = max(bits.bit_length(), 1)
                need = width if need is None else min(width, need)
        return self._binary(of, need)

    def _complement(self, of: Expr, need: int | None) -> Code:
        words, signed = _fitting(of, need)
        return _shaped(f"~{self.unsigned(of.args[0], words, need)}", words, (words, signed))

    def _shift_left(self, of: Expr, need: int | None) -> Code:
        words, signed = _fitting(of, need)
        left, right = of.args
        inner, amount = self.unsigned(left, words, need), self._amount(right)
        small = words <= 2 and min(right.high, WIDEST_SHIFT) < WORD * words
        text = f"{inner} << {amount}" if small else f"shl({inner}, {amount})"
        return _shaped(text, words, (words, signed))

    def _shift_right(self, of: Expr, _need: int | None) -> Code:
        left, right = self.value(of.args[0]), of.args[1]
        amount, words = self._amount(right), left.words
        if left.signed:
            text = f"sar({left.text}, {amount})"
            text = f"({type_of(words)}){text}" if words <= 2 else text
        elif words <= 2 and right.high < WORD * words:
            text = f"{left.text} >> {amount}"
        else:
            lost = sum(((1 << min(right.high, WORD)) - 1) << WORD * i for i in range(words))
            by_words = "" if of.args[0].ones & lost else "_by_words"
            text = f"shr{by_words}({left.text}, {amount})"
        return _shaped(text, words, _fitting(of, None))

    def _amount(self, of: Expr) -> str:
        if of.constant is not None:
            return str(of.constant)
        return f"distance({self.value(of).text})"

    def _division(self, of: Expr, _need: int | None) -> Code:
        left, right = of.args
        words = words_for(0, max(left.high, right.high))
        if words > 2:
            raise UnsupportedProgramError(
                "dividing numbers of more than 128 bits", "an expression", "use --backend python"
            )
        part = "quotient" if of.op == "/" else "remainder"
        one, other = self.unsigned(left, words), self.unsigned(right, words)
        text = f"{part}<{type_of(words)}>({one}, {other})"
        return _shaped(text, words, _fitting(of, None))

    def _choice(self, of: Expr, need: int | None) -> Code:
        words, signed = _fitting(of, need)
        condition, left, right = of.args
        one, other = self.unsigned(left, words, need), self.unsigned(right, words, need)
        return _shaped(f"{self.test(condition)} ? {one} : {other}", words, (words, signed))

    def _cell(self, of: Expr, _need: int | None) -> Code:
        number, size = self.registers[of.name]
        text = f"load_here<{size}>(reg{number} + {size} * {self.index(of.args[0])})"
        return _shaped(text, -(-size // 8), _fitting(of, None))

    def _wire(self, of: Expr, _need: int | None) -> Code:
        offset, size = self.index(of.args[0]), of.args[1].constant
        words = words_for(of.low, of.high)
        return _shaped(f"load_wire<{size}>(data + {offset})", words, (words, False))

    def _parameter(self, of: Expr, _need: int | None) -> Code:
        action, number = (each.low for each in of.args)
        shape = self.shapes[of.name]
        size, offset = byte_size(shape.parameter_widths[action][number]), shape.offsets(action)
        text = f"load_here<{size}>(entry->data + {offset[number]})"
        return _shaped(text, -(-size // 8), _fitting(of, None))

    def _random(self, of: Expr, _need: int | None) -> Code:
        low, high = of.args
        if min(low.low, high.low) < 0 or max(low.high, high.high) >> WORD:
            raise UnsupportedProgramError(
                "random numbers of more than 64 bits", "an action", "use --backend python"
            )
        first, last = self.index(low), self.index(high)
        return Code(f"({first} + random_up_to({last} - {first}))", 1)


def _carry_free(of: Expr, words: int) -> bool:
    """Return whether words of a sum cannot carry into each other."""
    left, right = of.args
    tops = sum(1 << (WORD * i + WORD - 1) for i in range(words - 1))
    return left.low >= 0 and right.low >= 0 and not (left.ones | right.ones) & tops


# How operators are rendered that are not as in C++.
_VALUES: dict[str, Callable[[Renderer, Expr, int | None], Code]] = {
    "const": Renderer._constant,
    "var": Renderer._variable,
    "&": Renderer._and,
    "~": Renderer._complement,
    "<<": Renderer._shift_left,
    ">>": Renderer._shift_right,
    "/": Renderer._division,
    "%": Renderer._division,
    "?": Renderer._choice,
    "cell": Renderer._cell,
    "wire": Renderer._wire,
    "action": lambda *_: Code("(i64)entry->action", 1, signed=True),
    "parameter": Renderer._parameter,
    "random": Renderer._random,
    "digest": lambda *_: Code("digest", 1),
}
