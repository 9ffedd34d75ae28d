"""The columns of rows that workers exchange, where they leave the least important ones out (DGS).

A switch adds rows number by number, so all workers must exchange the same columns of a tensor. The
others count as 0 on the way, forward and backward, and still as themselves between neighbours on
one worker. So the gradients are those of the sums as they are computed.

By gradient, a column is as important as the sum of |gradient * value| over all vertices: to first
order, the change of the loss if it is left out. The gradients of columns that are left out come
from the neighbours on the worker alone.

The other choices are the samplers that DGS is compared with. They draw vertices, the columns of A
in AH; here they draw the columns of H in HW, without replacement. No column is scaled by its
probability: one draw serves many epochs, so nothing averages out.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from switchgnn.training.base.compression import KeepBy
from switchgnn.training.exchange.gradients import GradientSums

# Frames carry a multiple of this number of columns.
AT_ONCE = 8
# Products such as 0.7 * 80 are whole numbers but for their last bits.
_ROUNDING = 1e-9
# The id and the width of a tensor: a layer may exchange wider rows in training than afterwards.
Tensors = tuple[int, int]
Scores = Mapping[Tensors, Tensor]


@dataclass(frozen=True, eq=False)
class Chosen:
    """The columns that are exchanged, int64[k] in ascending order, and the id of their tensor."""

    columns: Tensor
    tensor_id: int


def number_kept(keep: float, width: int) -> int:
    """Return how many of some columns are exchanged: a share of them, rounded up to frames."""
    wanted = math.ceil(keep * width - _ROUNDING)
    return min(width, -(-wanted // AT_ONCE) * AT_ONCE)


class Columns:
    """The columns that one worker exchanges, a share of them; those of all workers are the same."""

    def __init__(self, keep: float, new_tensor_id: Callable[[], int]) -> None:
        self.scoring = False  # whether this pass collects the importances of columns
        # the sums over all workers from which the columns were chosen, float64[F] each
        self.scores: Scores = {}
        self.by = KeepBy.GRADIENT
        self.draws = torch.Generator()  # in the same state on all workers
        self._keep = keep
        self._new_tensor_id = new_tensor_id
        self._chosen: dict[Tensors, Chosen] = {}
        self._found: dict[Tensors, Tensor] = {}

    def of(self, tensor_id: int, width: int) -> Chosen | None:
        """Return the columns of a tensor's rows that are exchanged; None: all, as LADIES scores."""
        whole = self.scoring and self.by is KeepBy.LADIES
        return None if whole else self._chosen.get((tensor_id, width))

    def note(self, tensor_id: int, rows: Tensor, gradient: Tensor) -> None:
        """Add the scores of the columns of rows [n, F] with these gradients [n, F]."""
        if self.by is KeepBy.GRADIENT:
            self._add(tensor_id, (rows * gradient).abs())
        elif self.by is KeepBy.RANDOM:
            self._add(tensor_id, torch.ones_like(rows))
        elif self.by is KeepBy.FASTGCN:
            self._add(tensor_id, rows.square())

    def note_sums(self, tensor_id: int, sums: Tensor) -> None:
        """Add the scores of the columns of sums over neighbours on other workers, [n, F]."""
        if self.scoring and self.by is KeepBy.LADIES:
            self._add(tensor_id, sums.square())

    def _add(self, tensor_id: int, numbers: Tensor) -> None:
        key = tensor_id, numbers.shape[1]
        self._found[key] = self._found.get(key, 0) + numbers.sum(dim=0, dtype=torch.float64).cpu()

    def take(self) -> Scores:
        """Return the importances that were noted, float64[F] of each tensor, and begin again."""
        found, self._found = self._found, {}
        return found

    def choose(self, scores: Scores, sums: GradientSums) -> list[int]:
        """Choose the columns that score highest over all workers, or draw them by score.

        All workers must have scores of the same tensors. Returns the ids of earlier choices that
        others replace, the same on all workers.
        """
        if not scores:
            return []
        keys = sorted(scores)
        total = sums.add(torch.cat([scores[key].double() for key in keys]))
        found = dict(zip(keys, torch.split(total, [width for _, width in keys]), strict=True))
        self.scores = {**found, **self.scores} if self.by is KeepBy.FASTGCN else found
        return [chosen.tensor_id for chosen in map(self._choose, keys) if chosen is not None]

    def _choose(self, key: Tensors) -> Chosen | None:
        """Choose the columns of a tensor; return an earlier choice that this one replaces."""
        width = key[1]
        number = number_kept(self._keep, width)
        if number == width:
            return None
        scores = self.scores[key]
        if self.by is not KeepBy.GRADIENT:
            # The first arrivals at rates in proportion to the scores: drawn without replacement.
            scores = scores / torch.empty_like(scores).exponential_(generator=self.draws)
        order = torch.argsort(scores, descending=True, stable=True)
        columns = order[:number].sort().values
        known = self._chosen.get(key)
        if known is not None and torch.equal(known.columns, columns):
            return None
        # A cache must not compare these rows with those of other columns.
        self._chosen[key] = Chosen(columns, self._new_tensor_id())
        return known
