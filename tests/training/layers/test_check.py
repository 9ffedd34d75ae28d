"""Models that mix vertices are found by running them, and others are left alone."""

import copy
import re
import threading

import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch_geometric.utils import degree, scatter

from switchgnn.training.base.errors import UnsupportedLayerError
from switchgnn.training.layers.check import check_model
from switchgnn.training.layers.norms import VertexSums
from tests.planner.helpers import reports
from tests.training.layers.test_norms import NORMS

FEATURES, HIDDEN, CLASSES = 12, 6, 5
MODELS = (pyg.models.GCN, pyg.models.GraphSAGE, pyg.models.GIN)


@pytest.fixture(autouse=True)
def _weights():
    torch.manual_seed(0)


class Net(nn.Module):
    """A model of two layers, with a module and a function between them."""

    kept = None

    def __init__(self, norm=None, between=lambda net, h, edges: h):
        super().__init__()
        self.first, self.norm = pyg.GCNConv(FEATURES, HIDDEN), norm or nn.Identity()
        self.second, self.between = pyg.SAGEConv(HIDDEN, CLASSES), between
        self.inner = pyg.GCNConv(HIDDEN, HIDDEN)

    def forward(self, x, edges):
        h = self.norm(self.first(x, edges)).relu()
        return self.second(self.between(self, h, edges), edges)


class Residual(Net):
    def forward(self, x, edges):
        h = self.first(x, edges)
        for _ in range(2):
            h = h + functional.dropout(self.first(x, edges).relu(), 0.5, self.training)
        return {"scores": self.second(h, edges), "both": (h.log_softmax(-1), "a word")}


class OnData(Net):
    def forward(self, data):
        return super().forward(data.x, data.edge_index)


class Gate(Net):
    """A module that mixes vertices, and is the identity before training."""

    def __init__(self):
        super().__init__(between=lambda net, h, _: h + net.gate.square() * h.mean(0))
        self.gate = nn.Parameter(torch.zeros(()))


class Halved(pyg.SAGEConv):
    def update(self, sums):
        return sums - sums.mean(0)


class Own(nn.Module):
    def forward(self, h):
        return h / h.norm()


class Forgetful(torch.autograd.Function):
    """An identity whose gradient depends on all vertices."""

    @staticmethod
    def forward(_ctx, rows):
        return rows.clone()

    @staticmethod
    def backward(_ctx, gradient):
        return gradient - gradient.mean(0)


class Reversed(Net):
    def forward(self, x, edges):
        return super().forward(x, edges.flip(0))


class Lower(pyg.models.GAT):
    def forward(self, x, edges):
        with torch.autocast("cpu", torch.bfloat16):
            return super().forward(x, edges).float()


class Double(Net):
    def forward(self, x, edges):
        return super().forward(x.double(), edges)


class Attending(Net):
    def __init__(self):
        super().__init__(between=lambda net, h, _: h + net.heads(h, h, h)[0])
        self.heads = nn.MultiheadAttention(HIDDEN, 2, dropout=0.5)


class Ended(Net):
    """A model with a function at its end."""

    def forward(self, x, edges):
        return self.between(self, self.second(self.first(x, edges), edges), edges)


def first(net, value):
    """Return the value of the first call of a model."""
    net.kept = value if net.kept is None else net.kept
    return net.kept


def last(net, value):
    """Return the value of the call before, or 0."""
    before, net.kept = net.kept, value
    return 0 if before is None else before


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, h):
        if self.training:
            self.seen = self.seen + h.detach().abs().max()
        return h


def check(model, features=FEATURES, *, undirected=True, sums=None):
    return check_model(model, features, undirected=undirected, sums=sums)


EXACT = {
    **{
        f"{kind.__name__}, {norm}, {jk}": (
            lambda kind=kind, norm=norm, jk=jk: kind(
                *(FEATURES, HIDDEN, 3, CLASSES), norm=norm, jk=jk, dropout=0.5, act="elu"
            )
        )
        for kind in MODELS
        for norm, jk in (("BatchNorm", None), ("LayerNorm", "cat"), ("GraphNorm", "lstm"))
    },
    **{name: (lambda make=make: Net(make())) for name, make in NORMS.items()},
    "torch's layer norm": lambda: Net(nn.LayerNorm(HIDDEN)),
    "several outputs": Residual,
    "data": OnData,
    "float64": lambda: Net().double(),
    "lazy": lambda: pyg.models.GCN(-1, HIDDEN, 2, CLASSES),
    "dropout of attention": lambda: pyg.models.GAT(FEATURES, HIDDEN, 3, CLASSES, dropout=0.5),
    "norm in GIN": lambda: pyg.GINConv(pyg.MLP([FEATURES, HIDDEN, CLASSES], norm="InstanceNorm")),
    "lazy module": lambda: Net(nn.LazyLinear(HIDDEN)),
    "cast to float64": lambda: Double().double(),
    "autocast": lambda: Lower(FEATURES, HIDDEN, 2, CLASSES),
    "compiled": lambda: torch.compile(Net(), backend="eager"),
    "checkpoint": lambda: Net(
        between=lambda net, h, _: checkpoint(
            functional.dropout, h.tanh(), 0.5, net.training, use_reentrant=False
        )
    ),
    "rows of the call before": lambda: Net(between=lambda net, h, _: h - last(net, h.detach())),
    "columns in order": lambda: Net(between=lambda _net, h, _: h.sort(1).values),
    "complex": lambda: Net(between=lambda _net, h, _: torch.fft.ifft(torch.fft.fft(h) * 1j).real),
    "other width": lambda: pyg.models.GCN(FEATURES + 2, HIDDEN, 2, CLASSES),
}


@pytest.mark.parametrize("name", EXACT)
def test_what_is_exact_is_taken(name):
    assert check(EXACT[name]()) is None
    assert check(EXACT[name](), undirected=False) is None


def adjacency(h, edges):
    return torch.zeros(len(h), len(h)).index_put_((*edges,), torch.ones(len(edges[0])))


# What computes the input of the second layer.
BETWEEN = {
    "mean": lambda _net, h, _: h - h.mean(0),
    "scatter": lambda _net, h, e: scatter(h[e[0]], e[1], 0, dim_size=len(h)),
    "index_add_": lambda _net, h, e: h + torch.zeros_like(h).index_add_(0, e[1], h[e[0]]),
    "first vertex": lambda _net, h, _: h - h[0],
    "order of vertices": lambda _net, h, _: h.cumsum(0),
    "sorted": lambda _net, h, _: h.sort(0).values,
    "largest": lambda _net, h, _: h * (h >= h.topk(4, dim=0).values[-1]),
    "products": lambda _net, h, _: torch.einsum("nf,ng,mg->mf", h, h, h),
    "degrees": lambda _net, h, e: h * degree(e[0], len(h))[:, None],
    "mean of the first call": lambda net, h, _: h - first(net, h.detach().mean(0)),
    "rows of the first call": lambda net, h, _: h - first(net, len(h) / 100),
    "edges of the first call": lambda net, h, e: h + first(net, adjacency(h, e)) @ h,
    "mean of many": lambda _net, h, _: h - h.mean(0) if len(h) > 55 else h,
}
AT_END = {
    "mean": lambda _net, h, _: (h, h.mean(0)),
    "pairs": lambda _net, h, _: h @ h.T,
    "edges": lambda _net, h, e: (h[e[0]] * h[e[1]]).sum(1),
    "complex": lambda _net, h, _: torch.fft.fft(h, dim=0),
}
INPUT = "Net mixes vertices: in training Layer second (SAGEConv) gets another input"
OUTPUT = "Ended mixes vertices: in training it has another output"
WRONG = {
    "own norm": (
        lambda: Net(Own()),
        "Net mixes vertices: in training Layer norm (Own) has another output",
    ),
    **{name: (lambda f=f: Net(between=f), INPUT) for name, f in BETWEEN.items()},
    **{f"output, {name}": (lambda f=f: Ended(between=f), OUTPUT) for name, f in AT_END.items()},
    "mean in evaluation": (
        lambda: Net(between=lambda net, h, _: h if net.training else h - h.mean(0)),
        "Net mixes vertices: in evaluation Layer second (SAGEConv) gets another input",
    ),
    "a gate of 0": (Gate, "Gate mixes vertices: in training Layer second"),
    "gradient": (
        lambda: Net(between=lambda _net, h, _: Forgetful.apply(h)),
        "in training it has another gradient of first.",
    ),
    "buffer": (lambda: Net(Counting()), "in training it has another norm.seen"),
    "update of a layer": (
        lambda: pyg.Sequential("x, e", [(Halved(FEATURES, CLASSES), "x, e -> x")]),
        "(Halved) has another output",
    ),
    "mean of the call before": (
        lambda: Net(between=lambda net, h, _: h - last(net, h.detach().mean(0))),
        "in training, at the second call, Layer second (SAGEConv) gets another input",
    ),
    "attention": (Attending, "Attending mixes vertices: in training Layer heads (Multihead"),
    "exchanges": (
        lambda: Net(between=lambda net, h, e: net.inner(h, e) if len(h) > 20 else h),
        "Net mixes vertices: it makes other exchanges",
    ),
}


@pytest.mark.parametrize("undirected", [False, True], ids=["directed", "undirected"])
@pytest.mark.parametrize("name", WRONG)
def test_what_mixes_vertices_is_refused(name, undirected):
    make, words = WRONG[name]
    said = (words, "on two parts of a small graph", "unchecked=True")
    with reports(*said, kind=UnsupportedLayerError):
        check(make(), undirected=undirected)


def test_directions_are_told_apart_where_the_graph_has_them():
    assert check(Reversed()) is None
    assert check(Reversed(), undirected=False) is None
    attending = Reversed()
    attending.first = pyg.GATConv(FEATURES, HIDDEN)
    assert check(attending) is None
    with pytest.raises(UnsupportedLayerError, match="sends messages against the edges"):
        check(attending, undirected=False)


def test_a_model_that_fails_on_parts_alone_is_refused():
    few = Net(between=lambda _net, h, _: h if len(h) > 50 else h.view(7, 11))
    said = (
        "because a copy of it raised RuntimeError: shape '[7, 11]' is invalid",
        "on a part of a small graph but not on the whole; skip this check with",
    )
    with reports(*said, kind=UnsupportedLayerError):
        check(few)


def test_an_error_of_the_check_itself_is_a_refusal(monkeypatch):
    monkeypatch.setattr("switchgnn.training.layers.check.distribute", lambda *_, **__: 1 / 0)
    said = "because the check itself raised ZeroDivisionError: division"
    with reports(said, kind=UnsupportedLayerError):
        check(Net())


class Needy(Net):
    def forward(self, x, edges, _distances):
        return super().forward(x, edges)


class Embedded(Net):
    def __init__(self):
        super().__init__()
        self.rows = nn.Parameter(torch.randn(34, FEATURES))

    def forward(self, x, edges):
        return super().forward(x + self.rows, edges)


class Locked(Net):
    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (Needy, "because a copy of it raised TypeError: .*_distances"),
        (Embedded, "because a copy of it raised RuntimeError"),
        (Locked, "because a copy of it raised TypeError: cannot pickle"),
        (
            lambda: Net(between=lambda net, h, _: h + net.training * torch.randn_like(h)),
            "because in training its results change from call to call",
        ),
        (lambda: Net(between=lambda _net, h, _: h / 0), "numbers that are not finite"),
        (lambda: Net(between=lambda _net, _h, e: e), "raised"),
        (lambda: Ended(between=lambda _net, _h, e: e), "because it returns no tensor of numbers"),
    ],
)
def test_what_cannot_be_run_is_a_sentence(make, reason):
    said = check(make())
    assert re.search(reason, said)
    assert "\n" not in said
    assert said.endswith(".")


def test_the_model_and_random_numbers_stay_as_they_are():
    model = Net(nn.BatchNorm1d(HIDDEN)).eval()
    before, drawn = copy.deepcopy(model), torch.get_rng_state()
    assert check(model) is None
    torch.testing.assert_close(model.state_dict(), before.state_dict(), rtol=0, atol=0)
    assert torch.equal(torch.get_rng_state(), drawn)
    assert not model.training
    assert all(each.grad is None for each in model.parameters())
    assert "forward" not in vars(model.first)


def test_sums_of_a_worker_in_a_model_are_checked():
    sums = VertexSums(lambda values: pytest.fail("it is not the copy that adds"))
    add = sums.add

    def less_the_mean(_net, h, _edges):
        number, total, _ = sums.moments(h)
        return h - (total / number).float()

    assert check(Net(between=less_the_mean), sums=sums) is None
    assert sums.add is add
