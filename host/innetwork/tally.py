# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker counts while it exchanges."""

from dataclasses import dataclass


@dataclass
class InNetworkTally:
    """Counters of one worker.

    Attributes:
        features_sent, sums_received: packets that count.
        features_resent: features sent again because some of their group had not arrived.
        probes: last features of a group sent again because no acknowledgement came.
        recalls: sums asked for again.
        sums_recalled: sums that came after a recall for them.
        fetches: requests for a feature of another worker.
        features_fetched: raw features that arrived.
        features_served: raw features sent to others on request.
        sums_made: sums that this worker added up itself.
        overflows: features that found no slot in the strawman's switch, and were added here.
        overflow_copies: of them, those that would have done if one had served all destinations
            of this worker.
        late: packets of an earlier round, block or fragment; ignored.
        repeated: sums and features that had arrived already; ignored.
        wrong: sums for no vertex of this worker, or with a wrong count; ignored.
        malformed: frames that were no sound packets; ignored.
        foreign: packets of another session; ignored.
        barriers: barriers at which the worker had nothing to do but to wait.
        early: exchanges whose features did not wait for the opening of their round.
        void: rounds that were given up, as features had outgrown the scale of early ones.
        barriers_repeated: `done`s sent again because no answer came.
        heard: answers that were awaited: acknowledgements, and those of the barrier.
        ignored: sound packets that say nothing here.
        marked: packets with the ECN mark.
        notices: how often the others were told of such packets.
        noticed: NOTICEs that the switch passed on, this worker's own included.
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
