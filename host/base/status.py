"""Counters of a worker's exchanges, and its progress over the switch."""

from dataclasses import dataclass, field


@dataclass
class InNetworkCounters:
    """Counters of one worker of an exchange over the switch."""

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
    wrong: int = 0  # Sums and fetches that do not fit the plan or the round; ignored.
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
class DirectCounters:
    """Counters of one worker of an exchange between hosts."""

    data_sent: int = 0
    data_received: int = 0
    data_resent: int = 0  # Data frames sent again because they had not arrived.
    acks_sent: int = 0
    questions: int = 0  # RECALLs, sent because no acknowledgement came in time.
    farewells: int = 0  # DONEs sent.
    repeated: int = 0  # Data frames that had arrived already; ignored.
    early: int = 0  # Data frames of the next round; kept.
    wrong: int = 0  # Sound frames that do not fit; ignored.
    foreign: int = 0  # Data frames of another schedule, epoch or direction; ignored.
    malformed: int = 0  # Frames that were no sound frames for this worker; ignored.
    marked: int = 0  # Data frames that came marked by a queue.
    slowed: int = 0  # Acknowledgements that reported marks.
