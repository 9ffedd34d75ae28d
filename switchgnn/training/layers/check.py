"""A check, by running it, that a model computes on parts of a graph what it does on the whole.

A copy of the model runs on a small random graph as a whole, and others on its two parts in two
threads, which exchange what workers would. Outputs, gradients and buffers are compared. Each copy
is fresh, and is called several times, as a model may keep something for its next call.
"""

import copy
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from queue import SimpleQueue
from typing import Any, cast

import numpy as np
import torch
import typer
from torch import Tensor, nn, view_as_real
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten

from switchgnn.base.array_types import Float32s, Int64s
from switchgnn.host.links.transport import NO_TRAFFIC, Transport
from switchgnn.planner import Direction, graph_from_edges
from switchgnn.training.base.errors import UnsupportedLayerError, first_line
from switchgnn.training.base.options import ModelOptions
from switchgnn.training.data.dataset import dataset_from_graph, split_vertices
from switchgnn.training.data.partition import Partition, partition_dataset
from switchgnn.training.exchange.sums import RemoteSum
from switchgnn.training.layers.models import build_model, distribute, frameworks
from switchgnn.training.layers.norms import VertexSums
from switchgnn.training.layers.pyg_layers import templates_removed
from switchgnn.training.layers.summed import called_by

# A tensor with as many rows as vertices has one per vertex. The last two vertices are isolated.
# Many vertices may take other branches; their gradients would show rounding too often.
_SMALL, _LARGE = 53, 1000
# A difference must show on two of the graphs: rounding may decide the sign of a number close to 0.
_SEEDS, _OFTEN = (1, 2, 3), 2
# Of a tensor's largest number, and of the largest gradient that a smaller one may hide behind.
_TOLERANCE, _HIDDEN = 1e-4, 1e-2
# How much more may differ than by rounding the weights, which changes this at most.
_ROUNDING, _TIMES, _DRAWN = 1e-7, 30, 1e-2
# The calls of each copy, and whether they train.
_CALLS = {"training": True, "training, at the second call,": True, "evaluation": False}
# Tensors by kind, what differs if they do, and number. Those "seen" in a model decide nothing.
_Key = tuple[str, str, int]
_Found = dict[_Key, Tensor]
_RESULTS = ("outputs", "gradients")
_Edges = tuple[Tensor, Tensor | None]
_SKIP = "skip this check with `--unchecked` or `unchecked=True`."


def check_model(
    model: nn.Module,
    features: int,
    *,
    undirected: bool,
    weighted: bool = False,
    sums: VertexSums | None = None,
) -> str | None:
    """Refuse a model whose results would depend on the partition; it stays as it is.

    Returns a sentence that says what could not be checked; None if everything was. `model`: takes
    `features` of a vertex and edges, or a ``Data`` of both; on any device. `undirected`: whether
    each edge has its reverse. `weighted`: whether edges have weights. `sums`: those that the model
    makes itself, by way of a worker.
    """
    sums, here = sums or VertexSums(_alone), threading.local()
    model = getattr(model, "_orig_mod", model)  # compiling every copy would take a minute
    name, reason = type(model).__name__, None
    # Each thread adds in its own way.
    add, sums.add = sums.add, lambda values: here.add(values)  # noqa: PLW0108
    try:
        with torch.random.fork_rng(devices=[]):
            for vertices in (_SMALL, _LARGE):
                found: list[str] = []
                for seed in _SEEDS:
                    torch.default_generator.manual_seed(seed)
                    trial = _Trial(model, (vertices, features, undirected, weighted), sums, here)
                    found += filter(None, [trial.difference()])
                    if len(found) in (0, _OFTEN):
                        break
                reason = reason or trial.unchecked
                if len(found) == _OFTEN:
                    raise UnsupportedLayerError(
                        f"{name} mixes vertices: {found[0]} on two parts of a small graph than on "
                        "the whole, so training would depend on the partition; use normalisations "
                        "of docs/models.md, `worker.mean(h, dim=0)` or `worker.sum(h, dim=0)`, or "
                        f"{_SKIP}"
                    )
    except UnsupportedLayerError:
        raise
    except _CallError as error:
        reason = reason or str(error)
    except Exception as error:
        raise _refusal(name, f"the check itself raised {first_line(error)}") from error
    finally:
        sums.add = add
    return reason and f"Whether {name} mixes vertices was not checked, because {reason}."


def check_own_model(
    options: ModelOptions,
    features: int,
    classes: int,
    *,
    undirected: bool,
    weighted: bool,
    warns: bool = True,
) -> None:
    """Check a user's model as :func:`check_model` does; the built-in ones need none.

    `warns`: whether to print what could not be checked.
    """
    if not options.own:
        return
    with templates_removed():
        model = build_model(options, features, classes)
        why = check_model(model, features, undirected=undirected, weighted=weighted)
    if why is not None and warns:
        typer.echo(f"Warning: {why}", err=True)


def _refusal(name: str, why: str) -> UnsupportedLayerError:
    return UnsupportedLayerError(
        f"Whether {name} mixes vertices cannot be checked, because {why}; {_SKIP}"
    )


def _alone(values: Tensor) -> Tensor:
    return values


def _edges_of(part: Partition) -> _Edges:
    weights = part.edge_weights
    return torch.from_numpy(part.edges), None if weights is None else torch.from_numpy(weights)


class _OutOfStepError(Exception):
    pass


class _CallError(Exception):
    """A copy of the user's model cannot be called, or its results cannot be compared."""


class _End:
    def __init__(
        self, mine: "SimpleQueue[Any]", other: "SimpleQueue[Any]", *edges: Float32s
    ) -> None:
        self._mine, self._other, self._edges = mine, other, edges
        self._copied = edges[0].any(axis=0)

    def aggregate(self, rows: Float32s, direction: Direction, tensor_id: int = 0) -> Float32s:
        other: Float32s = self._swap((direction, tensor_id, rows.shape[1]), rows.copy())
        return self._edges[int(direction is Direction.BACKWARD)] @ other

    @property
    def copied_edges(self) -> Int64s:
        return np.stack(np.nonzero(self._edges[0][:, self._copied].T))

    def copies(self, rows: Float32s, direction: Direction) -> Float32s:
        forward, sent = direction is Direction.FORWARD, rows.copy()
        if not forward:
            sent = np.zeros((self._edges[0].shape[1], rows.shape[1]), np.float32)
            sent[self._copied] = rows
        other: Float32s = self._swap(("copies", direction, rows.shape[1]), sent)
        return other[self._copied] if forward else other

    def expected_traffic(self, _width: int, _direction: Direction) -> object:
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


class _WithoutNoise(TorchFunctionMode):
    def __torch_function__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
        if "dropout" in getattr(function, "__name__", ""):
            return args[0] if args else kwargs["input"]
        kwargs = {key: 0.0 if key == "dropout_p" else kwargs[key] for key in kwargs or ()}
        with torch.autocast("cpu", enabled=False):
            return function(*args, **kwargs)


def _user_code(function: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401
    """Call a user's code without dropout, and with the precision of the inputs."""
    try:
        with _WithoutNoise():
            return function(*arguments)
    except (UnsupportedLayerError, _OutOfStepError):
        raise
    except Exception as error:
        raise _CallError(f"a copy of it raised {first_line(error)}") from error


class _Trial:
    """A model on a random graph; `unchecked` says why a mode could not be checked, if any."""

    unchecked: str | None = None

    def __init__(
        self,
        model: nn.Module,
        data: tuple[int, int, bool, bool],
        sums: VertexSums,
        here: threading.local,
    ) -> None:
        vertices, features, undirected, weighted = data
        self._sums, self._here, self._boxes = sums, here, (SimpleQueue[Any](), SimpleQueue[Any]())
        self._vertices = vertices
        ends = torch.randint(vertices - 2, (2, vertices * 5 // 2)).numpy()
        # Weights with factors; of both directions the same.
        weights = np.exp(np.sin(ends).sum(axis=0)) if weighted else None
        graph = graph_from_edges(
            *ends, name="small", vertices=vertices, directed=not undirected, weights=weights
        )
        labels, nothing = np.zeros(vertices, np.int64), np.zeros((vertices, 1), np.float32)
        split = split_vertices(labels, seed=0)
        small = dataset_from_graph(graph, features=nothing, labels=labels, split=split)
        self._parts = list(partition_dataset(small, (np.arange(vertices) % 3 == 0) * 1))
        self._rows = [torch.from_numpy(part.vertices) for part in self._parts]
        (whole,) = partition_dataset(small, labels)
        self._whole = _edges_of(whole)
        here.add = _alone
        self._model = _user_code(copy.deepcopy, model).cpu()
        self._call, self._x = self._first_call(features)
        # Weights that begin with 0 or 1 would hide what they do later.
        _vary(self._model, 0.2)

    def _first_call(self, features: int) -> tuple[Callable[..., object], Tensor]:
        widths, errors = [features], []
        calls = [call for each in frameworks(self._model) for call in each.calls]
        if self._whole[1] is not None:
            calls += [lambda *named, call=call: call(*named[:-1], None) for call in calls]
        for module in self._model.modules():
            if isinstance(module, nn.modules.dropout._DropoutNd):
                module.p = 0.0
            if isinstance(getattr(module, "dropout", None), float):  # as of GATConv, or an LSTM
                module.dropout = 0.0
            # DGL refuses isolated vertices.
            getattr(module, "set_allow_zero_in_degree", bool)(True)
            width = getattr(module, "in_channels", getattr(module, "in_features", None))
            widths += [width] if isinstance(width, int) and width > 0 else []
        for dtype, width in product((torch.float, torch.double), dict.fromkeys(widths[:2])):
            self._model = self._model.float() if dtype is torch.float else self._model.double()
            # Larger numbers would saturate functions of sums over all vertices.
            x = torch.randn(self._vertices, width, dtype=dtype) * 10 ** (torch.rand(width) * 1.5)
            x = (x / 10 + torch.randn(width)) / 5
            x[self._rows[1]] = 2 * x[self._rows[1]] + 0.1
            for call in calls:
                # What a call changes must not reach the copies that are compared.
                called = copy.deepcopy(self._model)
                called.eval()
                try:
                    with torch.no_grad():
                        call(called, x, *self._whole)
                except Exception as error:
                    errors.append(error)
                else:
                    for name, module in self._model.named_modules():
                        if any(map(is_lazy, module.parameters(recurse=False))):
                            made = called.get_submodule(name)
                            module.__class__, module.__dict__ = type(made), vars(made)
                    return call, x
        raise _CallError(f"a copy of it raised {first_line(errors[0])}")

    def difference(self) -> str | None:
        runs = _in_threads(self._run_whole)
        try:
            runs += _in_threads(self._run_part)
        except _OutOfStepError:
            return "it makes other exchanges"
        except _CallError as error:
            why = f"{error}, on a part of a small graph but not on the whole"
            raise _refusal(type(self._model).__name__, why) from error
        for mode, whole, rounded, *parts in zip(_CALLS, *runs, strict=True):
            slopes = [each.abs().max() for key, each in whole.items() if key[0] == "gradients"]
            off = partial(_off, whole, _HIDDEN * max(map(float, slopes), default=0.0))
            noise = max(off(key, [rounded[key]]) for key in whole if key[0] != "seen")
            if noise > _DRAWN:
                self.unchecked = self.unchecked or f"in {mode} its results change from call to call"
                continue
            limit = max(_TOLERANCE, _TIMES * noise)
            differ = [key for key in whole if off(key, self._joined(key, whole, parts)) > limit]
            if any(kind != "seen" for kind, _, _ in differ):
                return f"in {mode} {differ[0][1]}"
        return None

    def _run_whole(self, roundings: int) -> list[_Found]:
        self._here.add, model = _alone, copy.deepcopy(self._model)
        _vary(model, roundings * _ROUNDING)
        return self._run(model, self._x, self._whole, torch.arange(self._vertices))

    def _run_part(self, number: int) -> list[_Found]:
        part, rows, model = self._parts[number], self._rows[number], copy.deepcopy(self._model)
        dense = torch.zeros(self._vertices, self._vertices)
        dense[tuple(self._whole[0])] = 1
        between = [each[rows][:, self._rows[1 - number]].numpy() for each in (dense.T, dense)]
        end = _End(self._boxes[number], self._boxes[1 - number], *between)
        self._here.add = end.add
        try:
            with RemoteSum(cast("Transport", end)) as remote:
                distribute(model, part, remote, vertex_sums=self._sums)
                return self._run(model, self._x[rows], _edges_of(part), rows)
        finally:
            end.leave()

    def _run(self, model: nn.Module, x: Tensor, edges: _Edges, rows: Tensor) -> list[_Found]:
        found: _Found = {}
        runs: list[_Found] = []
        _watch(model, lambda words, values: _note(found, "seen", words, values))
        for training in _CALLS.values():
            model.train(training)
            model.zero_grad()
            outputs = _user_code(self._call, model, x, *edges)
            drawn, loss = torch.Generator().manual_seed(0), torch.zeros(())
            tensors = _note(found, "outputs", "it has another output", outputs)
            for each in tensors:
                if each.shape[:1] == rows.shape:
                    weights = torch.randn(self._vertices, *each.shape[1:], generator=drawn)[rows]
                else:
                    weights = torch.randn(each.shape, generator=drawn) * len(rows) / self._vertices
                loss = loss + (each * weights).sum()
            if loss.requires_grad and self._vertices == _SMALL:
                _user_code(loss.backward)
            for name, buffer in model.named_buffers():
                _note(found, "buffers", f"it has another {name}", buffer)
            for name, weight in reversed(list(model.named_parameters())):
                gradient = torch.zeros_like(weight) if weight.grad is None else weight.grad
                _note(found, "gradients", f"it has another gradient of {name}", gradient)
            if not tensors:
                raise _CallError("it returns no tensor of numbers")
            if not all(each.isfinite().all() for key, each in found.items() if key[0] in _RESULTS):
                raise _CallError("it computes numbers that are not finite")
            runs.append(dict(found))
            found.clear()
        return runs

    def _joined(self, key: _Key, whole: _Found, parts: list[_Found]) -> list[Tensor]:
        found, expected = [part[key] for part in parts if key in part], whole[key]
        if key[0] == "gradients":
            return [found[0] + found[1]]
        shapes = [(n, *expected.shape[1:]) for n in (self._vertices, *map(len, self._rows))]
        if [each.shape for each in (expected, *found)] == shapes:
            return [torch.cat(found)[torch.cat(self._rows).argsort()]]
        if len(found) == len(parts) and all(each.shape == expected.shape for each in found):
            return found
        # Outputs must have a row per vertex, or be the same everywhere.
        return [torch.full_like(expected, torch.nan)] if key[0] == "outputs" else []


@torch.no_grad()
def _vary(model: nn.Module, share: float) -> None:
    drawn = torch.Generator().manual_seed(0)
    for weights in filter(Tensor.is_floating_point, model.parameters()):
        size = weights.square().mean().sqrt()
        noise = torch.randn(weights.shape, generator=drawn)
        weights.add_(share * (size if size > 0 else 1) * noise)


def _watch(model: nn.Module, note: Callable[[str, object], object]) -> None:
    inside: tuple[str, ...] = ()
    known = frameworks(model)
    for name, module in model.named_modules():
        if not name or name.startswith(inside) or isinstance(module, torch.jit.ScriptModule):
            continue
        if any(each.is_layer(module) for each in known) and type(module).__name__ != "GINConv":
            # On parts it calls its own modules with other rows.
            inside = (*inside, f"{name}.")

        def after(
            module: nn.Module, inputs: object, named: object, outputs: object, name: str = name
        ) -> None:
            called = called_by(name, module)
            note(f"{called} gets another input", (inputs, named))
            note(f"{called} has another output", outputs)

        module.register_forward_hook(after, with_kwargs=True)


def _note(found: _Found, kind: str, words: str, values: object) -> list[Tensor]:
    tensors = [each for each in tree_flatten(values)[0] if isinstance(each, Tensor)]
    tensors = [view_as_real(each.resolve_conj()) if each.is_complex() else each for each in tensors]
    tensors = [each.to_dense() for each in tensors if each.is_floating_point() and each.numel()]
    for index, each in enumerate(tensors):
        found.setdefault((kind, words, index), each.detach().clone())
    return tensors


def _off(whole: _Found, steepest: float, key: _Key, others: list[Tensor]) -> float:
    """Return the largest difference of a tensor from others, by its size."""
    expected = whole[key]
    largest = float(expected.nan_to_num(0, 0, 0).abs().max())
    size = max(largest, 1e-6, steepest if key[0] == "gradients" else 0.0)
    # A number that is missing on one side only differs without a limit.
    apart = [(each - expected).where(each != expected, 0).abs().max() for each in others]
    return max([float(each.nan_to_num(torch.inf)) / size for each in apart], default=0.0)


def _in_threads(work: Callable[[int], list[_Found]]) -> list[list[_Found]]:
    """Return what two threads return; an error of one's own comes before that of the other."""
    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(work, number) for number in range(2)]
    futures.sort(key=lambda each: isinstance(each.exception(), _OutOfStepError))
    return [each.result() for each in futures]
