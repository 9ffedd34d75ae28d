"""What people do with models (the table of docs/models.md) gives the result of one process."""

import copy
import io
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn
from torch.nn.utils import parametrizations, prune
from torch.optim.swa_utils import AveragedModel
from torch.utils.checkpoint import checkpoint

from switchgnn.host.direct.kinds import copy_schedules
from switchgnn.training.base.errors import TrainingError
from switchgnn.training.data.partition import partition_dataset
from switchgnn.training.exchange.sums import RemoteSum
from switchgnn.training.layers.dropout import begin_epoch
from switchgnn.training.layers.models import check_layers, distribute
from tests.host.direct.crew import on_hub
from tests.training.layers.test_layers import NARROW, WIDE, make_data, whole_edges
from tests.training.layers.test_norms import WORKERS, assigned
from tests.training.test_wrap import workers_run

HIDDEN = 6
DATA = make_data(5, directed=False)
# All of it, as the part of the only worker.
(PART,) = partition_dataset(DATA, np.zeros(DATA.vertices, int))
X, EDGES = torch.from_numpy(PART.features), torch.from_numpy(PART.edges)


class Net(nn.Module):
    def __init__(self, first=pyg.GCNConv, second=pyg.SAGEConv, between=None, **options):
        super().__init__()
        self.first, self.second = first(WIDE, HIDDEN, **options), second(HIDDEN, NARROW)
        self.between = between or nn.Tanh()

    def forward(self, x, edges):
        return self.second(self.between(self.first(x, edges)), edges)


class Reversed(Net):
    def forward(self, x, edges):
        return self.second(self.first(x, edges).tanh(), edges.flip(0))


class Again(Net):
    """Computes its first half again in the backward pass."""

    reentrant = False

    def half(self, x, edges):
        return self.between(self.first(x, edges))

    def forward(self, x, edges):
        h = checkpoint(self.half, x, edges, use_reentrant=self.reentrant)
        return self.second(h, edges)


class AgainFromInputs(Again):
    reentrant = True


def step(model, x, edges, targets):
    """Return outputs, and gradients, of which every worker has a share."""
    outputs = model(x, edges)
    (outputs * targets).sum().backward()
    return [outputs], [each.grad for each in model.parameters()]


def penalised(model, x, edges, targets):
    x = x.clone().requires_grad_()
    loss = (model(x, edges) * targets).square().sum()
    (slope,) = torch.autograd.grad(loss, x, create_graph=True)
    (loss + slope.square().sum()).backward()
    return [slope, x.grad], [each.grad for each in model.parameters()]


def copied(model, *given):
    return step(copy.deepcopy(model), *given)


def averaged(model, x, edges, targets):
    mean = AveragedModel(model)
    step(model, x, edges, targets)
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(3)
    mean.update_parameters(model)
    return [mean(x, edges), model(x, edges)], []


def saved(model, x, edges, targets):
    """A saved model is one of PyG alone: here it computes on the part."""
    file = io.BytesIO()
    torch.save(model, file)
    found = torch.load(io.BytesIO(file.getvalue()), weights_only=False)
    assert (
        "forward" not in vars(found.first) or vars(found.first)["forward"].__self__ is found.first
    )
    distinct = found(x, edges)
    assert len(x) == 40 or not torch.allclose(distinct, model(x, edges))
    return step(model, x, edges, targets)


def reduced(kind):
    def use(model, x, edges, targets):
        model = model.to(kind)
        outputs, gradients = step(model, x.to(kind), edges, targets.to(kind))
        assert {each.dtype for each in (*outputs, *gradients)} == {kind}
        return [outputs[0].float()], [each.float() for each in gradients]

    return use


def autocast(model, x, edges, targets):
    with torch.autocast("cpu", torch.bfloat16):
        outputs = model(x, edges)
    (outputs.float() * targets).sum().backward()
    return [outputs.float()], [each.grad for each in model.parameters()]


def hooked(layers):
    """Return what changes the inner maps of layers, before a step."""

    def changing(change):
        def use(model, *given):
            for name in layers:
                change(model.get_submodule(name))
            step(model, *given)
            return step(model, *given)

        return use

    return changing


def pruned(linear):
    mask = (torch.arange(linear.weight.numel()) % 3 > 0).view_as(linear.weight)
    prune.custom_from_mask(linear, "weight", mask)


def squared_outputs(linear):
    linear.register_forward_hook(lambda _module, _inputs, outputs: outputs.square())


GRAPHS = (pyg.GraphConv, pyg.SAGEConv)
inner, of_graphs = hooked(["first.lin", "second.lin_l"]), hooked(["first.lin_rel", "second.lin_r"])
BATCH = {"between": nn.Sequential(nn.BatchNorm1d(HIDDEN), nn.Tanh())}
GAT = (pyg.GATConv, pyg.SAGEConv)
SAME = {
    "a step": (Net, step),
    "recomputation": (Again, step),
    "recomputation, reentrant": (
        AgainFromInputs,
        lambda model, x, *given: step(model, x.clone().requires_grad_(), *given),
    ),
    "second derivatives": (Net, penalised),
    "second derivatives, norm": (lambda: Net(**copy.deepcopy(BATCH)), penalised),
    "second derivatives, copies": (lambda: Net(*GAT), penalised),
    "edges reversed": (Reversed, step),
    "edges reversed outside": (Net, lambda model, x, edges, y: step(model, x, edges.flip(0), y)),
    "edges in another order": (Net, lambda net, x, edges, y: step(net, x, edges.flip(1), y)),
    "DirGNNConv": (
        lambda: Net(lambda *sizes: pyg.DirGNNConv(pyg.SAGEConv(*sizes, root_weight=False))),
        step,
    ),
    "flow from target to source": (lambda: Net(flow="target_to_source"), step),
    "a copy": (Net, copied),
    "a copy, with copies of rows": (lambda: Net(*GAT, **copy.deepcopy(BATCH)), copied),
    "a moving average": (lambda: Net(*GAT), averaged),
    "a saved model": (Net, saved),
    "pruned": (Net, inner(pruned)),
    "pruned, of graphs": (lambda: Net(*GRAPHS), of_graphs(pruned)),
    "weight norm": (Net, inner(parametrizations.weight_norm)),
    "weight norm by a hook": (Net, inner(nn.utils.weight_norm)),
    "weight norm, of graphs": (lambda: Net(*GRAPHS), of_graphs(parametrizations.weight_norm)),
    "hooks": (Net, inner(squared_outputs)),
    "hooks, of graphs": (lambda: Net(*GRAPHS), of_graphs(squared_outputs)),
    "float64": (Net, reduced(torch.float64)),
    "bfloat16": (Net, reduced(torch.bfloat16)),
    "float16": (Net, reduced(torch.float16)),
    "bfloat16, with copies": (lambda: Net(*GAT), reduced(torch.bfloat16)),
    "autocast": (Net, autocast),
    "autocast, with copies": (lambda: Net(*GAT), autocast),
}
COARSE = {name: 4e-2 for name in SAME if name.startswith(("bfloat16", "autocast", "float16"))}
DIRECTED = ("edges reversed", "edges reversed outside", "DirGNNConv", "flow from target to source")


def together(make, use, data, targets, *, state=None, epoch=None, rows_of=None):
    """Return what `use` returns for all workers; `rows_of` gives the rows of other vertices."""
    ends = None
    if rows_of is None and not check_layers(make(), copies=True):
        ends = on_hub(copy_schedules(data.graph, assigned(data.vertices), WORKERS))

    def work(worker):
        model = make()
        model.load_state_dict(state or model.state_dict())
        if rows_of is not None:
            worker._rows = rows_of(worker.number)
        worker.wrap(model, unchecked=True)
        if epoch is not None:
            begin_epoch(model, seed=0, epoch=epoch, worker=worker.number)
        part = worker.data
        return use(model, part.x, part.edge_index, targets[part.n_id]), part.n_id

    found = workers_run(data, work, ends)
    ids = torch.cat([ids for _, ids in found])
    rows = zip(*(rows for (rows, _), _ in found), strict=True)
    shares = zip(*(shares for (_, shares), _ in found), strict=True)
    return [torch.cat(each)[ids.argsort()].detach() for each in rows], [sum(e) for e in shares]


def off(expected, found):
    """Return the largest difference by the size of a tensor, or by 1 % of the largest one's."""
    expected, found = [*expected[0], *expected[1]], [*found[0], *found[1]]
    least = 0.01 * max(float(each.abs().max()) for each in expected)
    pairs = zip(expected, found, strict=True)
    return max(float((a - b).abs().max() / a.abs().max().clamp(min=least)) for a, b in pairs)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of the older weight norm
@pytest.mark.parametrize("name", SAME)
def test_the_result_is_that_of_one_process(name):
    make, use = SAME[name]
    data = make_data(5, directed=name in DIRECTED)
    torch.manual_seed(4)
    targets, alone = torch.randn(data.vertices, NARROW), make()
    state = copy.deepcopy(alone.state_dict())
    expected = use(alone, torch.from_numpy(data.features), whole_edges(data), targets)
    assert off(expected, together(make, use, data, targets, state=state)) < COARSE.get(name, 2e-5)


def test_a_sum_along_the_edges_in_place_of_against_them_is_noticed():
    data = make_data(5, directed=True)
    state, targets = Net().state_dict(), torch.ones(data.vertices, NARROW)
    x, edges = torch.from_numpy(data.features), whole_edges(data)
    along = step(Net(), x, edges, targets)
    assert off(along, together(Reversed, step, data, targets, state=state)) > 1e-2


class Maximum(pyg.SimpleConv):
    """Drops units of rows, those of copies as their owners do, and takes maxima."""

    def __init__(self, wide, narrow):
        super().__init__(aggr="max")
        self.lin, self.drop = nn.Linear(wide, narrow), nn.Dropout(0.5)

    def forward(self, x, edge_index):
        return super().forward(self.drop(self.lin(x)), edge_index)


DROPOUTS = {
    "Dropout": lambda: Net(between=nn.Dropout(0.5)),
    "AlphaDropout": lambda: Net(between=nn.AlphaDropout(0.5)),
    "GAT": lambda: Net(lambda *sizes: pyg.GATConv(*sizes, dropout=0.5)),
    "TransformerConv": lambda: Net(lambda *sizes: pyg.TransformerConv(*sizes, dropout=0.5)),
    "edge weights": lambda: Net(second=lambda *_: pyg.APPNP(2, 0.1, dropout=0.5)),
    "of copies": lambda: Net(second=Maximum),
}


@pytest.mark.parametrize("name", DROPOUTS)
def test_dropout_is_the_same_on_any_number_of_workers(name):
    make = DROPOUTS[name]
    alone = make()
    state = copy.deepcopy(alone.state_dict())
    targets = torch.randn(DATA.vertices, HIDDEN if name == "edge weights" else NARROW)
    with RemoteSum(SimpleNamespace()) as remote:
        distribute(alone, PART, remote)
        begin_epoch(alone, seed=0, epoch=3, worker=0)
        expected = step(alone, X, EDGES, targets)
    assert off(expected, together(make, step, DATA, targets, state=state, epoch=3)) < 2e-5
    assert off(expected, together(make, step, DATA, targets, state=state, epoch=4)) > 1e-2


@pytest.mark.parametrize("kind", [Again, AgainFromInputs])
def test_recomputation_draws_the_same_units(kind):
    targets = torch.randn(DATA.vertices, NARROW)
    state, found = Net().state_dict(), []
    for each in (Net, kind):
        model = each(between=nn.Dropout(0.5))
        model.load_state_dict(state)
        with RemoteSum(SimpleNamespace()) as remote:
            distribute(model, PART, remote)
            found += [step(model, X.clone().requires_grad_(), EDGES, targets) for _ in range(2)]
    assert off(found[0], found[2]) < 2e-5
    assert off(found[1], found[3]) < 2e-5
    assert off(found[0], found[1]) > 1e-2


def test_dropout_stays_a_dropout():
    """For Monte-Carlo dropout and schedules of p, as in one process."""

    def use(model, x, edges, _targets):
        model.eval()
        assert [type(each) for each in model.modules() if isinstance(each, nn.Dropout)] == [Own]
        outputs = [model(x, edges)]
        model.between.train()
        outputs += [model(x, edges), model(x, edges)]
        model.between.p = 0.0
        return [*outputs, model(x, edges)], []

    made, _ = together(lambda: Net(between=Own(0.5)), use, DATA, torch.zeros(DATA.vertices))
    off_, first, second, none = made
    assert torch.equal(off_, none)
    assert not torch.equal(first, second)
    assert not torch.equal(first, off_)


class Own(nn.Dropout):
    """A kind of one's own, which other code looks for."""


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_model_calls_the_layers(backend):
    model = Net(pyg.GATConv, between=nn.Dropout(0.0))
    expected = model(X, EDGES)
    torch.compiler.reset()
    with RemoteSum(SimpleNamespace()) as remote:
        after = torch.compile(distribute(copy.deepcopy(model), PART, remote), backend=backend)
        assert torch.allclose(after(X, EDGES), expected, atol=1e-5)
        before = distribute(torch.compile(model, backend=backend), PART, remote)
        assert torch.allclose(before(X, EDGES), expected, atol=1e-5)
    torch.compiler.reset()


def test_functional_dropout_is_as_likely():
    make = lambda: Net(between=lambda h: nn.functional.dropout(h, 0.3))  # noqa: E731

    def use(model, x, edges, _targets):
        return [model.between(model.first(x, edges))], []

    (rows,), _ = together(make, use, DATA, torch.zeros(DATA.vertices))
    assert 0.15 < float((rows == 0).float().mean()) < 0.45


class Table(Net):
    def __init__(self, rows=40, *, sparse=False):
        super().__init__()
        self.table = nn.Embedding(rows, WIDE, sparse=sparse)

    def forward(self, ids, edges):
        return super().forward(self.table(ids), edges)


def test_a_table_of_learnt_rows_is_looked_up_by_id():
    targets, alone = torch.randn(DATA.vertices, NARROW), Table()
    expected = step(alone, torch.arange(DATA.vertices), whole_edges(DATA), targets)

    def work(worker):
        model, part = Table(), worker.data
        model.load_state_dict(alone.state_dict())
        worker.wrap(model, unchecked=True)
        return step(model, part.n_id, part.edge_index, targets[part.n_id])[1]

    gradients = [sum(each) for each in zip(*workers_run(DATA, work), strict=True)]
    assert off((gradients, []), (expected[1], [])) < 2e-5


def reduced_table(worker, part):
    model = worker.wrap(Table(sparse=True), unchecked=True)
    model(part.n_id, part.edge_index).sum().backward()
    worker.reduce(model)


REFUSED = {
    "rows for a part of": lambda worker, part: worker.wrap(Net(), unchecked=True)(
        part.x[1:], part.edge_index
    ),
    "lin.weight has no size yet: give the number": lambda worker, _: worker.wrap(
        pyg.Sequential("x, e", [(pyg.GCNConv(-1, 4), "x, e -> x")]), unchecked=True
    ),
    "The gradient of table.weight is sparse": reduced_table,
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_wrapped_or_reduced_is_refused(words):
    def work(worker):
        with pytest.raises(TrainingError, match=words):
            REFUSED[words](worker, worker.data)
        return True

    assert workers_run(DATA, work) == [True] * WORKERS
