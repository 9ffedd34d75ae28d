"""Dropout that drops the same units however the vertices are split over workers.

Whether a unit is dropped follows from the seed, the epoch, the call in it, the vertex's id and the
column, by the mixing function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). So a resumed
training needs only the number of its epoch to draw the same numbers.
"""

import copy
import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from switchgnn.base.array_types import Bools
from switchgnn.training.layers.forward import Anywhere, Replaced, replaced
from switchgnn.training.layers.halo import Halo

_WEYL = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_UNIFORM_BITS = 24
# Numbers mixed at a time, which fit in the processor's cache.
_AT_ONCE = 1 << 14
# On other devices the limit only bounds the memory: some words of 8 bytes each.
_AT_ONCE_ELSEWHERE = 1 << 24


# Tokens that are remembered: more calls than an epoch makes between a pass and its recomputation.
_MOST_TOKENS = 1 << 12
# Of a dropped unit in alpha dropout, by torch: the least value of SELU.
_ALPHA = -1.7580993408473766
# Those that drop single elements; the others drop whole channels.
_ELEMENTS = (nn.Dropout, nn.AlphaDropout)
_KINDS = (*_ELEMENTS, nn.Dropout1d, nn.Dropout2d, nn.FeatureAlphaDropout)


class Draws:
    """Which units a module drops in each of its calls.

    A call is numbered by a token from PyTorch's generator. Recomputation (`torch.utils.checkpoint`)
    restores the generator, so the same token comes again, and the same units are drawn, as a
    dropout of PyTorch would. `vertices`: int64[n], the id of each row in the whole graph. `seed`:
    the same on every worker, but different for each module of a model.
    """

    def __init__(self, vertices: Tensor, seed: int) -> None:
        self.epoch = 0
        self.rows = len(vertices)
        self.vertices = Anywhere(vertices)
        self._seed = seed
        self._calls = self._number = 0
        self._tokens: dict[int, int] = {}

    def begin_epoch(self, epoch: int) -> None:
        """Draw what an epoch draws, whatever came before."""
        self.epoch, self._calls = epoch, 0
        self._tokens.clear()

    def begin_call(self) -> None:
        """Draw for another call, or again for one that is recomputed."""
        token = int(torch.randint(1 << 62, (1,)))
        number = self._tokens.pop(token, self._calls + 1)
        self._calls = max(self._calls, number)
        self._tokens[token] = self._number = number
        if len(self._tokens) > _MOST_TOKENS:
            del self._tokens[next(iter(self._tokens))]

    def kept(self, ids: Tensor, columns: int, share: float) -> Tensor:
        """Return which units of rows with these ids, int64[k], stay in this call: bool[k, columns].

        These are the units that draw the share or more.
        """
        least = math.ceil(float(np.float32(share)) * (1 << _UNIFORM_BITS))
        if ids.device.type == "cpu":
            return torch.from_numpy(self._kept_on_cpu(ids, columns, least))
        return self._kept_elsewhere(ids, columns, least)

    def _kept_on_cpu(self, ids: Tensor, columns: int, least: int) -> Bools:
        starts = _mix(ids.numpy().astype(np.uint64) * _WEYL + self._call())
        steps = np.arange(1, columns + 1, dtype=np.uint64) * _WEYL
        kept = np.empty((len(starts), columns), dtype=np.bool_)
        at_once = max(1, _AT_ONCE // max(1, columns))
        for first in range(0, len(starts), at_once):
            part = slice(first, first + at_once)
            drawn = _mix(starts[part, np.newaxis] + steps)
            drawn >>= np.uint64(64 - _UNIFORM_BITS)
            np.greater_equal(drawn, np.uint64(least), out=kept[part])
        return kept

    def _kept_elsewhere(self, ids: Tensor, columns: int, least: int) -> Tensor:
        """Draw the same in int64, which wraps around as well."""
        weyl, call = _signed(_WEYL), _signed(self._call()[0])
        starts = _mix_signed(ids * weyl + call)
        steps = torch.arange(1, columns + 1, device=ids.device) * weyl
        kept = torch.empty((len(starts), columns), dtype=torch.bool, device=ids.device)
        at_once = max(1, _AT_ONCE_ELSEWHERE // max(1, columns))
        for first in range(0, len(starts), at_once):
            part = slice(first, first + at_once)
            drawn = _mix_signed(starts[part, None] + steps)
            kept[part] = _shifted(drawn, 64 - _UNIFORM_BITS) >= least
        return kept

    def _call(self) -> NDArray[np.uint64]:
        seed = np.full(1, self._seed % (1 << 64), dtype=np.uint64)
        of_epoch = _mix(seed * _WEYL + np.uint64(self.epoch))
        return _mix(of_epoch * _WEYL + np.uint64(self._number))


def edge_ids(source: Tensor, destination: Tensor) -> Tensor:
    """Return an id of each edge, int64[E], of those of its ends."""
    return _mix_signed(source * _signed(_WEYL)) + destination


class VertexDropout(Replaced):
    """The forward pass of a dropout of PyTorch whose input has a row per vertex.

    The module keeps its type, its name and its `p`.
    """

    def __init__(self, module: nn.Module, draws: Draws) -> None:
        super().__init__(module)
        self.draws = draws
        self.halo: Halo | None = None  # of the layer around it, whose rows include copies

    def compute(self, rows: Tensor) -> Tensor:
        """Return [n, ...] with units dropped and the others scaled, in training only."""
        module, share = self.module, self.module.p
        ids = self._ids(rows)
        if not module.training or share == 0 or ids is None:
            # Without a row per vertex, the units cannot be the same on all workers.
            found: Tensor = self.original(rows)
            return found
        self.draws.begin_call()
        alpha = isinstance(module, nn.AlphaDropout | nn.FeatureAlphaDropout)
        kept = self._kept(rows, ids)
        return dropped(rows, kept, share, alpha=alpha, inplace=module.inplace)

    def _kept(self, rows: Tensor, ids: Tensor) -> Tensor:
        """Return which units stay, bool[n, ...], of a shape that fits that of the rows."""
        shape: tuple[int, ...] = rows.shape
        if not isinstance(self.module, _ELEMENTS):
            # Whole channels are dropped; of two dimensions Dropout1d takes the first as channels.
            whole = 1 + (rows.dim() > 2 or not isinstance(self.module, nn.Dropout1d))
            shape = (*shape[:whole], *[1] * (rows.dim() - whole))
        return self.draws.kept(ids, math.prod(shape[1:]), self.module.p).view(shape)

    def _ids(self, rows: Tensor) -> Tensor | None:
        if self.halo is not None and len(rows) == self.halo.size:
            return self.halo.ids(rows.device)
        return self.draws.vertices.on(rows.device)[0] if len(rows) == self.draws.rows else None

    def moved(self) -> None:  # noqa: D102
        self.draws = copy.deepcopy(self.draws)


def dropped(
    rows: Tensor, kept: Tensor, share: float, *, alpha: bool = False, inplace: bool = False
) -> Tensor:
    """Return rows whose units that are not kept are dropped, and the others scaled.

    `alpha`: as alpha dropout, which keeps mean and variance.
    """
    if alpha:
        scale = ((1 - share) * (1 + share * _ALPHA**2)) ** -0.5 if share < 1 else 0.0
        found = (rows * kept + _ALPHA * ~kept) * scale - scale * _ALPHA * share
    else:
        found = rows * kept / (1 - share) if share < 1 else rows * kept
    return rows.copy_(found) if inplace else found


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    values ^= values >> np.uint64(30)
    values *= _FIRST
    values ^= values >> np.uint64(27)
    values *= _SECOND
    values ^= values >> np.uint64(31)
    return values


def _mix_signed(values: Tensor) -> Tensor:
    """Mix int64 as `_mix` does the same bits."""
    values = (values ^ _shifted(values, 30)) * _signed(_FIRST)
    values = (values ^ _shifted(values, 27)) * _signed(_SECOND)
    return values ^ _shifted(values, 31)


def _shifted(values: Tensor, bits: int) -> Tensor:
    return (values >> bits) & ((1 << (64 - bits)) - 1)


def _signed(word: np.uint64) -> int:
    return int(word.astype(np.int64))


def drop_by_vertex(model: nn.Module, vertices: Tensor, seed: int) -> None:
    """Make every dropout of a model draw by vertex; the ids of its rows are ``vertices``, int64[n].

    A subclass with another forward pass is the user's own.
    """
    inside = [child for parent in model.modules() for child in parent.children()]
    known = [kind.forward for kind in _KINDS]
    dropouts = [each for each in dict.fromkeys([*inside, model]) if type(each).forward in known]
    for number, module in enumerate(dropouts):
        VertexDropout(module, Draws(vertices, seed * 1000 + number))


def begin_epoch(model: nn.Module, *, seed: int, epoch: int, worker: int) -> None:
    """Derive the random numbers of an epoch from the seed, the epoch and the worker alone."""
    state = np.random.SeedSequence((seed, epoch, worker)).generate_state(1, np.uint64)
    # Not torch.manual_seed: where CUDA was never used, that keeps a formatted stack for later.
    torch.default_generator.manual_seed(int(state[0]))
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(int(state[0]))
    for module in model.modules():
        if draws := getattr(replaced(module), "draws", None):
            draws.begin_epoch(epoch)
