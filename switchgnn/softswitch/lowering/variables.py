"""The variables with which a program and the switch speak, besides its fields."""

from switchgnn.softswitch.base.ir import Variable

_BIG = 1 << 40
_TIME = 1 << 62
_U32 = (1 << 32) - 1

# What the switch gives to a function.
PACKET_BYTES = Variable("n", 0, 1 << 31)
INPUT_PORT = Variable("port", 0, 511)
INSTANCE_TYPE = Variable("itype", 0, 7)
INSTANCE = Variable("rid", -1, _U32)
NOW = Variable("now", 0, _TIME)
ENQUEUED_AT = Variable("enq_time", 0, _TIME)
DEPTH_BEFORE = Variable("enq_depth", 0, _BIG)
DEPTH_AFTER = Variable("deq_depth", 0, _BIG)
# What functions give back: bytes that the parser has read, the length of the packet now, the
# longest that leaves, clone session (-1: none) and field lists (0: none).
POSITION = Variable("pos", 0, _BIG)
LENGTH = Variable("pl", -_BIG, _BIG)
KEPT_BYTES = Variable("tr", -_BIG, _BIG)
CLONE_SESSION = Variable("cs", -1, 1 << 16)
CLONE_LIST = Variable("cl", 0, 1 << 32)
RESUBMIT = Variable("rs", 0, 1 << 32)
RECIRCULATE = Variable("rc", 0, 1 << 32)
# Used inside functions.
PARSER_ERROR = Variable("perr", 0, _U32)
WRONG_CHECKSUM = Variable("bad", 0, 1)
EXITED = Variable("ex", 0, 1)
HIT = Variable("hit", 0, 1)
ACTION = Variable("action", -1, 1 << 30)
STATE = Variable("part", 0, 1 << 30)
TURNS = Variable("turns", 0, 1 << 30)
STEP = Variable("step", 0, 1 << 30)
STEPS = Variable("steps", 0, 1 << 30)

NEVER_TRUNCATED = 1 << 31
