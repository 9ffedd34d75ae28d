# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Sums of inputs that do not change are exchanged once, and are those of every pass."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pyg = pytest.importorskip("torch_geometric.nn", reason="PyTorch Geometric is not installed")

from switchgnn.planner.direction import Direction  # noqa: E402
from switchgnn.training.layers.models import (  # noqa: E402
    ModelOptions,
    build_model,
    distribute,
    exchanged_widths,
)
from switchgnn.training.partition import partition_dataset  # noqa: E402
from switchgnn.training.sums import RemoteSum  # noqa: E402
from tests.training.gathering import Gathering, in_threads  # noqa: E402
from tests.training.layers.test_layers import WIDE, make_data, whole_edges  # noqa: E402

THERE, BACK = Direction.FORWARD, Direction.BACKWARD


def passes_on_two(make, inputs, *, precompute=True, evaluate=()):
    """Check four passes, those in `evaluate` without gradients, and the last one's gradients.

    Return the exchanges of a worker, and how many passes used kept sums. `inputs` is called with a
    part's features and the number of the pass.
    """
    data = make_data(3, directed=True)
    assignment = np.arange(data.vertices) % 2
    gathering = Gathering(data.graph, assignment)
    ends, parts = gathering.transports, list(partition_dataset(data, assignment))
    torch.manual_seed(0)
    alone = make()
    passes = range(4)
    edges = whole_edges(data)
    expected = []
    features = torch.from_numpy(data.features.copy())
    for number in passes:
        alone.zero_grad()
        expected.append(alone(inputs(features, number), edges))
        expected[-1].square().sum().backward()
    gradients = [each.grad for each in alone.parameters()]
    found = [torch.empty_like(each) for each in expected]

    def work(worker):
        layer, part = make(), parts[worker]
        layer.load_state_dict(alone.state_dict())
        own = torch.from_numpy(part.features.copy())
        with RemoteSum(ends[worker]) as remote:
            distribute(layer, part, remote, precompute=precompute)
            for number in passes:
                layer.zero_grad()
                with torch.set_grad_enabled(number not in evaluate):
                    outputs = layer(inputs(own, number), torch.from_numpy(part.edges))
                found[number][part.vertices] = outputs.detach()
                if number not in evaluate:
                    outputs.square().sum().backward()
        return remote.ledger.kept, [each.grad for each in layer.parameters()]

    kept, grads = zip(*in_threads(work, 2, gathering.barrier), strict=True)
    assert len(set(kept)) == 1
    summed = [sum(each) for each in zip(*grads, strict=True)]
    for one, other in zip((*expected, *gradients), (*found, *summed), strict=True):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-4)
    return ends[0].calls, kept[0]


def unchanged(features, _number):
    return features


@pytest.mark.parametrize(
    ("layers", "kept"), [(1, False), (2, False), (3, False), (2, True), (3, True)]
)
@pytest.mark.parametrize("kind", ["gcn", "sage", "gin"])
@pytest.mark.parametrize("hidden", [WIDE, 2 * WIDE])
def test_the_widths_of_exchanges_are_known_before(kind, layers, hidden, kept):
    options = ModelOptions(kind, layers, hidden)
    calls, _ = passes_on_two(lambda: build_model(options, WIDE, 3), unchanged, precompute=kept)
    each = exchanged_widths(options, WIDE, 3, kept=kept)
    assert sorted(width for _, width in calls) == sorted([WIDE] * kept + 4 * list(each))


def test_inputs_that_do_not_change_are_exchanged_once_and_need_no_gradients():
    calls, kept = passes_on_two(lambda: pyg.GCNConv(WIDE, 8), unchanged)
    assert calls == [(THERE, WIDE)]
    assert kept == 3


@pytest.mark.parametrize("kind", [pyg.SAGEConv, lambda *sizes: pyg.GINConv(pyg.Linear(*sizes))])
def test_the_same_for_other_layers(kind):
    calls, _ = passes_on_two(lambda: kind(WIDE, WIDE), unchanged)
    assert calls == [(THERE, WIDE)]


def test_each_pass_exchanges_them_where_that_is_asked_for():
    calls, kept = passes_on_two(lambda: pyg.GCNConv(WIDE, 8), unchanged, precompute=False)
    assert calls == 4 * [(THERE, WIDE)]
    assert kept == 0


def test_wide_inputs_are_exchanged_when_the_narrow_rows_have_cost_as_much():
    calls, kept = passes_on_two(lambda: pyg.GCNConv(WIDE, 4), unchanged)
    assert calls == [(THERE, 4), (BACK, 4), (THERE, 4), (BACK, 4), (THERE, WIDE)]
    assert kept == 1


def test_an_evaluation_uses_kept_sums_and_keeps_none():
    calls, kept = passes_on_two(lambda: pyg.GCNConv(WIDE, WIDE), unchanged, evaluate=(0, 2))
    assert calls == 2 * [(THERE, WIDE)]
    assert kept == 2


def test_inputs_that_change_in_place_are_exchanged_again():
    def doubled_once(features, number):
        return features.mul_(2) if number == 2 else features

    calls, kept = passes_on_two(lambda: pyg.GCNConv(WIDE, 8), doubled_once)
    assert calls == 2 * [(THERE, WIDE)]
    assert kept == 2


def test_other_tensors_are_exchanged_each_time():
    """As after dropout, which makes a new one each time, perhaps where the last one was."""
    calls, kept = passes_on_two(
        lambda: pyg.GCNConv(WIDE, 8), lambda features, number: features * (number + 1)
    )
    assert calls == 4 * [(THERE, WIDE)]
    assert kept == 0


def test_rows_that_weights_have_made_are_exchanged_each_time():
    calls, _ = passes_on_two(lambda: pyg.SAGEConv(WIDE, WIDE, project=True), unchanged)
    assert calls == 4 * [(THERE, WIDE), (BACK, WIDE)]
