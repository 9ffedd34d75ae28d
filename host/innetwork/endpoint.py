# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The shared state of one worker's exchange over the switch."""

import secrets
from dataclasses import dataclass, field

from switchgnn.base.clock import SYSTEM_CLOCK, Clock
from switchgnn.host.congestion import CongestionWindow
from switchgnn.host.pace import Pace
from switchgnn.host.round_trip import RoundTrip
from switchgnn.host.status import InNetworkCounters
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.header import SESSION_MASK, Header
from switchgnn.host.wire.link import Link


@dataclass
class Sending:
    """How rows are sent.

    `narrow`: in the fewest bits that hold the numbers of a frame. `per_sum`: a source contributes
    differently to different sums, as with a cache.
    """

    narrow: bool = False
    per_sum: bool = False


@dataclass(frozen=True, eq=False)
class Endpoint:
    """One worker's connection to the switch, with its state and counters."""

    worker: int
    session: int  # The number of the plan's install.
    incarnation: int  # 32 bits that distinguish this process from others of the same worker.
    link: Link
    addresses: Addresses
    pace: Pace
    round_trip: RoundTrip  # Of questions and answers, which overtake sums.
    congestion: CongestionWindow
    counters: InNetworkCounters
    clock: Clock = SYSTEM_CLOCK  # The clock of the link.
    sending: Sending = field(default_factory=Sending)  # How rows are sent.
    # Of recalled sums, which wait behind other sums and the traffic of others.
    sum_trip: RoundTrip = field(default_factory=RoundTrip)

    def send(self, header: Header, body: bytes = b"") -> None:
        """Send one packet of this session to the switch."""
        self.link.send(self.frame(header, body))

    def frame(self, header: Header, body: bytes = b"") -> bytes:
        """Return the frame of a packet of this session."""
        own = header._replace(session=self.session & SESSION_MASK)
        return self.addresses.frame(own.pack(body))


def new_endpoint(
    worker: int,
    session: int,
    link: Link,
    addresses: Addresses,
    pace: Pace,
    *,
    clock: Clock = SYSTEM_CLOCK,
    incarnation: int | None = None,
) -> Endpoint:
    """Return the endpoint of a worker that has sent nothing; `incarnation` None: a random one."""
    round_trip = RoundTrip(pace.shortest_timeout)
    return Endpoint(
        worker=worker,
        session=session,
        incarnation=secrets.randbits(32) if incarnation is None else incarnation,
        link=link,
        addresses=addresses,
        pace=pace,
        round_trip=round_trip,
        sum_trip=RoundTrip(pace.shortest_timeout),
        congestion=CongestionWindow(pace, round_trip),
        counters=InNetworkCounters(),
        clock=clock,
    )
