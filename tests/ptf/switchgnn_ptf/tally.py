# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The exact growth of the counters."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from switchgnn.controller import Counters, Outcome

PerBank = Mapping[int, int]
EVENTS = ("completed", "stale", "overfull", "released", "overflowed")


@dataclass(frozen=True)
class Tally:
    """How much every counter must have grown.

    Attributes:
        outcomes: by outcome; those that are not named must not have grown.
        passes: passes by their contributions; None does not look at them.
        completed: completed slots by bank; None does not look at them.
        stale, overfull, released, overflowed: contributions by bank; banks not named must not
            have grown.
        unrouted: sums without a result entry.
        marked: packets marked for congestion; None does not look.
    """

    outcomes: Mapping[Outcome, int]
    passes: Mapping[int, int] | None = None
    completed: PerBank | None = None
    stale: PerBank = field(default_factory=dict)
    overfull: PerBank = field(default_factory=dict)
    released: PerBank = field(default_factory=dict)
    overflowed: PerBank = field(default_factory=dict)
    unrouted: int = 0
    marked: int | None = 0

    def expected(self) -> dict[str, int]:
        """Return the growth of each counter by name, without those that stayed."""
        named = {outcome.name: number for outcome, number in self.outcomes.items()}
        named |= {f"passes of {n}": number for n, number in (self.passes or {}).items()}
        for kind in EVENTS:
            banks = getattr(self, kind) or {}
            named |= {f"{kind} in bank {bank}": number for bank, number in banks.items()}
        named |= {"unrouted": self.unrouted, "marked": self.marked or 0}
        return {name: number for name, number in named.items() if number}

    def found(self, before: Counters, after: Counters) -> dict[str, int]:
        """Return how the counters that this looks at have grown."""
        old, new = _flat(before), _flat(after)
        grown = {name: new[name] - old[name] for name in new if new[name] != old[name]}
        ignored = [
            prefix
            for prefix, wanted in (
                ("passes", self.passes),
                ("completed", self.completed),
                ("marked", self.marked),
            )
            if wanted is None
        ]
        return {
            name: growth
            for name, growth in grown.items()
            if not any(name.startswith(prefix) for prefix in ignored)
        }


def _flat(counters: Counters) -> dict[str, int]:
    flat = {outcome.name: number for outcome, number in counters.outcomes.items()}
    for contributions, number in enumerate(counters.passes.by_contributions):
        flat[f"passes of {contributions}"] = number
    for bank, events in enumerate(counters.banks):
        for kind in EVENTS:
            flat[f"{kind} in bank {bank}"] = getattr(events, kind)
    return flat | {"unrouted": counters.unrouted, "marked": counters.marked}
