# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Counts the exchanges of a worker, and the traffic that they should have caused."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from switchgnn.host.transport import NO_TRAFFIC, Transport, add_traffic
from switchgnn.host.wire.link import Traffic
from switchgnn.planner.direction import Direction


@dataclass
class Ledger:
    """The exchanges of one worker so far.

    Attributes:
        expected: what they should have put on the link, all together, without losses.
        exchanges: their number, by direction and width.
        kept: passes of a layer that reused kept sums and needed no exchange.
    """

    expected: Traffic = NO_TRAFFIC
    exchanges: Counter[tuple[Direction, int]] = field(default_factory=Counter)
    kept: int = 0

    def enter(self, transport: Transport, width: int, direction: Direction) -> None:
        """Count one exchange.

        Args:
            transport: the transport that carries it.
            width: the elements of a row.
            direction: forward or backward.
        """
        once = transport.expected_traffic(width, direction)
        self.expected = add_traffic(self.expected, once)
        self.exchanges[direction, width] += 1

    def to_dict(self) -> dict[str, Any]:
        """Return the ledger as plain data, for JSON."""
        exchanges = [
            {"direction": direction.value, "width": width, "times": times}
            for (direction, width), times in self.exchanges.items()
        ]
        return {
            "expected": self.expected._asdict(),
            "exchanges": exchanges,
            "kept": self.kept,
        }
