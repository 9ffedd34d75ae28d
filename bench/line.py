"""One line of the result: two measurements, their ratio, and their goal."""

from dataclasses import dataclass
from math import inf
from statistics import median
from typing import Any

from bench.measure import Samples


@dataclass(frozen=True)
class Goal:
    """The goal of a line; None where there is none."""

    ratio: float | None = None  # the smallest A / B
    ratio_most: float | None = None  # the largest A / B
    least: float | None = None  # the smallest A
    most: float | None = None  # the largest A


@dataclass(frozen=True)
class ResultLine:
    """One line of the result."""

    figure: str  # the name of the figure that it belongs to
    what: str  # what was measured
    unit: str  # the unit of A and B
    # a, b: the measurements; B may be missing
    a: Samples
    b: Samples | None = None
    goal: Goal = Goal()  # what A or A / B should be
    note: str = ""  # circumstances that matter

    @property
    def ratios(self) -> tuple[float, ...]:
        """A / B of each pair; infinite where B is 0."""
        if self.b is None:
            return ()
        pairs = zip(self.a.values, self.b.values, strict=True)
        return tuple(a / b if b else inf for a, b in pairs)

    @property
    def reached(self) -> bool | None:
        """Whether the medians reach the goal; None without a goal."""
        goal, checks = self.goal, []
        if goal.ratio is not None and self.ratios:
            checks.append(median(self.ratios) >= goal.ratio)
        if goal.ratio_most is not None and self.ratios:
            checks.append(median(self.ratios) <= goal.ratio_most)
        if goal.least is not None:
            checks.append(self.a.median >= goal.least)
        if goal.most is not None:
            checks.append(self.a.median <= goal.most)
        return all(checks) if checks else None

    def to_dict(self) -> dict[str, Any]:
        """Return the line as plain data, for JSON."""
        return {
            "figure": self.figure,
            "what": self.what,
            "unit": self.unit,
            "a": {"label": self.a.label, "values": self.a.values},
            "b": {"label": self.b.label, "values": self.b.values} if self.b else None,
            "ratios": self.ratios,
            "goal": {k: v for k, v in vars(self.goal).items() if v is not None},
            "reached": self.reached,
            "note": self.note,
        }
