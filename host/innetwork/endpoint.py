# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The shared state of one worker's exchange over the switch."""

import secrets
from dataclasses import dataclass, field

from switchgnn.base.clock import SYSTEM_CLOCK, Clock
from switchgnn.host.congestion import CongestionWindow
from switchgnn.host.pace import Pace
from switchgnn.host.round_trip import RoundTrip
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.header import SESSION_MASK, Header
from switchgnn.host.wire.link import Link


@dataclass
class InNetworkCounters:
    """Counters of one worker."""

    features_sent: int = 0
    sums_received: int = 0
    features_resent: int = 0  # Features sent again because some of their group had not arrived.
    probes: int = 0  # Last features of a group sent again because no acknowledgement came.
    recalls: int = 0  # Sums asked for again.
    sums_recalled: int = 0  # Sums that came after a recall for them.
    fetches: int = 0  # Requests for a feature of another worker.
    features_fetched: int = 0  # Raw features that arrived.
    features_served: int = 0  # Raw features sent to others on request.
    sums_made: int = 0  # Sums that this worker added up itself.
    overflows: int = 0  # Features that found no slot in the strawman's switch, added here.
    # Of them, those that would suffice if one served all vertices of a worker.
    overflow_copies: int = 0
    late: int = 0  # Packets of an earlier round, block or fragment; ignored.
    repeated: int = 0  # Sums and features that had arrived already; ignored.
    wrong: int = 0  # Sums for no vertex of this worker, or with a wrong count; ignored.
    malformed: int = 0  # Frames that were no sound packets; ignored.
    foreign: int = 0  # Packets of another session; ignored.
    barriers: int = 0  # Barriers at which the worker waited.
    early: int = 0  # Exchanges whose features did not wait for the opening of their round.
    void: int = 0  # Abandoned rounds, whose features exceeded the predicted scale.
    barriers_repeated: int = 0  # `done`s sent again because no answer came.
    heard: int = 0  # Acknowledgements and answers at barriers.
    ignored: int = 0  # Sound packets without a meaning here.
    marked: int = 0  # Packets with the ECN mark.
    notices: int = 0  # NOTICEs sent.
    noticed: int = 0  # NOTICEs received, this worker's own included.


@dataclass(frozen=True)
class ExchangeStatus:
    """Progress of a worker.

    `rounds` and `blocks`, the fragments of blocks, are completed; `window` features may be in
    flight; `stalled` are the seconds spent at barriers, waiting for other workers.
    """

    rounds: int
    blocks: int
    window: float
    exchanging: bool = False
    stalled: float = 0.0
    counters: InNetworkCounters = field(default_factory=InNetworkCounters)


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
