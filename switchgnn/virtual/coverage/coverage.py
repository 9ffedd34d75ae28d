# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How many scenarios have met each state."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Coverage:
    """States of hosts and program, and how often they were met.

    Attributes:
        scenarios: how many there were.
        met: how many of them have met each state.
    """

    scenarios: int = 0
    met: Counter[str] = field(default_factory=Counter)

    def add(self, states: Iterable[str]) -> None:
        """Add what one scenario has met, each state once."""
        self.scenarios += 1
        self.met.update(states)
