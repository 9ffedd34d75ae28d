"""The coflows of a training: which of them goes first, and in which class its packets travel.

A coflow is a group of transfers that is of use when all have ended. Hermod (Wan, HKUST 2025,
chapter 5) orders coflows by micro-batch, then type, then layer; the smaller goes first. Full-graph
training has one micro-batch per epoch, so the number of the epoch takes its place. An all-reduce
has that of the next epoch, whose forward pass needs its sums. The three cases of Hermod become:

1. Exchanges of two epochs: that of the earlier one, since no later one can end before it.
2. A backward exchange and the all-reduce of a bucket of gradients: the exchange, whose sums the
   layers in front wait for, while no sum of the bucket is needed before the next epoch.
3. A forward exchange and an all-reduce of the epoch before: such a bucket is of the same layer or
   of a later one, so the exchange goes first; of two buckets, that of the front layer, which the
   forward pass needs first.

Hermod's rules for pipeline and expert parallelism are of another field and are left out.
"""

from dataclasses import dataclass
from enum import Enum, IntEnum


class CoflowType(IntEnum):
    """The types of coflows; those of one epoch go in this order."""

    FORWARD = 0  # the exchange of a layer's rows
    BACKWARD = 1  # that of their gradients
    ALL_REDUCE = 2  # of a bucket of gradients


class TrafficClass(Enum):
    """The classes of packets, by the number in a switch, where the higher goes first, and DSCP.

    CS1 and LE (RFC 8622) are below the default, so nobody goes ahead of others' traffic by them.
    The switch has two classes of control, 3 and 4 (docs/congestion.md).
    """

    LATE = 0, 1
    EARLY = 1, 8
    EXCHANGE = 2, 0
    CONTROL = 3, 48

    @property
    def number(self) -> int:
        """The number in a switch."""
        return self.value[0]

    @property
    def dscp(self) -> int:
        """The code point in the IP header."""
        return self.value[1]


@dataclass(frozen=True, order=True)
class Coflow:
    """A coflow; the smaller one goes first, and no two of a training are equal."""

    micro_batch: int  # the epoch that waits for it
    type: CoflowType
    layer: int  # from 0, the front one

    @classmethod
    def bucket(cls, epoch: int, layer: int) -> "Coflow":
        """Return the all-reduce of gradients of an epoch; the next one waits for it."""
        return cls(epoch + 1, CoflowType.ALL_REDUCE, layer)

    def traffic_class(self, early: int) -> TrafficClass:
        """Return the class of its packets, where this many buckets of front layers are early."""
        if self.type <= CoflowType.BACKWARD:
            return TrafficClass.EXCHANGE
        return TrafficClass.EARLY if self.layer < early else TrafficClass.LATE
