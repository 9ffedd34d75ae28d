# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""In which order a worker computes its vertices, so that others need not wait long.

G3's order (Wan et al., SIGMOD 2023, section 5.3): breadth first through each connected
component of the worker's part, then those that have a remote neighbour before the others.
"""

import numpy as np
from numpy.typing import NDArray


def visit_order(edges: NDArray[np.integer], remote: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return int64[n], the rows of one worker in the order in which they are computed.

    Args:
        edges: integers[2, E], the edges among the rows; their direction does not matter.
        remote: bool[n], which rows have a neighbour on another worker.
    """
    first_visits = _breadth_first(edges, len(remote))
    later = ~remote[first_visits]
    return first_visits[np.argsort(later, kind="stable")]


def _breadth_first(edges: NDArray[np.integer], rows: int) -> NDArray[np.int64]:
    """One component after another, each from its first row on."""
    from scipy.sparse import csr_matrix  # noqa: PLC0415 - slow to import
    from scipy.sparse.csgraph import (  # noqa: PLC0415
        breadth_first_order,
        connected_components,
    )

    matrix = csr_matrix((np.ones(edges.shape[1], dtype=np.int8), edges), shape=(rows, rows))
    _, component = connected_components(matrix, directed=False)
    _, roots = np.unique(component, return_index=True)
    # A vertex before all roots: one search visits all components, each breadth first.
    ends = np.concatenate([edges, np.stack([np.full(len(roots), rows), roots])], axis=1)
    ones = np.ones(ends.shape[1], dtype=np.int8)
    rooted = csr_matrix((ones, ends), shape=(rows + 1, rows + 1))
    visits = breadth_first_order(rooted, rows, directed=False, return_predecessors=False)[1:]
    first_row = roots[component[visits]]
    in_order: NDArray[np.int64] = visits[np.argsort(first_row, kind="stable")].astype(np.int64)
    return in_order
