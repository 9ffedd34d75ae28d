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
    """Counters of one worker.

    Attributes:
        features_resent: features sent again because some of their group had not arrived.
        probes: last features of a group sent again because no acknowledgement came.
        recalls: sums asked for again.
        sums_recalled: sums that came after a recall for them.
        fetches: requests for a feature of another worker.
        features_fetched: raw features that arrived.
        features_served: raw features sent to others on request.
        sums_made: sums that this worker added up itself.
        overflows: features that found no slot in the strawman's switch, added here.
        overflow_copies: of them, those that would suffice if one served all vertices of a worker.
        late: packets of an earlier round, block or fragment; ignored.
        repeated: sums and features that had arrived already; ignored.
        wrong: sums for no vertex of this worker, or with a wrong count; ignored.
        malformed: frames that were no sound packets; ignored.
        foreign: packets of another session; ignored.
        barriers: barriers at which the worker waited.
        early: exchanges whose features did not wait for the opening of their round.
        void: abandoned rounds, whose features exceeded the predicted scale.
        barriers_repeated: `done`s sent again because no answer came.
        heard: acknowledgements and answers at barriers.
        ignored: sound packets without a meaning here.
        marked: packets with the ECN mark.
        notices: NOTICEs sent.
        noticed: NOTICEs received, this worker's own included.
    """

    features_sent: int = 0
    sums_received: int = 0
    features_resent: int = 0
    probes: int = 0
    recalls: int = 0
    sums_recalled: int = 0
    fetches: int = 0
    features_fetched: int = 0
    features_served: int = 0
    sums_made: int = 0
    overflows: int = 0
    overflow_copies: int = 0
    late: int = 0
    repeated: int = 0
    wrong: int = 0
    malformed: int = 0
    foreign: int = 0
    barriers: int = 0
    early: int = 0
    void: int = 0
    barriers_repeated: int = 0
    heard: int = 0
    ignored: int = 0
    marked: int = 0
    notices: int = 0
    noticed: int = 0


@dataclass(frozen=True)
class ExchangeStatus:
    """Progress and window of a worker.

    Attributes:
        rounds: completed exchanges.
        blocks: completed fragments of blocks, over all rounds.
        window: features that may be in flight.
        exchanging: whether an exchange is under way.
        stalled: seconds spent at barriers, waiting for other workers.
        counters: of the worker.
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

    Attributes:
        narrow: whether frames have the fewest bits that hold their numbers.
        per_sum: whether a source contributes differently to different sums, as with a cache.
    """

    narrow: bool = False
    per_sum: bool = False


@dataclass(frozen=True, eq=False)
class Endpoint:
    """One worker's connection to the switch, with its state and counters.

    Attributes:
        session: the number of the plan's install.
        incarnation: 32 bits that distinguish this process from others of the same worker.
        round_trip: of questions and answers, which overtake sums.
        clock: the clock of the link.
        sending: how rows are sent.
        sum_trip: of recalled sums, which wait behind other sums and the traffic of others.
    """

    worker: int
    session: int
    incarnation: int
    link: Link
    addresses: Addresses
    pace: Pace
    round_trip: RoundTrip
    congestion: CongestionWindow
    counters: InNetworkCounters
    clock: Clock = SYSTEM_CLOCK
    sending: Sending = field(default_factory=Sending)
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
