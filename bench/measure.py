"""Measures two things in turn, A B A B, so that drift of the machine affects both."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

Measurement = Callable[[], float]


@dataclass(frozen=True)
class Samples:
    """Measurements of one thing."""

    label: str  # what was measured
    values: tuple[float, ...]  # the values in the order of measurement

    @property
    def median(self) -> float:
        """The median of the values."""
        return median(self.values)


def alternate(
    pairs: int, a: tuple[str, Measurement], b: tuple[str, Measurement]
) -> tuple[Samples, Samples]:
    """Measure A and B in turn, ``pairs`` times each."""
    values: list[tuple[float, float]] = [(a[1](), b[1]()) for _ in range(pairs)]
    return (
        Samples(a[0], tuple(pair[0] for pair in values)),
        Samples(b[0], tuple(pair[1] for pair in values)),
    )


def repeat(times: int, label: str, measurement: Measurement) -> Samples:
    """Measure one thing several times."""
    return Samples(label, tuple(measurement() for _ in range(times)))
