"""Commands on the switches and fabrics of this machine, and what remains of them."""

import getpass
import importlib.util
import json

import numpy as np
import pytest
from scipy.sparse import csr_matrix, save_npz

from tests.support.commands import switchgnn
from tests.support.fabrics import bed
from tests.support.markers import COMBINATIONS, MININET_COMBINATIONS, TARGETS, full, words_of
from tests.support.processes import is_alive
from tests.support.waiting import wait_until

# Of `made` and its graph.
WORKERS, VERTICES = 4, 64
LOOPBACK = ("--target", "embedded", "--fabric", "loopback")
LEAF_SPINE = ("--topology", "leaf-spine")
PAPER = ("--strategy", "paper")
# PyTorch's, shared by all programs of a user.
CACHES = {f"torchinductor_{getpass.getuser()}"}
needs_training = pytest.mark.skipif(
    importlib.util.find_spec("torch_geometric") is None, reason="PyTorch Geometric is not installed"
)


def for_test_all(param):
    return pytest.param(*param.values, id=param.id, marks=[*param.marks, full])


# The embedded switch over loopback, and BMv2 in Mininet; both parts of the latter differ.
BOTH_ENDS = [COMBINATIONS[0], for_test_all(COMBINATIONS[1]), COMBINATIONS[2]]
MOSTLY_LOOPBACK = [COMBINATIONS[0], *map(for_test_all, COMBINATIONS[1:])]


@pytest.fixture(params=BOTH_ENDS)
def combination(request):
    return request.param


@pytest.fixture(params=MININET_COMBINATIONS)
def mininet_combination(request):
    return request.param


def succeeded(*arguments, **options):
    result = switchgnn(*arguments, **options)
    assert result.returncode == 0, result.stderr[-2000:]
    # Mininet's complaints would reach a user who can do nothing about them.
    assert "***" not in result.stdout + result.stderr
    return result


def run_json(combination, *arguments):
    """The report of a run whose sums are all exact."""
    report = json.loads(succeeded("run", *words_of(combination), "--json", *arguments).stdout)
    assert report["exact"] is True
    assert "python" not in combination or report["backend"] == "python"
    return report


def said(child):
    """What a command that still runs has written to standard error."""
    return child.log.read_text(errors="replace")


def all_end(pids):
    wait_until(lambda: not any(map(is_alive, pids)))


@pytest.fixture(scope="module")
def adjacency():
    """A[u, v] is 1 for an edge u→v; few go both ways, and degrees vary."""
    rng = np.random.default_rng(5)
    popular = 0.02 + 0.25 * rng.random(VERTICES) ** 4
    dense = rng.random((VERTICES, VERTICES)) < np.maximum.outer(popular, popular)
    np.fill_diagonal(dense, False)
    return csr_matrix(dense.astype(np.int64))


@pytest.fixture(scope="module", params=TARGETS)
def made(request, adjacency, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bed")
    save_npz(folder / "directed.npz", adjacency)
    graph = str(folder / "directed.npz")
    with bed(request.param, WORKERS, folder, graph=graph, directions="both") as each:
        yield each
