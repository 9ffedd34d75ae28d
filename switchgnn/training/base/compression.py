"""The options of what a training leaves out of its exchanges; without PyTorch."""

from dataclasses import dataclass
from enum import Enum

from switchgnn.base.options import EXCHANGE, FEWER_BYTES
from switchgnn.host.base.compression import WHOLE_BITS, Compression
from switchgnn.training.base.errors import TrainingError

AUTO, OFF = "auto", "off"
BITS = (32, 16, 8)
# Epsilon at the start, where it follows the accuracy. CDFGNN states none.
FIRST = 0.1


class KeepBy(str, Enum):
    """Values of --keep-by: take the highest scores, or draw in proportion to them."""

    GRADIENT = "gradient"  # the highest sums of |gradient * value|
    RANDOM = "random"  # drawn, all with the same score
    FASTGCN = "fastgcn"  # drawn by the squared norms of columns of rows at the first choice
    LADIES = "ladies"  # drawn by those of columns of the sums between workers at each choice


@dataclass(frozen=True)
class CompressionOptions:
    """What is left out of the exchanges."""

    # the change of a cached row that is too small to be sent, as a number; AUTO: it follows the
    # training accuracy; OFF: no cache
    cache: str = FEWER_BYTES.option(
        "EPSILON",
        "Send rows as changes, and only those that have changed by more than EPSILON of their "
        "largest number, or of that of an average row, from 0 to below 1; "
        f"{AUTO}: it follows the training accuracy; or {OFF}.",
        default=OFF,
        autocompletion=lambda: [AUTO, OFF],
    )
    bits: int = FEWER_BYTES.option(
        "BITS", f"Of a number in exchanges: {', '.join(map(str, BITS))}.", default=WHOLE_BITS
    )
    error_feedback: bool | None = FEWER_BYTES.option(
        None,
        "Add what rounding takes away to the row of the next exchange.",
        "--error-feedback/--no-error-feedback",
        shown="with 16 or 8 bits",
    )
    # The next ones are in a panel without negations, as they are too wide beside them.
    stochastic_rounding: bool = EXCHANGE.option(
        None,
        "With 16 or 8 bits, round up with the probability of the rest.",
        "--stochastic-rounding",
        default=False,
    )
    keep: float = EXCHANGE.option(
        "SHARE",
        "Exchange this share of the columns, the most important ones; the others count as 0 "
        "between workers.",
        default=1.0,
        min=0.001,
        max=1.0,
    )
    keep_by: KeepBy | None = EXCHANGE.option(
        "NAME",
        "Choose the columns by gradient, or draw them by random, fastgcn or ladies.",
        shown=KeepBy.GRADIENT.value,
    )
    columns_every: int = EXCHANGE.option(
        "EPOCHS",
        "Choose them again after this many epochs; before, all are exchanged.",
        default=30,
        min=1,
    )
    rest: float = EXCHANGE.option(
        "SHARE",
        "With --cache, send the rows of this share of a worker's vertices, the least important "
        "ones, in every 4th epoch only; from 0 to below 1.",
        default=0.0,
        min=0.0,
        max=0.999,
    )

    def check(self) -> None:
        """Raise TrainingError if values are out of range, or do not go together."""
        if self.bits not in BITS:
            raise TrainingError(f"Numbers have 32, 16 or 8 bits in exchanges, not {self.bits}.")
        if not self._rounds and (self.error_feedback or self.stochastic_rounding):
            raise TrainingError(
                "Error feedback and stochastic rounding are for 16 or 8 bits: numbers of 32 bits "
                "are not rounded."
            )
        try:
            valid = 0 <= self.epsilon < 1
        except ValueError:
            valid = False
        if not valid:
            raise TrainingError(
                f"Epsilon of the cache is {AUTO}, {OFF} or a number from 0 to below 1, not "
                f"{self.cache}."
            )
        if self.keep_by is not None and self.keep == 1:
            raise TrainingError("--keep-by chooses among columns: add --keep with a share below 1.")
        if not 0 <= self.rest < 1:
            raise TrainingError(f"The share of --rest is from 0 to below 1, not {self.rest:g}.")
        if self.rest and not self.caches:
            raise TrainingError(
                f"--rest {self.rest:g} needs a cache, as resting rows count as unchanged: add "
                "--cache."
            )

    @property
    def _rounds(self) -> bool:
        return self.bits < WHOLE_BITS

    @property
    def caches(self) -> bool:
        """Whether rows are cached."""
        return self.cache != OFF

    @property
    def epsilon(self) -> float:
        """The change of a cached row that is too small to be sent, at the start."""
        return FIRST if self.follows else float(self.cache) if self.caches else 0.0

    @property
    def follows(self) -> bool:
        """Whether epsilon follows the training accuracy."""
        return self.cache == AUTO

    @property
    def active(self) -> bool:
        """Whether anything is left out."""
        return self.caches or self._rounds or self.keep < 1

    def of_rows(self, seed: int) -> Compression:
        """Return what transports leave out of each row; `seed`: of stochastic rounding."""
        feedback = self._rounds if self.error_feedback is None else self.error_feedback
        return Compression(self.bits, self.caches, feedback, self.stochastic_rounding, seed)

    @property
    def named(self) -> str:
        """The options that leave something out, as they are written; empty without any."""
        keep = f"--keep {self.keep:g}" if self.keep < 1 else ""
        by = f"--keep-by {self.keep_by.value}" if self.keep_by is not None else ""
        rest = f"--rest {self.rest:g}" if self.rest else ""
        return " ".join(filter(None, (self.named_of_rows, keep, by, rest)))

    @property
    def named_of_rows(self) -> str:
        """Those of them that compress rows."""
        bits = f"--bits {self.bits}" if self._rounds else ""
        return " ".join(filter(None, (f"--cache {self.cache}" if self.caches else "", bits)))
