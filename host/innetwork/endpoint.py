# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What all parts of one worker's exchange over the switch share."""

from dataclasses import dataclass

from switchgnn.base.clock import SYSTEM_CLOCK, Clock
from switchgnn.host.congestion import Congestion
from switchgnn.host.innetwork.incarnation import new_incarnation
from switchgnn.host.innetwork.tally import InNetworkTally
from switchgnn.host.pace import Pace
from switchgnn.host.round_trip import RoundTrip
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.header import SESSION_MASK, Header
from switchgnn.host.wire.link import Link


@dataclass(frozen=True, eq=False)
class Endpoint:
    """One worker at the switch: where it sends, how fast, and what it counts.

    Attributes:
        worker: its number.
        session: the number of the install that it takes part in.
        incarnation: what tells it from another process that is the same worker, 32 bits.
        link: an open link to the switch.
        addresses: those of the worker and of the switch.
        pace: bounds on sending and waiting.
        round_trip: time-outs, from the round trips that were measured.
        congestion: window and rate.
        tally: counters.
        clock: what time it is where the link is.
    """

    worker: int
    session: int
    incarnation: int
    link: Link
    addresses: Addresses
    pace: Pace
    round_trip: RoundTrip
    congestion: Congestion
    tally: InNetworkTally
    clock: Clock = SYSTEM_CLOCK

    def send(self, header: Header, body: bytes = b"") -> None:
        """Send one packet of this session to the switch.

        Raises:
            LinkError: the link is gone.
        """
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
    """Return the endpoint of a worker that has not sent anything yet.

    Args:
        worker: its number.
        session: the number of the install that it takes part in.
        link: an open link to the switch.
        addresses: those of the worker and of the switch.
        pace: bounds on sending and waiting.
        clock: what time it is where the link is.
        incarnation: what tells it from another process that is the same worker, 32 bits; None:
            it is drawn.

    Returns:
        The endpoint, with nothing measured and nothing counted.
    """
    round_trip = RoundTrip(pace.shortest_timeout)
    return Endpoint(
        worker=worker,
        session=session,
        incarnation=new_incarnation() if incarnation is None else incarnation,
        link=link,
        addresses=addresses,
        pace=pace,
        round_trip=round_trip,
        congestion=Congestion(pace, round_trip),
        tally=InNetworkTally(),
        clock=clock,
    )
