"""The models of `switchgnn train`: those of PyTorch Geometric, and the user's own."""

import importlib.util
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch_geometric.nn.models import GCN, GIN, GraphSAGE

from switchgnn.planner.base.lanes import USUAL_WIDTH
from switchgnn.training.base.errors import TrainingError, UnsupportedLayerError
from switchgnn.training.base.options import ModelOptions, model_name
from switchgnn.training.data.partition import Partition
from switchgnn.training.exchange.gradients import GradientSums
from switchgnn.training.exchange.sums import KeptSum, LocalSum, NeighbourSum, RemoteSum, ReplicaSum
from switchgnn.training.layers.copied import CopiedForward
from switchgnn.training.layers.dropout import Draws, drop_by_vertex
from switchgnn.training.layers.forward import Replaced
from switchgnn.training.layers.halo import Halo, PartEdges, copies_over
from switchgnn.training.layers.norms import VertexSums, normalise_over_all
from switchgnn.training.layers.pyg_layers import PYG, own_code
from switchgnn.training.layers.rows import VertexRows
from switchgnn.training.layers.summed import (
    Framework,
    Make,
    SummedLayer,
    View,
    called_by,
    has_plain_maps,
    local_edges,
    local_weights,
    require_sum,
)

_BUILT = {"gcn": GCN, "sage": GraphSAGE, "gin": GIN}


def build_model(options: ModelOptions, features: int, classes: int) -> nn.Module:
    """Build a PyG model, or the one that a user's file defines."""
    if options.own:
        spec = options.model
        path, name = spec.rsplit(":", 1)
        with own_code(spec, loading=True):
            model = _load(path, name)(features, classes)
        if not isinstance(model, nn.Module):
            raise TrainingError(f"{spec} returned {type(model).__name__}, not a torch.nn.Module.")
        return model
    built: nn.Module = _BUILT[model_name(options.model)](
        in_channels=features,
        hidden_channels=options.hidden,
        num_layers=options.layers,
        out_channels=classes,
        dropout=options.dropout,
    )
    return built


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
    rows: VertexRows | None = None,
) -> nn.Module:
    """Make a model of PyG or DGL layers compute on a partition what it does on the whole graph.

    Call the model with the partition's ``edges``, or their graph, afterwards. The model is changed
    in place; its parameters keep their names and shapes. ``vertex_sums`` are for normalisations;
    None: over the process group. ``rows`` fetch the copies of rows that some layers need; None: the
    transport does, if it can.
    """
    others = remote if partition.workers > 1 else None
    copies, copying = not check_layers(model, copies=True), None
    if copies and others is not None:
        copying = (rows and rows.copying()) or copies_over(others)
        check_layers(model, copies=copying is not None, in_script=rows is not None)
    if copies and partition.partial is not None:
        raise UnsupportedLayerError(
            "Layers that need the rows of neighbours cannot be trained with edge weights that are "
            "no products of factors, as workers send partial sums then: leave one of both out."
        )
    vertices = torch.from_numpy(partition.vertices)
    add = None
    if others is not None:
        whole = vertex_sums or VertexSums(GradientSums(attending=remote.attending).add, partition)
        normalise_over_all(model, whole)
        add = whole.add
    drop_by_vertex(model, vertices, seed)
    sums, inside = PartSums(PartEdges(partition, add), others), ""
    halo = Halo(partition, copying) if copies else None
    for number, (name, module, framework) in enumerate(_layers_of(model)):
        if inside and name.startswith(inside):
            continue
        called, keeps = called_by(name, module), partial(KeptSum, remote.ledger)
        make = _maker(name, module, framework, copies=True)
        if make is not None:
            remote.tensor_ids[module] = remote.new_tensor_id()
            tensor_id = remote.tensor_ids[module]
            remote.names[tensor_id] = name or type(module).__name__
            inputs = partial(framework.rows, called)
            keep = keeps if precompute else None
            SummedForward(module, make, inputs, sums, keep=keep, tensor_id=tensor_id)
        elif halo is not None:
            # It calls its own modules with more rows and edges.
            inside, draws = f"{name}.", Draws(vertices, (seed + 1) * 1000 - 1 - number)
            kept = keeps() if precompute else None
            CopiedForward(module, called, sums.edges, halo, draws, kept=kept)
    return model


class PartSums:
    """The sums over neighbours of a part, by the view of its edges and the weight of self-loops."""

    def __init__(self, edges: PartEdges, remote: RemoteSum | None) -> None:
        self.edges = edges
        self._remote = remote
        self._made: dict[tuple[View, float], NeighbourSum] = {}

    def __call__(self, view: View, loops: float) -> NeighbourSum:
        """Return what adds up."""
        if (view, loops) not in self._made:
            part, rows = view.of(self.edges.partition), len(self.edges.partition.vertices)
            weights = local_weights(part, loops=loops)
            local = LocalSum(local_edges(part, loops=loops), (rows, rows), weights)
            partial_sums = None
            if part.partial is not None:
                shape = (part.partial_sums, rows)
                partial_sums = LocalSum(part.partial, shape, part.partial_weights)
            made = NeighbourSum(local, self._remote, partial_sums, against=view.against)
            if part.replicas is not None:
                made = ReplicaSum(local, self._remote, torch.from_numpy(part.replicas[0]))
            self._made[view, loops] = made
        return self._made[view, loops]


def check_layers(model: nn.Module, *, copies: bool, in_script: bool = False) -> bool:
    """Refuse the models that :func:`distribute` refuses, in advance.

    Returns whether all layers are sums; the others need `copies` of rows.
    """
    for name, parameter in model.named_parameters():
        if is_lazy(parameter):
            raise UnsupportedLayerError(
                f"{name} has no size yet: give the number of features in place of -1, or call the "
                "model once before it is wrapped."
            )
    # All are checked, as a later one may be refused.
    made = [_maker(*each, copies=copies, in_script=in_script) for each in _layers_of(model)]
    return all(made)


def _maker(
    name: str, layer: nn.Module, framework: Framework, *, copies: bool, in_script: bool = False
) -> Make | None:
    """Return what makes a sum of a layer; None: it is computed with `copies`."""
    if copies and framework.copies and isinstance(framework.check(name, layer), str):
        return None
    return require_sum(framework, name, layer, in_script=in_script)


class SummedForward(Replaced):
    """The forward pass of a layer that is a sum over neighbours, those of other workers too.

    `make`: returns the layer as a sum. `rows`: see ``Framework``. `keep`: makes what keeps the sums
    of inputs that do not change; None: they are made each time.
    """

    def __init__(
        self,
        module: nn.Module,
        make: Make,
        rows: Callable[..., tuple[Tensor, View]],
        sums: PartSums,
        *,
        keep: Callable[[], KeptSum] | None,
        tensor_id: int,
    ) -> None:
        super().__init__(module)
        self._make, self._rows, self._sums, self._tensor_id = make, rows, sums, tensor_id
        self._kept = None if keep is None else defaultdict[View, KeptSum](keep)
        self._order = torch.arange(len(sums.edges.partition.vertices))
        # called before parameters of the layer are used, often after its exchange
        self.before_weights: Callable[[], None] = lambda: None
        self.moved()
        self._as_sum(View())  # refuses what it cannot be made of before it is called

    def moved(self) -> None:  # noqa: D102
        self._layers: dict[tuple[View, bool], SummedLayer] = {}

    def _as_sum(self, view: View) -> SummedLayer:
        which = view, has_plain_maps(self.module)
        if which not in self._layers:
            part = view.of(self._sums.edges.partition)
            self._layers[which] = self._make(self.module, part, self._order)
        return self._layers[which]

    def compute(self, *arguments: object, **named: object) -> Tensor:
        """Return [n, F'], given what the layer is called with."""
        x, view = self._rows(self.module, self._sums.edges, *arguments, **named)
        layer = self._as_sum(view)
        sums = self._mapped_sums(x, layer, view)
        self.before_weights()
        return layer.after(x, sums)

    def _mapped_sums(self, inputs: Tensor, layer: SummedLayer, view: View) -> Tensor:
        summed = partial(self._sums(view, layer.loops), tensor_id=self._tensor_id)
        kept = None
        if self._kept is not None and layer.constant and not inputs.requires_grad:
            kept = self._kept[view]
        sums = None if kept is None else kept.of(inputs)
        if sums is not None:
            self.before_weights()
            return layer.map(sums)
        if not torch.is_grad_enabled():
            # Hidden rows would look like constant inputs.
            kept = None
        if not layer.constant:
            self.before_weights()
        rows = layer.before(inputs)
        if layer.sums_first(rows) or (kept is not None and kept.pays(rows.shape[1])):
            # Kept sums serve all later passes, which may exchange other columns.
            sums = summed(rows, whole=kept is not None)
            if kept is not None:
                kept.keep(sums)
            self.before_weights()
            return layer.map(sums)
        self.before_weights()
        mapped = layer.map(rows)
        if kept is not None:
            kept.sent(mapped.shape[1] * (1 + mapped.requires_grad))
        return summed(mapped)
