# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The counters of one worker of an exchange between hosts."""

from dataclasses import dataclass


@dataclass
class DirectCounters:
    """Counters of one worker."""

    data_sent: int = 0
    data_received: int = 0
    data_resent: int = 0  # Data frames sent again because they had not arrived.
    acks_sent: int = 0
    acks_received: int = 0
    questions: int = 0  # RECALLs, sent because no acknowledgement came in time.
    farewells: int = 0  # DONEs sent.
    repeated: int = 0  # Data frames that had arrived already; ignored.
    early: int = 0  # Data frames of the next round; kept.
    wrong: int = 0  # Sound frames that do not fit; ignored.
    foreign: int = 0  # Data frames of another schedule, epoch or direction; ignored.
    malformed: int = 0  # Frames that were no sound frames for this worker; ignored.
    marked: int = 0  # Data frames that came marked by a queue.
    slowed: int = 0  # Acknowledgements that reported marks.
