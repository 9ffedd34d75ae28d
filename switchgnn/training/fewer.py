# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a training leaves out of its exchanges; without PyTorch."""

from dataclasses import dataclass
from typing import Any

from switchgnn.host.compression import NO_COMPRESSION, WHOLE_BITS, Compression
from switchgnn.training.errors import TrainingError


@dataclass(frozen=True)
class FewerBytes:
    """What a training leaves out of its exchanges.

    Attributes:
        compression: of each row.
        epsilon: the change of a cached row that is too small to be sent, at the start.
        follows: whether epsilon follows the training accuracy.
        keep: the share of the columns that is exchanged, 0 < keep <= 1.
        every: epochs between two choices of these columns.
        rest: the share of each worker's vertices whose rows are sent less often, 0 <= rest < 1;
            only with a cache.
    """

    compression: Compression = NO_COMPRESSION
    epsilon: float = 0.0
    follows: bool = False
    keep: float = 1.0
    every: int = 30
    rest: float = 0.0

    @property
    def active(self) -> bool:
        """Whether anything is left out."""
        return self.compression.active or self.keep < 1


NOTHING_LESS = FewerBytes()
AUTO = "auto"
BITS = (32, 16, 8)
# Epsilon at the start, where it follows the accuracy. CDFGNN states none.
FIRST = 0.1


def fewer_bytes(
    bits: int,
    cache: float | str | None,
    *,
    feedback: bool | None = None,
    stochastic: bool = False,
    seed: int = 0,
    rest: float = 0.0,
    **columns: Any,  # noqa: ANN401
) -> FewerBytes:
    """Return what a training leaves out.

    Args:
        bits: one of BITS.
        cache: epsilon, or "auto"; None: no cache.
        feedback: whether there is error feedback; None: if numbers are rounded.
        stochastic: whether rounding is stochastic.
        seed: of stochastic rounding.
        rest: the share of vertices whose rows are sent less often.
        columns: `keep` and `every` of FewerBytes.

    Raises:
        TrainingError: the values are out of range, or do not go together.
    """
    if bits not in BITS:
        raise TrainingError(f"Numbers have 32, 16 or 8 bits in exchanges, not {bits}.")
    rounds = bits < WHOLE_BITS
    if not rounds and (feedback or stochastic):
        raise TrainingError(
            "Error feedback and stochastic rounding are for 16 or 8 bits: numbers of 32 bits are "
            "not rounded."
        )
    epsilon = FIRST if cache == AUTO else cache or 0.0
    if isinstance(epsilon, str) or not 0 <= epsilon < 1:
        raise TrainingError(
            f"Epsilon of the cache is {AUTO}, or a number from 0 to below 1, not {cache}."
        )
    if not 0 <= rest < 1:
        raise TrainingError(f"The share of --rest is from 0 to below 1, not {rest:g}.")
    if rest and cache is None:
        raise TrainingError(
            f"--rest {rest:g} needs a cache, as resting rows count as unchanged: add --cache."
        )
    compression = Compression(
        bits, cache is not None, rounds if feedback is None else feedback, stochastic, seed
    )
    return FewerBytes(compression, epsilon, cache == AUTO, rest=rest, **columns)
