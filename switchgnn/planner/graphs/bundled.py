"""Small graphs without a download: digits, denser ones of the same images, and karate."""

import gzip
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from switchgnn.base.array_types import Int64s
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.graphs.graph import Graph, graph_from_edges

DIGITS, KARATE = "digits", "karate"
# The nearest images that every digit is joined to by default.
_NEIGHBOURS = 8
_DIGITS = 1797
# More than any distance; multiplied with a vertex it is still a whole number of a float.
_FARTHEST = 1e9
# Pixels of the digits are whole numbers from 0 to 16.
_MAX_PIXEL = 16


def load_digits(spec: str = DIGITS) -> Graph:
    """Return ``digits`` or ``digits:NEIGHBOURS``, the nearest neighbours of scikit-learn's digits.

    Undirected; 1,797 vertices (8 x 8 images), 64 features in [0, 1], 10 classes. Distances are
    whole numbers and ties go to the lower id, so the graph is the same everywhere.
    """
    text = str(_NEIGHBOURS) if spec == DIGITS else spec.removeprefix(f"{DIGITS}:")
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) < _DIGITS):
        raise PlannerError(f"Cannot read {spec}: write digits:NEIGHBOURS, from 1 to {_DIGITS - 1}.")
    neighbours = int(text)
    table = _digits_table()
    pixels, labels = table[:, :64], table[:, 64]
    vertices = len(pixels)
    points = pixels.astype(np.float64)  # whole numbers, so products stay exact
    squares = (points * points).sum(axis=1)
    distance = squares[:, None] + squares[None, :] - 2 * (points @ points.T)
    np.fill_diagonal(distance, _FARTHEST)
    # All distinct, so that sorting meets no ties.
    ranked = distance * vertices + np.arange(vertices)
    nearest = np.argpartition(ranked, neighbours - 1, axis=1)[:, :neighbours]
    return graph_from_edges(
        np.repeat(np.arange(vertices), neighbours),
        nearest.ravel(),
        name=DIGITS if neighbours == _NEIGHBOURS else f"{DIGITS}:{neighbours}",
        vertices=vertices,
        directed=False,
        features=(pixels / _MAX_PIXEL).astype(np.float32),
        labels=labels,
    )


def load_karate(spec: str = KARATE) -> Graph:
    """Load Zachary's karate club: 34 vertices, 78 undirected edges, two classes, no features."""
    if spec != KARATE:
        raise PlannerError(f"Cannot read {spec}: write {KARATE}.")
    import networkx  # noqa: PLC0415 - slow to import

    club = networkx.karate_club_graph()
    edges = np.array(list(club.edges()), dtype=np.int64)
    labels = [int(club.nodes[v]["club"] != "Mr. Hi") for v in range(len(club))]
    return graph_from_edges(
        edges[:, 0],
        edges[:, 1],
        name=KARATE,
        vertices=len(club),
        directed=False,
        labels=np.array(labels, dtype=np.int64),
    )


def _digits_table() -> Int64s:
    # Importing scikit-learn takes a second, which every worker would pay at its start;
    # the table is an ordinary file of the package.
    package = find_spec("sklearn")
    if package is None or package.origin is None:
        raise PlannerError("The graph digits needs scikit-learn, which is not installed.")
    file = Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz"
    with gzip.open(file, "rt", encoding="ascii") as text:
        return np.loadtxt(text, delimiter=",", dtype=np.int64)


BUNDLED: Mapping[str, Callable[[str], Graph]] = {DIGITS: load_digits, KARATE: load_karate}


def is_bundled(spec: str) -> bool:
    """Return whether the name has this form, valid or not."""
    return spec.partition(":")[0] in BUNDLED
