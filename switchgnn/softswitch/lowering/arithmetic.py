"""Expressions from the operators of P4, with their ranges and constant folding."""

from collections.abc import Iterable, Sequence

from switchgnn.softswitch.base.ir import WIDEST_SHIFT, Expr, Variable

_FAR = 1 << 20  # Shifts to the right by more are the same for all numbers of a program.


def constant(value: int) -> Expr:
    """Return a known integer."""
    return Expr("const", value, value, ones=value if value >= 0 else -1)


def variable(of: Variable) -> Expr:
    """Return the value of a variable."""
    return Expr("var", of.low, of.high, ones=_all_ones(of.low, of.high), variable=of)


def _all_ones(low: int, high: int) -> int:
    return (1 << high.bit_length()) - 1 if low >= 0 else -1


def _made(op: str, bounds: Iterable[int], *args: Expr, ones: int = -1) -> Expr:
    values = list(bounds)
    low, high = min(values), max(values)
    if low == high:
        return constant(low)
    ones = _all_ones(low, high) & ones if low >= 0 else -1
    return Expr(op, low, high, args, ones)


def add(left: Expr, right: Expr) -> Expr:
    """Return the sum, which cannot overflow."""
    if left.constant == 0:
        return right
    if right.constant == 0:
        return left
    apart = left.low >= 0 and right.low >= 0 and not left.ones & right.ones
    ones = left.ones | right.ones if apart else -1
    return _made("+", (left.low + right.low, left.high + right.high), left, right, ones=ones)


def subtract(left: Expr, right: Expr) -> Expr:
    """Return the difference, which may be negative."""
    if right.constant == 0:
        return left
    return _made("-", (left.low - right.high, left.high - right.low), left, right)


def multiply(left: Expr, right: Expr) -> Expr:
    """Return the product, which cannot overflow."""
    corners = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
    return _made("*", corners, left, right)


def divide(left: Expr, right: Expr) -> Expr:
    """Return the quotient of numbers that are never negative; a division by zero gives zero."""
    return _made("/", (0, left.high), left, right)


def modulo(left: Expr, right: Expr) -> Expr:
    """Return the remainder of numbers that are never negative; a division by zero gives zero."""
    return _made("%", (0, min(left.high, max(right.high - 1, 0))), left, right)


def shift_left(left: Expr, right: Expr) -> Expr:
    """Return the shift by a number that is never negative; beyond WIDEST_SHIFT it is zero."""
    known = right.constant
    if known == 0:
        return left
    least, most = min(right.low, WIDEST_SHIFT), min(right.high, WIDEST_SHIFT)
    corners = [number << by for number in (left.low, left.high) for by in (least, most)]
    if right.high > WIDEST_SHIFT:
        corners.append(0)
    ones = left.ones << known if known is not None and left.low >= 0 else -1
    return _made("<<", corners, left, right, ones=ones)


def shift_right(left: Expr, right: Expr) -> Expr:
    """Return the arithmetic shift by a number that is never negative."""
    known = right.constant
    if known == 0:
        return left
    distances = (min(right.low, _FAR), min(right.high, _FAR))
    corners = [number >> by for number in (left.low, left.high) for by in distances]
    ones = left.ones >> known if known is not None and left.low >= 0 else -1
    return _made(">>", corners, left, right, ones=ones)


def bit_and(left: Expr, right: Expr) -> Expr:
    """Return the bitwise and; a mask that cannot change the value is left out."""
    for value, mask in ((left, right), (right, left)):
        bits = mask.constant
        if bits is not None and bits >= 0 and not bits & (bits + 1) and value.within(0, bits):
            return value
    if left.low < 0 and right.low < 0:
        return _made("&", _signed(left, right), left, right)
    if left.low < 0 or right.low < 0:
        positive = right if left.low < 0 else left
        return _made("&", (0, positive.high), left, right, ones=positive.ones)
    ones = left.ones & right.ones
    return _made("&", (0, min(left.high, right.high, ones)), left, right, ones=ones)


def bit_or(left: Expr, right: Expr) -> Expr:
    """Return the bitwise or."""
    return _join("|", left, right)


def bit_xor(left: Expr, right: Expr) -> Expr:
    """Return the bitwise exclusive or."""
    return _join("^", left, right)


def _join(op: str, left: Expr, right: Expr) -> Expr:
    if right.constant == 0:
        return left
    if left.constant == 0:
        return right
    if left.constant is not None and right.constant is not None:
        one, other = left.constant, right.constant
        return constant(one | other if op == "|" else one ^ other)
    if left.low < 0 or right.low < 0:
        return _made(op, _signed(left, right), left, right)
    ones = left.ones | right.ones
    return _made(op, (0, _all_ones(0, ones)), left, right, ones=ones)


def _signed(left: Expr, right: Expr) -> tuple[int, int]:
    bounds = (left.low, left.high, right.low, right.high)
    bits = max(max(bound, -bound - 1).bit_length() for bound in bounds)
    return -(1 << bits), (1 << bits) - 1


def bit_not(of: Expr) -> Expr:
    """Return the bitwise complement, which is negative for what is not."""
    return _made("~", (-of.high - 1, -of.low - 1), of)


def compare(op: str, left: Expr, right: Expr) -> Expr:
    """Return whether a comparison holds, as 0 or 1."""
    return Expr(op, 0, 1, (left, right), 1)


def negation(of: Expr) -> Expr:
    """Return 1 for 0, otherwise 0."""
    return Expr("not", 0, 1, (of,), 1)


def all_of(conditions: Sequence[Expr]) -> Expr:
    """Return whether all conditions hold."""
    return _chain("and", conditions, 1)


def any_of(conditions: Sequence[Expr]) -> Expr:
    """Return whether any condition holds."""
    return _chain("or", conditions, 0)


def _chain(op: str, conditions: Sequence[Expr], empty: int) -> Expr:
    wanted = [each for each in conditions if each.constant != empty]
    if not wanted:
        return constant(empty)
    return wanted[0] if len(wanted) == 1 else Expr(op, 0, 1, tuple(wanted), 1)


def if_else(condition: Expr, left: Expr, right: Expr) -> Expr:
    """Return `left` where the condition holds, otherwise `right`."""
    ones = left.ones | right.ones if left.low >= 0 and right.low >= 0 else -1
    bounds = (left.low, left.high, right.low, right.high)
    return _made("?", bounds, condition, left, right, ones=ones)


def pick(elements: Sequence[Expr], index: Expr) -> Expr:
    """Return the element with an index, or 0 where there is none."""
    picked = constant(0)
    for number, element in reversed(list(enumerate(elements))):
        picked = if_else(compare("==", index, constant(number)), element, picked)
    return picked


def wrap(of: Expr, width: int, *, signed: bool = False) -> Expr:
    """Return the value modulo 2^width, as a two's complement number if `signed`."""
    masked = bit_and(of, constant((1 << width) - 1))
    if not signed:
        return masked
    sign = 1 << (width - 1)
    if of.within(-sign, sign - 1):
        return of
    if masked.within(0, sign - 1):
        return masked
    return subtract(bit_xor(masked, constant(sign)), constant(sign))


def clamp(of: Expr, low: int, high: int) -> Expr:
    """Return the value limited to [low, high]; it is used three times, so it should be cheap."""
    if of.within(low, high):
        return of
    if of.high <= low or of.low >= high:
        return constant(low if of.high <= low else high)
    limited = of
    if of.high > high:
        limited = if_else(compare("<", of, constant(high)), of, constant(high))
    if of.low < low:
        limited = if_else(compare("<", of, constant(low)), constant(low), limited)
    return _made("?", (max(of.low, low), min(of.high, high)), *limited.args)
