"""The numbers in a frame, and the width that needs the fewest bytes."""

from collections.abc import Iterable, Sequence

from switchgnn.planner.base.errors import PlannerError

# The widths that the switch adds, narrowest first: groups of 8.
LANES = tuple(range(8, 257, 8))
# The rows of a frame: more than one are a bundle.
ROWS = (1, 2, 4, 8)
# The lanes of one slot of a bank. A wider fragment takes slots of 2, 4 or 8 banks.
BANK_LANES = 32
# The lanes of every slot of the Tofino program, which adds to one in a pass.
TOFINO_LANES = 64
# The widest frame that BMv2 can make of one without a body: a packet may grow by 512 bytes in it
# (behavioral-model, targets/simple_switch/simple_switch.cpp).
WIDEST_ANSWER = 128
# More chunks are longer than narrow rows by more.
_MOST_NARROW_ROWS = 4
AUTO = "auto"
# Numbers of a feature if the model is unknown.
USUAL_WIDTH = 64
# Of a frame on the wire, before its numbers (`BODY_AT` of host/wire/header.py).
_HEADERS_BYTES = 60
_NUMBER_BYTES = 4
_PLACES_BYTES = 16


def fragment_lanes(width: int, lanes: int, rows: int = 1) -> tuple[int, ...]:
    """Return the numbers of each fragment of a feature; the last is as narrow as possible.

    Those of all `rows` of a frame together are groups of 8.
    """
    full, rest = divmod(width, lanes)
    least = LANES[0] // rows
    return (lanes,) * full + ((-(-rest // least) * least,) if rest else ())


def widest_lanes(widths: Iterable[int]) -> tuple[int, ...]:
    """Return the widest frame of each size of a slot, ascending; no wider than the widest row.

    A narrower one would have no more room, and as many fragments or more.
    """
    full = (lanes for lanes in LANES if lanes == BANK_LANES * banks_of_slot(lanes))
    row = _in_groups(max(widths))
    return tuple(dict.fromkeys(min(lanes, row) for lanes in full))


def fits_switch(lanes: int, rows: int, widest: int) -> bool:
    """Return whether a switch whose widest frame is `widest` takes rows of that many numbers.

    BMv2, with WIDEST_ANSWER, also makes chunks of narrow rows, and names the rows of sums. The
    Tofino program makes no bundles.
    """
    if widest == TOFINO_LANES and rows > 1:
        return False
    if widest == LANES[-1] or rows == 1:
        return rows * lanes <= widest
    return rows <= _MOST_NARROW_ROWS and rows * lanes < widest


def parse_rows(text: str) -> int:
    """Parse the rows of a frame in `--rows`."""
    if text not in map(str, ROWS):
        known = ", ".join(map(str, ROWS))
        raise PlannerError(f"No frames of {text!r} rows: give {AUTO}, or one of {known}.")
    return int(text)


def parse_lanes(text: str, widths: Sequence[int]) -> int:
    """Parse the width of frames in `--lanes`; AUTO: that of the fewest bytes, the narrowest."""
    if text == AUTO:
        return min(
            widest_lanes(widths),
            key=lambda it: sum(frame_bytes(each) for w in widths for each in fragment_lanes(w, it)),
        )
    if text not in map(str, LANES):
        raise PlannerError(
            f"No frames of {text!r} numbers: give {AUTO}, or a multiple of {LANES[0]} up to "
            f"{LANES[-1]}."
        )
    return int(text)


def frame_bytes(lanes: int, rows: int = 1) -> int:
    """Return the bytes of a feature's frame with rows of that many numbers on the wire."""
    return _HEADERS_BYTES + _NUMBER_BYTES * lanes * rows


def row_frame_bytes(lanes: int) -> int:
    """Return the bytes of a frame with one row of a bundle, which a leaf sends up."""
    return frame_bytes(_in_groups(lanes))


def sum_frame_bytes(lanes: int, rows: int = 1) -> int:
    """Return the bytes of a sum's frame; a bundle names its destinations."""
    return frame_bytes(lanes, rows) + _PLACES_BYTES * (rows > 1)


def banks_of_slot(lanes: int) -> int:
    """Return the banks that a slot of that many numbers spans."""
    return 1 << (-(-lanes // BANK_LANES) - 1).bit_length()


def _in_groups(numbers: int) -> int:
    return -(-numbers // LANES[0]) * LANES[0]
