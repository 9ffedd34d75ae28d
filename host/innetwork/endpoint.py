"""The shared state of one worker's exchange over the switch."""

import secrets

from switchgnn.base.clock import SYSTEM_CLOCK, Clock
from switchgnn.host.base.congestion import CongestionWindow, StallClock
from switchgnn.host.base.pace import Pace, RoundTrip
from switchgnn.host.base.status import InNetworkCounters
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.header import SESSION_MASK, Header
from switchgnn.host.wire.link import Link


class Endpoint:
    """One worker's connection to the switch, with its state and counters.

    `session`: the number of the plan's install. `clock`: that of the link. `incarnation`: 32 bits
    that distinguish this process from others of the same worker; None: drawn at random.
    """

    def __init__(
        self,
        worker: int,
        session: int,
        link: Link,
        addresses: Addresses,
        pace: Pace,
        *,
        clock: Clock = SYSTEM_CLOCK,
        incarnation: int | None = None,
    ) -> None:
        self.worker, self.session, self.link = worker, session, link
        self.addresses, self.pace, self.clock = addresses, pace, clock
        self.incarnation = secrets.randbits(32) if incarnation is None else incarnation
        # Of questions and answers, which overtake sums.
        self.round_trip = RoundTrip(pace.shortest_timeout)
        # Of recalled sums, which wait behind other sums and the traffic of others.
        self.sum_trip = RoundTrip(pace.shortest_timeout)
        self.congestion = CongestionWindow(pace, self.round_trip)
        self.counters = InNetworkCounters()
        self.stall = StallClock(clock)  # counts the seconds at barriers
        self.narrow = False  # whether frames have the fewest bits that hold their numbers
        # whether a source contributes differently to different sums, as with a cache
        self.per_sum = False
        self.stopped = False  # whether exchanges must end, see `Transport.stop`

    def send(self, header: Header, body: bytes = b"") -> None:
        """Send one packet of this session to the switch."""
        self.link.send(self.frame(header, body))

    def frame(self, header: Header, body: bytes = b"") -> bytes:
        """Return the frame of a packet of this session."""
        own = header._replace(session=self.session & SESSION_MASK)
        return self.addresses.frame(own.pack(body))
