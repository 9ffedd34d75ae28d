"""The graphs of the figures, and plans for them."""

from functools import cache

import numpy as np

from switchgnn.p4src import load_program
from switchgnn.planner import Graph, Plan, build_plan, graph_from_edges, load_graph
from switchgnn.planner.base.lanes import BANK_LANES

WORKERS = 4
VERTICES = 2048
REMOTE_NEIGHBOURS = 16
_SEED = 1


def random_graph(vertices: int, neighbours: int) -> Graph:
    """Return a seeded graph whose vertices have ``neighbours`` neighbours on other workers each."""
    generator = np.random.default_rng(_SEED)
    source = np.repeat(np.arange(vertices), neighbours)
    remote = _remote_indices(generator, vertices, neighbours)
    # The worker of v is v modulo WORKERS; neighbours must be on another one.
    away, index = remote % (WORKERS - 1) + 1, remote // (WORKERS - 1)
    destination = index * WORKERS + (source + away) % WORKERS
    return graph_from_edges(
        source,
        destination,
        name=f"random {vertices:,} x {neighbours}",
        vertices=vertices,
        directed=True,
    )


def random_plan(vertices: int, neighbours: int, lanes: int = BANK_LANES) -> Plan:
    """Return the plan for a random graph, with all slots of the program."""
    return build_plan(
        random_graph(vertices, neighbours),
        workers=WORKERS,
        slots=load_program().slots,
        program=load_program().digest,
        assignment=np.arange(vertices) % WORKERS,
        lanes=lanes,
    )


@cache
def standard_plan() -> Plan:
    """Return the plan that the data plane figures use."""
    return random_plan(VERTICES, REMOTE_NEIGHBOURS)


def wide_plan(lanes: int) -> Plan:
    """Return the same for frames of another width."""
    return random_plan(VERTICES, REMOTE_NEIGHBOURS, lanes)


@cache
def digits_plan() -> Plan:
    """Return the plan for the digits graph as `make exchange` makes it."""
    program = load_program()
    return build_plan(load_graph("digits"), workers=WORKERS, slots=256, program=program.digest)


def _remote_indices(
    generator: np.random.Generator, vertices: int, neighbours: int
) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    choices = vertices // WORKERS * (WORKERS - 1)
    rows = [generator.choice(choices, neighbours, replace=False) for _ in range(vertices)]
    return np.concatenate(rows)
