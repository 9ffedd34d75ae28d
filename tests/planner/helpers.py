"""Random graphs and shared settings of the planner's tests."""

from contextlib import contextmanager

import hypothesis
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from switchgnn.planner import Graph, PlannerError, boundary_edges, build_plan, graph_from_edges
from switchgnn.planner.costs.flow import flow_of_sums, packet_steps

# The same examples in every run, and no time limit that a busy machine could break. How many, the
# profile says (tests/conftest.py).
STEADY = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


def given(*strategies, settings=STEADY, **named):
    """Hypothesis's `given` with steady examples."""
    return lambda test: settings(hypothesis.given(*strategies, **named)(test))


FEWER = settings(STEADY, max_examples=40)


def random_graph(vertices, edges, seed, *, directed=False):
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, vertices, edges), rng.integers(0, vertices, edges)
    return graph_from_edges(*ends, name="random", vertices=vertices, directed=directed)


def graph_of(u, v, vertices, *, directed=False):
    u, v = np.asarray(u, dtype=np.int64), np.asarray(v, dtype=np.int64)
    return graph_from_edges(u, v, name="g", vertices=vertices, directed=directed)


@st.composite
def graphs(draw) -> Graph:
    vertices = draw(st.integers(2, 40))
    ids = st.integers(0, vertices - 1)
    pairs = np.array(draw(st.lists(st.tuples(ids, ids), max_size=150)), dtype=np.int64)
    pairs = pairs.reshape(-1, 2)
    return graph_of(*pairs.T, vertices, directed=draw(st.booleans()))


@st.composite
def split_graphs(draw):
    """A graph and an arbitrary assignment in which every worker has a vertex."""
    graph = draw(graphs())
    workers = draw(st.integers(1, min(6, graph.vertices)))
    rest = graph.vertices - workers
    extra = draw(st.lists(st.integers(0, workers - 1), min_size=rest, max_size=rest))
    return graph, workers, np.array([*range(workers), *extra], dtype=np.int32)


def boundary_of(graph, assignment):
    return boundary_edges(graph, np.asarray(assignment, dtype=np.int32))


def check_everybody_has_a_vertex(strategy, graph, workers, seed):
    """A partition strategy gives every worker a vertex, and the same ones again."""
    workers = min(workers, graph.vertices)
    assignment = strategy(graph, workers, seed)
    assert assignment.dtype == np.int32
    assert assignment.shape == (graph.vertices,)
    assert sorted(set(assignment.tolist())) == list(range(workers))
    assert np.array_equal(assignment, strategy(graph, workers, seed))


def one_sentence(error) -> str:
    """Return the message after checking that it is one sentence on one line."""
    message = str(error.value)
    first = message.split(maxsplit=1)[0]
    assert not (first.isalpha() and first.islower())
    assert message[-1] in ".?"
    assert "\n" not in message
    assert "Traceback" not in message
    return message


def refusal_of(kind, call, *arguments, **options) -> str:
    """Return the one sentence of the error that a call must raise."""
    with pytest.raises(kind) as error:
        call(*arguments, **options)
    return one_sentence(error)


@contextmanager
def reports(*parts, kind=PlannerError):
    """Expect an error of one sentence with these parts."""
    with pytest.raises(kind) as error:
        yield
    message = one_sentence(error)
    assert all(part in message for part in parts)


def pairs(graph):
    """The edges of a graph, in its order, as pairs of Python's numbers."""
    return list(tuples(*graph.edges()))


def plan_of(graph, workers=4, slots=20, **options):
    given = {"workers": workers, "slots": slots, "program": "ab" * 32}
    return build_plan(graph, **(given | options))


def random_features(graph, seed=0):
    return np.random.default_rng(seed).integers(-(2**40), 2**40, (graph.vertices, 3))


def tuples(*arrays):
    """The rows of arrays of the same length, as tuples of Python's numbers."""
    return zip(*(each.tolist() for each in arrays), strict=True)


def flow_of_packets(block, packet, result, rate=1):
    """The flow of packets in blocks, int[S], that serve an edge of a sum each, both int[E]."""
    steps, indptr = packet_steps(block, rate)
    results = int(max(result, default=-1)) + 1
    first, last = np.full(results, int(indptr[-1])), np.zeros(results, dtype=np.int64)
    np.minimum.at(first, result, steps[packet])
    np.maximum.at(last, result, steps[packet])
    return flow_of_sums(first, last, indptr, rate)
