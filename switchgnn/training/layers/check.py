# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A check, by running it, that a model computes on parts of a graph what it does on the whole.

A copy of the model runs on a small random graph as a whole, and others on its two parts in two
threads, which exchange what workers would. Outputs, gradients and buffers are compared.
"""

import copy
import math
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten
from torch_geometric.data import Data
from torch_geometric.nn import GINConv, MessagePassing

from switchgnn.host.transport import NO_TRAFFIC, Transport
from switchgnn.host.wire.link import Traffic
from switchgnn.planner.direction import Direction
from switchgnn.planner.graphs.graph import graph_from_edges
from switchgnn.training.data.dataset import dataset_from_graph, split_vertices
from switchgnn.training.errors import UnsupportedLayerError
from switchgnn.training.layers.models import build_model, distribute
from switchgnn.training.layers.norms import VertexSums
from switchgnn.training.layers.pyg_layers import called_by, templates_removed
from switchgnn.training.partition import Partition, partition_dataset
from switchgnn.training.shape import ModelOptions
from switchgnn.training.sums import RemoteSum

# A tensor with as many rows has one per vertex. The last two vertices are isolated.
_VERTICES, _EDGES = 53, 130
# A difference must show on both graphs, as rounding may decide the sign of a number close to 0.
_SEEDS = (1, 2)
# Of a tensor's largest number, and of the largest gradient that a smaller one may hide behind.
_TOLERANCE, _HIDDEN = 1e-4, 1e-2
# How much more may differ than by roundings of features and weights, which change this at most.
_ROUNDING, _TIMES, _DRAWN = 1e-7, 30, 1e-2
_MODES, _SMOOTH = ("training", "evaluation"), ("outputs", "gradients")
_CALLS: tuple[Callable[[nn.Module, Tensor, Tensor], object], ...] = (
    lambda model, x, edges: model(x, edges),
    lambda model, x, edges: model(Data(x=x, edge_index=edges)),
)


def check_model(
    model: nn.Module, features: int, *, undirected: bool, sums: VertexSums | None = None
) -> str | None:
    """Refuse a model whose results would depend on the partition; it stays as it is.

    Args:
        model: takes features and edges, or a ``Data`` of both; on any device.
        features: of a vertex.
        undirected: whether each edge has its reverse.
        sums: those that the model makes itself, by way of a worker.

    Returns:
        A sentence that says what could not be checked; None if everything was.

    Raises:
        UnsupportedLayerError: a layer cannot be used, or the results differ.
    """
    sums = sums or VertexSums(_alone)
    here, add = threading.local(), sums.add
    # Each thread has its own.
    sums.add = lambda values: here.add(values)  # noqa: PLW0108
    try:
        with torch.random.fork_rng(devices=[]):
            for seed in _SEEDS:
                torch.default_generator.manual_seed(seed)
                trial = _Trial(model, features, undirected, sums, here)
                found = trial.difference()
                if found is None:
                    return trial.unchecked
    except UnsupportedLayerError:
        raise
    except Exception as error:
        words = str(error).strip().partition("\n")[0].rstrip(".")[:200]
        return _unchecked(model, f"a copy of it raised {type(error).__name__}: {words}")
    finally:
        sums.add = add
    raise UnsupportedLayerError(
        f"{found} on two parts of a small graph than on the whole, so training would depend on the "
        "partition: use the normalisations of docs/training.md, `worker.mean(h, dim=0)` or "
        "`worker.sum(h, dim=0)`, or skip this check with `--unchecked` or `unchecked=True`."
    )


def check_own_model(
    options: ModelOptions, features: int, classes: int, *, undirected: bool
) -> str | None:
    """Check a user's model as :func:`check_model` does; the built-in ones need none."""
    if not options.own:
        return None
    with templates_removed():
        model = build_model(options, features, classes)
        return check_model(model, features, undirected=undirected)


def _unchecked(model: nn.Module, reason: str) -> str:
    return (
        f"Whether {type(model).__name__} computes the same on parts of a graph was not checked, "
        f"because {reason}."
    )


def _alone(values: Tensor) -> Tensor:
    return values


_Edges = dict[Direction, NDArray[np.float32]]


class _OutOfStepError(Exception):
    pass


class _End:
    """The transport of a part, which meets the other part in a pair of queues."""

    def __init__(self, mine: "SimpleQueue[Any]", other: "SimpleQueue[Any]", edges: _Edges) -> None:
        self._mine, self._other, self._edges = mine, other, edges

    def aggregate(
        self, rows: NDArray[np.float32], direction: Direction, site: int = 0
    ) -> NDArray[np.float32]:
        other: NDArray[np.float32] = self._swap((direction, site, rows.shape[1]), rows.copy())
        return self._edges[direction] @ other

    def expected_traffic(self, _width: int, _direction: Direction) -> Traffic:
        return NO_TRAFFIC

    def add(self, values: Tensor) -> Tensor:
        other: Tensor = self._swap(values.shape, values.clone())
        return values + other

    def leave(self) -> None:
        self._other.put(None)

    def _swap(self, what: object, values: object) -> Any:  # noqa: ANN401
        self._other.put((what, values))
        found = self._mine.get()
        if found is None or found[0] != what:
            self._mine.put(None)
            raise _OutOfStepError
        return found[1]


class _WithoutDropout(TorchFunctionMode):
    def __torch_function__(
        self,
        function: Callable[..., object],
        _types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        if "dropout" in getattr(function, "__name__", ""):
            return args[0] if args else (kwargs or {})["input"]
        return function(*args, **(kwargs or {}))


class _Key(NamedTuple):
    """Names a tensor of a run.

    Attributes:
        kind: "seen" by a module, or what must not differ: "outputs", "gradients" or "buffers".
        words: what differs, if it does.
        times: how many of the same kind and words came before.
    """

    kind: str
    words: str
    times: int


_Found = dict[_Key, Tensor]


class _Record:
    """The inputs and outputs of the modules of a model, in the order of the calls."""

    def __init__(self, model: nn.Module) -> None:
        self.begin()
        inside: tuple[str, ...] = ()
        for name, module in model.named_modules():
            if name.startswith(inside):
                continue
            if isinstance(module, MessagePassing) and not isinstance(module, GINConv):
                # On parts it calls its own modules with other rows.
                inside = (*inside, f"{name}.")
            called = called_by(name, module)
            module.register_forward_pre_hook(partial(self._before, called), with_kwargs=True)
            module.register_forward_hook(partial(self._after, called, bool(name)))

    def begin(self) -> None:
        self.found: _Found = {}
        self._times: Counter[tuple[str, str]] = Counter()
        self._callers: list[str] = []

    def note(self, kind: str, words: str, values: object) -> list[Tensor]:
        tensors = [each for each in tree_flatten(values)[0] if isinstance(each, Tensor)]
        tensors = [each for each in tensors if each.is_floating_point()]
        for each in tensors:
            self.found[_Key(kind, words, self._times[kind, words])] = each.detach().clone()
            self._times[kind, words] += 1
        return tensors

    def _before(self, called: str, _module: nn.Module, *inputs: object) -> None:
        caller = self._callers[-1] if self._callers else called
        self.note("seen", f"{caller} calls {called} with another input", inputs)
        self._callers.append(called)

    def _after(
        self, called: str, inner: bool, _module: nn.Module, _in: object, outputs: object
    ) -> None:
        self._callers.pop()
        if inner:
            self.note("seen", f"{called} has another output", outputs)


class _Trial:
    """A model on a random graph.

    Attributes:
        unchecked: why a mode could not be checked, if one could not.
    """

    def __init__(
        self,
        model: nn.Module,
        features: int,
        undirected: bool,
        sums: VertexSums,
        here: threading.local,
    ) -> None:
        self.unchecked: str | None = None
        self._called, self._sums, self._here = called_by("", model), sums, here
        owner = (np.arange(_VERTICES) % 3 == 0).astype(np.int64)
        ends = torch.randint(_VERTICES - 2, (2, _EDGES)).numpy()
        graph = graph_from_edges(*ends, name="small", vertices=_VERTICES, directed=not undirected)
        labels = np.zeros(_VERTICES, dtype=np.int64)
        data = dataset_from_graph(
            graph,
            features=np.zeros((_VERTICES, 1), dtype=np.float32),
            labels=labels,
            split=split_vertices(labels, seed=0),
        )
        loops = np.stack([data.self_loops, data.self_loops])
        self._edges = torch.from_numpy(np.concatenate([graph.edges(), loops], axis=1)).long()
        self._parts = list(partition_dataset(data, owner))
        self._rows = [torch.from_numpy(part.vertices) for part in self._parts]
        self._shapes = [(_VERTICES,), *(rows.shape for rows in self._rows)]
        here.add = _alone
        self._model = copy.deepcopy(model).cpu().float()
        self._call, self._x = self._first_call(features)
        self._vary()

    def _first_call(self, features: int) -> tuple[Callable[..., object], Tensor]:
        """Return how the model can be called, and with which features."""
        widths, errors = [features], []
        for module in self._model.modules():
            if isinstance(module, nn.modules.dropout._DropoutNd):
                module.p = 0.0
            width = getattr(module, "in_channels", getattr(module, "in_features", None))
            widths += [width] if isinstance(width, int) and width > 0 else []
        for width in dict.fromkeys(widths[:2]):
            x = torch.randn(_VERTICES, width) * 10 ** (torch.rand(width) * 1.5 - 1)
            x += torch.randn(width)
            x[self._rows[1]] = 2 * x[self._rows[1]] + 0.5
            for call in _CALLS:
                try:
                    with torch.no_grad():
                        call(self._model.eval(), x, self._edges)
                except Exception as error:
                    errors.append(error)
                else:
                    return call, x
        raise errors[0]

    @torch.no_grad()
    def _vary(self) -> None:
        """Change weights, as a 0 or 1 that they begin with would hide what they do later."""
        for weights in filter(Tensor.is_floating_point, self._model.parameters()):
            size = weights.square().mean().sqrt()
            weights.add_(0.2 * (size if size > 0 else 1) * torch.randn_like(weights))

    def difference(self) -> str | None:
        """Return what differs between the parts and the whole, or None."""
        again = _in_threads(self._run_whole)
        boxes: tuple[SimpleQueue[Any], SimpleQueue[Any]] = (SimpleQueue(), SimpleQueue())
        try:
            halves = _in_threads(partial(self._run_part, boxes))
        except _OutOfStepError:
            return f"{self._called} makes other exchanges"
        for mode, whole, rounded, *parts in zip(_MODES, *again, *halves, strict=True):
            steepest = [whole[key].abs().max() for key in whole if key.kind == "gradients"]
            off = partial(_off, whole, _HIDDEN * max(map(float, steepest), default=0.0))
            noise = max(off(key, [rounded[key]]) for key in whole if key.kind in _SMOOTH)
            if noise > _DRAWN:
                reason = f"in {mode} its results change from call to call"
                self.unchecked = _unchecked(self._model, reason)
                continue
            limit = max(_TOLERANCE, _TIMES * noise)
            differ = [key for key in whole if off(key, self._joined(key, whole, parts)) > limit]
            if any(key.kind != "seen" for key in differ):
                return f"In {mode}, {differ[0].words}"
        return None

    def _run_whole(self, roundings: int) -> list[_Found]:
        """Run as a whole, with features and weights off by a number of roundings."""
        self._here.add, model = _alone, copy.deepcopy(self._model)
        drawn = torch.Generator().manual_seed(0)

        def rounded(values: Tensor) -> Tensor:
            return values * (1 + roundings * _ROUNDING * torch.randn(values.shape, generator=drawn))

        with torch.no_grad():
            for weights in filter(Tensor.is_floating_point, model.parameters()):
                weights.copy_(rounded(weights))
        return self._run(model, rounded(self._x))

    def _run_part(self, boxes: "tuple[SimpleQueue[Any], ...]", number: int) -> list[_Found]:
        part, model = self._parts[number], copy.deepcopy(self._model)
        dense = np.zeros((_VERTICES, _VERTICES), dtype=np.float32)
        dense[tuple(self._edges.numpy())] = 1
        between = np.ix_(part.vertices, self._parts[1 - number].vertices)
        edges = {Direction.FORWARD: dense.T[between], Direction.BACKWARD: dense[between]}
        end = _End(boxes[number], boxes[1 - number], edges)
        self._here.add = end.add
        try:
            with RemoteSum(cast("Transport", end)) as remote:
                distribute(model, part, remote, vertex_sums=self._sums)
                return self._run(model, self._x[self._rows[number]], part)
        finally:
            end.leave()

    def _run(self, model: nn.Module, x: Tensor, part: Partition | None = None) -> list[_Found]:
        """Return what is found in training and in evaluation."""
        edges = self._edges if part is None else torch.from_numpy(part.edges)
        rows = torch.arange(_VERTICES) if part is None else torch.from_numpy(part.vertices)
        found, record = [], _Record(model)
        for training in (True, False):
            record.begin()
            model.train(training).zero_grad()
            with _WithoutDropout():
                outputs = self._call(model, x, edges)
            drawn, loss = torch.Generator().manual_seed(0), torch.zeros(())
            noted = record.note("outputs", f"{self._called} has another output", outputs)
            if not noted:
                raise ValueError("no floating-point tensor among the outputs")
            for each in noted:
                if each.shape[:1] == rows.shape:
                    weights = torch.randn(_VERTICES, *each.shape[1:], generator=drawn)[rows]
                else:
                    weights = torch.randn(each.shape, generator=drawn) / (2 if part else 1)
                loss = loss + (each * weights).sum()
            if loss.requires_grad:
                loss.backward()  # type: ignore[no-untyped-call]
            for name, weight in reversed(list(model.named_parameters())):
                gradient = torch.zeros_like(weight) if weight.grad is None else weight.grad
                record.note("gradients", f"{self._called} has another gradient of {name}", gradient)
            for name, buffer in model.named_buffers():
                record.note("buffers", f"{self._called} has another {name}", buffer)
            found.append(record.found)
        return found

    def _joined(self, key: _Key, whole: _Found, parts: list[_Found]) -> list[Tensor]:
        """Return what the whole is compared with, if it can be."""
        found, expected = [part[key] for part in parts if key in part], whole[key]
        if key.kind == "gradients":
            return [found[0] + found[1]]
        if [each.shape[:1] for each in (expected, *found)] == self._shapes:
            return [torch.cat(found)[torch.cat(self._rows).argsort()]]
        if all(each.shape == expected.shape for each in found):
            return found
        if key.kind == "outputs":
            raise ValueError("outputs without a row per vertex")
        return []


def _off(whole: _Found, steepest: float, key: _Key, others: list[Tensor]) -> float:
    """Return the largest difference of a tensor from others, by its size."""
    expected = whole[key]
    if not expected.numel():
        return 0.0
    if key.kind in _SMOOTH and not expected.isfinite().all():
        raise ValueError("numbers that are not finite")
    size = max(float(expected.abs().max()), 1e-6, steepest if key.kind == "gradients" else 0.0)
    off = [float((each - expected).abs().max()) / size for each in others]
    return max((math.inf if math.isnan(each) else each for each in off), default=0.0)


def _in_threads(work: Callable[[int], list[_Found]]) -> list[list[_Found]]:
    """Return what two threads return; an error of one's own comes first."""
    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(work, number) for number in range(2)]
    errors = [error for each in futures if (error := each.exception()) is not None]
    if errors:
        raise min(errors, key=lambda error: isinstance(error, _OutOfStepError))
    return [each.result() for each in futures]
