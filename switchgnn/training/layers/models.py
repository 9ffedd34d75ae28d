"""The models of `switchgnn train`: those of PyTorch Geometric, and the user's own."""

import importlib.util
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn.models import GCN, GIN, GraphSAGE

from switchgnn.planner.lanes import USUAL_WIDTH
from switchgnn.training.errors import TrainingError, UnsupportedLayerError
from switchgnn.training.gradients import GradientSums
from switchgnn.training.layers.copied import CopiedLayer
from switchgnn.training.layers.dropout import drop_by_vertex
from switchgnn.training.layers.norms import VertexSums, normalise_over_all
from switchgnn.training.layers.pyg_layers import PYG, own_code
from switchgnn.training.layers.summed import (
    Framework,
    Make,
    SummedLayer,
    called_by,
    local_edges,
    local_weights,
    require_sum,
)
from switchgnn.training.options import ModelOptions, model_name
from switchgnn.training.partition import Partition
from switchgnn.training.sums import KeptSum, LocalSum, NeighbourSum, RemoteSum

# By the names of `shape.MODELS`.
_BUILT = {"gcn": GCN, "sage": GraphSAGE, "gin": GIN}


def build_model(options: ModelOptions, features: int, classes: int) -> nn.Module:
    """Build a PyG model, or the one that a user's file defines."""
    if options.own:
        return _own_model(options.model, features, classes)
    model: nn.Module = _BUILT[model_name(options.model)](
        in_channels=features,
        hidden_channels=options.hidden,
        num_layers=options.layers,
        out_channels=classes,
        dropout=options.dropout,
    )
    return model


def exchanged_widths(
    options: ModelOptions, features: int, classes: int, epochs: int, *, kept: bool
) -> Counter[int]:
    """Count the exchanges of all epochs, forward and backward, by the elements of a row.

    A layer sums its inputs or the mapped ones, whichever are narrower (`SummedLayer.sums_first`),
    and exchanges inputs that are `kept` once, as soon as that pays (`KeptSum`).
    """
    if options.own:
        return Counter({USUAL_WIDTH: epochs})
    sizes = [features, *[options.hidden] * (options.layers - 1), classes]
    # The map of a GIN layer is not linear.
    summed = sizes[:-1] if options.model == "gin" else [min(pair) for pair in pairwise(sizes)]
    found = Counter(2 * epochs * summed[1:])
    # Inputs need no gradient, so their sums travel once, and mapped rows twice.
    first_sums = options.model == "gin" or features <= 2 * sizes[1]
    mapped = 0 if first_sums else min(epochs, -(-features // (2 * sizes[1])) if kept else epochs)
    found[sizes[1]] += 2 * mapped
    found[features] += min(1, epochs - mapped) if kept else epochs - mapped
    return +found


def _own_model(spec: str, features: int, classes: int) -> nn.Module:
    path, name = spec.rsplit(":", 1)
    with own_code(spec, loading=True):
        model = _load(path, name)(features, classes)
    if not isinstance(model, nn.Module):
        raise TrainingError(f"{spec} returned {type(model).__name__}, not a torch.nn.Module.")
    return model


def _load(path: str, name: str) -> Callable[[int, int], nn.Module]:
    found = importlib.util.spec_from_file_location("switchgnn_own_model", path)
    if found is None or found.loader is None:
        raise FileNotFoundError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(found)
    # PyG reads the source of layers there.
    sys.modules[found.name] = module
    found.loader.exec_module(module)
    made: Callable[[int, int], nn.Module] = getattr(module, name)
    return made


def frameworks(model: nn.Module) -> list[Framework]:
    """Return PyG, and DGL if it is imported; first those with layers in the model."""
    found = [PYG]
    if "dgl" in sys.modules:
        from switchgnn.training.layers.dgl_layers import DGL  # noqa: PLC0415

        found.append(DGL)
    return sorted(found, key=lambda each: not any(map(each.is_layer, model.modules())))


def _layers_of(model: nn.Module) -> Iterator[tuple[str, nn.Module, Framework]]:
    known = frameworks(model)
    for name, module in model.named_modules():
        for framework in known:
            if framework.is_layer(module):
                yield name, module, framework


def distribute(
    model: nn.Module,
    partition: Partition,
    remote: RemoteSum,
    *,
    seed: int = 0,
    precompute: bool = True,
    vertex_sums: VertexSums | None = None,
) -> nn.Module:
    """Make a model of PyG or DGL layers compute on a partition what it does on the whole graph.

    Call the model with the partition's ``edges``, or their graph, afterwards. The model is changed
    in place; its parameters keep their names and shapes. ``vertex_sums`` are for normalisations;
    None: over the process group.
    """
    copied = None
    if not check_layers(model, copies=True) and partition.workers > 1:
        copied = remote.transport.copied_edges
        check_layers(model, copies=copied is not None)
    if partition.workers > 1:
        own = VertexSums(GradientSums(attending=remote.attending).add)
        normalise_over_all(model, vertex_sums or own)
    rows, others = len(partition.vertices), remote if partition.workers > 1 else None
    if copied is not None and partition.partial is not None:
        raise UnsupportedLayerError(
            "Layers that need the rows of neighbours cannot be trained with edge weights that are "
            "no products of factors, as workers send partial sums then: leave one of both out."
        )
    order = torch.arange(rows)
    views = [partition.without_weights()] + [partition] * (partition.edge_weights is not None)
    sums = [_PartSums(view, others) for view in views]
    for name, module, framework in _layers_of(model):
        called = called_by(name, module)
        inputs = partial(framework.rows, called, module, partition)
        make = _maker(name, module, framework, copies=True)
        if make is None:
            if copied is not None:
                kept = KeptSum(remote.ledger) if precompute else None
                copying = CopiedLayer(called, module.forward, inputs, remote, copied, kept=kept)
                object.__setattr__(module, "forward", copying.forward)
            continue
        remote.tensor_ids[module] = remote.new_tensor_id()
        remote.names[remote.tensor_ids[module]] = name or type(module).__name__
        forward = []
        for view, sums_of in zip(views, sums, strict=True):
            layer = make(module, view, order)
            kept = KeptSum(remote.ledger) if precompute and layer.constant else None
            summed = partial(sums_of(layer.loops), tensor_id=remote.tensor_ids[module])
            forward.append(_Whole(layer, inputs, summed, kept).forward)
        either = partial(_either, framework.weighs, forward)
        object.__setattr__(module, "forward", either if len(forward) > 1 else forward[0])
    drop_by_vertex(model, torch.from_numpy(partition.vertices), seed)
    return model


def _either(weighs: Any, forward: Any, *arguments: object, **named: object) -> Any:  # noqa: ANN401
    """Call the forward pass without weights of edges, or that with them."""
    return forward[weighs(*arguments, **named)](*arguments, **named)


class _PartSums:
    """The sums over neighbours of a part, by the weight of self-loops."""

    def __init__(self, part: Partition, remote: RemoteSum | None) -> None:
        self._part, self._remote = part, remote
        self._made: dict[float, NeighbourSum] = {}
        self._partial: LocalSum | None = None
        if part.partial is not None:
            shape = (part.partial_sums, len(part.vertices))
            self._partial = LocalSum(part.partial, shape, part.partial_weights)

    def __call__(self, loops: float) -> NeighbourSum:
        if loops not in self._made:
            part, rows = self._part, len(self._part.vertices)
            weights = local_weights(part, loops=loops)
            local = LocalSum(local_edges(part, loops=loops), (rows, rows), weights)
            self._made[loops] = NeighbourSum(local, self._remote, self._partial)
        return self._made[loops]


def check_layers(model: nn.Module, *, copies: bool) -> bool:
    """Refuse the models that :func:`distribute` refuses, in advance.

    Returns whether all layers are sums; the others need `copies` of rows.
    """
    # All are checked, as a later one may be refused.
    made = [_maker(*each, copies=copies) for each in _layers_of(model)]
    return all(made)


def _maker(name: str, layer: nn.Module, framework: Framework, *, copies: bool) -> Make | None:
    """Return what makes a sum of a layer; None: it is computed with `copies`."""
    if copies and framework.copies(layer) and isinstance(framework.check(name, layer), str):
        return None
    return require_sum(framework, name, layer)


class _Whole:
    """The forward pass of a layer over the whole graph."""

    def __init__(
        self,
        layer: SummedLayer,
        rows: Callable[..., Tensor],
        sums: Callable[..., Tensor],
        kept: KeptSum | None,
    ) -> None:
        self._layer = layer
        self._rows = rows
        self._sum = sums
        self._kept = kept

    def forward(self, *arguments: object, **named: object) -> Tensor:
        """Return [n, F'], given what the layer is called with."""
        x = self._rows(*arguments, **named)
        return self._layer.after(x, self._mapped_sums(x))

    def _mapped_sums(self, inputs: Tensor) -> Tensor:
        kept = None if inputs.requires_grad else self._kept
        sums = None if kept is None else kept.of(inputs)
        if sums is not None:
            return self._layer.map(sums)
        if not torch.is_grad_enabled():
            # Hidden rows would look like constant inputs.
            kept = None
        rows = self._layer.before(inputs)
        if self._layer.sums_first(rows) or (kept is not None and kept.pays(rows.shape[1])):
            # Kept sums serve all later passes, which may exchange other columns.
            sums = self._sum(rows, whole=kept is not None)
            if kept is not None:
                kept.keep(sums)
            return self._layer.map(sums)
        mapped = self._layer.map(rows)
        if kept is not None:
            kept.sent(mapped.shape[1] * (1 + mapped.requires_grad))
        return self._sum(mapped)
