"""outcome.p4: the fate of each frame."""

from enum import IntEnum

COUNTER = "outcome"
# Of each job; as in outcome.p4.
OUTCOME_CELLS = 32


class Outcome(IntEnum):
    """What became of a frame that a port received; every frame has exactly one."""

    AGGREGATED = 0
    DUPLICATE = 1
    STALE = 2
    WRONG_PORT = 3
    UNKNOWN_VERTEX = 4
    UNKNOWN_BLOCK = 5
    WRONG_COUNT = 6
    DONE_COLLECTED = 7
    DONE_REPEATED = 8
    WRONG_PLAN = 9
    FORWARDED = 10
    FLOODED = 11
    UNKNOWN_STATION = 12
    MALFORMED = 13
    UNKNOWN_KIND = 14
    RECALLED = 15
    FETCHED = 16
    RESENT = 17
    NOTICED = 18
    PASSED_ON = 19
    WRONG_SESSION = 20
    WRONG_INCARNATION = 21
    WRONG_MAGNITUDE = 22
    WRONG_TAG = 23
    WRONG_NEXT = 24
    REDUCE_ADDED = 25
    REDUCE_REPEATED = 26
    REDUCE_STALE = 27
    REDUCE_ASKED = 28
    NO_JOB = 29


ORDINARY = frozenset({Outcome.FORWARDED, Outcome.FLOODED, Outcome.UNKNOWN_STATION})
"""What becomes of frames of other protocols."""
