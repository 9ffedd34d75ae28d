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


def unchanged(features, _number):
    return features


def passes_on_two(make, inputs=unchanged, *, precompute=True, evaluate=()):
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


@pytest.mark.parametrize(
    ("layers", "kept"), [(1, False), (2, False), (3, False), (2, True), (3, True)]
)
@pytest.mark.parametrize("kind", ["gcn", "sage", "gin"])
@pytest.mark.parametrize("hidden", [WIDE, 2 * WIDE])
def test_the_widths_of_exchanges_are_known_before(kind, layers, hidden, kept):
    options = ModelOptions(kind, layers, hidden)
    calls, _ = passes_on_two(lambda: build_model(options, WIDE, 3), precompute=kept)
    each = exchanged_widths(options, WIDE, 3, kept=kept)
    assert sorted(width for _, width in calls) == sorted([WIDE] * kept + 4 * list(each))


def doubled_once(features, number):
    return features.mul_(2) if number == 2 else features


def made_anew(features, number):
    """As dropout does, perhaps at the same address."""
    return features * (number + 1)


NARROW = [(THERE, 4), (BACK, 4)]


@pytest.mark.parametrize(
    ("make", "options", "calls", "kept"),
    [
        pytest.param(lambda: pyg.GCNConv(WIDE, 8), {}, [(THERE, WIDE)], 3, id="gcn"),
        pytest.param(lambda: pyg.SAGEConv(WIDE, WIDE), {}, [(THERE, WIDE)], 3, id="sage"),
        pytest.param(lambda: pyg.GINConv(pyg.Linear(WIDE, WIDE)), {}, [(THERE, WIDE)], 3, id="gin"),
        pytest.param(
            *(lambda: pyg.GCNConv(WIDE, 8), {"precompute": False}, 4 * [(THERE, WIDE)], 0),
            id="not asked for",
        ),
        pytest.param(
            *(lambda: pyg.GCNConv(WIDE, 4), {}, [*NARROW, *NARROW, (THERE, WIDE)], 1),
            id="narrow rows until they have cost as much",
        ),
        pytest.param(
            *(lambda: pyg.GCNConv(WIDE, WIDE), {"evaluate": (0, 2)}, 2 * [(THERE, WIDE)], 2),
            id="evaluations use kept sums and keep none",
        ),
        pytest.param(
            *(lambda: pyg.GCNConv(WIDE, 8), {"inputs": doubled_once}, 2 * [(THERE, WIDE)], 2),
            id="changed in place",
        ),
        pytest.param(
            *(lambda: pyg.GCNConv(WIDE, 8), {"inputs": made_anew}, 4 * [(THERE, WIDE)], 0),
            id="other tensors",
        ),
        pytest.param(
            lambda: pyg.SAGEConv(WIDE, WIDE, project=True),
            *({}, 4 * [(THERE, WIDE), (BACK, WIDE)], 0),
            id="rows made by weights",
        ),
    ],
)
def test_inputs_that_do_not_change_are_exchanged_once(make, options, calls, kept):
    assert passes_on_two(make, **options) == (calls, kept)
