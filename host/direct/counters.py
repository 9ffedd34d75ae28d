# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The counters of one worker of an exchange between hosts."""

from dataclasses import dataclass


@dataclass
class DirectCounters:
    """Counters of one worker.

    Attributes:
        data_resent: data frames sent again because they had not arrived.
        questions: RECALLs, sent because no acknowledgement came in time.
        farewells: DONEs sent.
        repeated: data frames that had arrived already; ignored.
        early: data frames of the next round; kept.
        wrong: sound frames that do not fit; ignored.
        foreign: data frames of another schedule, epoch or direction; ignored.
        malformed: frames that were no sound frames for this worker; ignored.
        marked: data frames that came marked by a queue.
        slowed: acknowledgements that reported marks.
    """

    data_sent: int = 0
    data_received: int = 0
    data_resent: int = 0
    acks_sent: int = 0
    acks_received: int = 0
    questions: int = 0
    farewells: int = 0
    repeated: int = 0
    early: int = 0
    wrong: int = 0
    foreign: int = 0
    malformed: int = 0
    marked: int = 0
    slowed: int = 0
