"""METIS for any edges."""

import ctypes
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from switchgnn.base.array_types import Int32s, Int64s, Integers
from switchgnn.planner.base.arrays import symmetric_rows, thin
from switchgnn.planner.base.errors import PlannerError
from switchgnn.planner.partition.constraints import balance_all

# METIS seeds its generator with a C int.
_SEED_LIMIT = 2**31 - 1
# It counts the ends of edges with 32 bits.
_MOST_ENDS = 2**31 - 1
# METIS_OBJTYPE_VOL: the communication volume as the objective.
_OBJTYPE_VOL = 1


_SILENCE = threading.Lock()


@contextmanager
def _silenced() -> Iterator[None]:
    """Discard what C prints on standard output in the block, as METIS does about empty parts.

    METIS keeps Python from running, so nothing else is printed in the block.
    """
    libc = ctypes.CDLL(None)
    with _SILENCE, Path(os.devnull).open("wb") as nothing:
        libc.fflush(None)
        kept = os.dup(1)
        os.dup2(nothing.fileno(), 1)
        try:
            yield
        finally:
            libc.fflush(None)
            os.dup2(kept, 1)
            os.close(kept)


def partition_vertices(
    source: Integers,
    destination: Integers,
    *,
    vertices: int,
    parts: int,
    seed: int,
    weights: Integers | None = None,
    shares: Sequence[int] | None = None,
    volume: bool = False,
    most_edges: int | None = None,
) -> Int32s:
    """Cut a graph into parts of about equal size with few edges between them.

    Any edges will do, as METIS crashes on asymmetric graphs and self-loops. Sizes are up to a few
    percent apart, and on odd graphs even 0.

    `source`: integers[E], 0 <= id < vertices; `weights`: integers[vertices], from 1, or [vertices,
    C], from 0, for C constraints: the sums of each are balanced; `shares`: relative sizes of the
    parts, from 1, with one constraint; returns int32[vertices], 0 <= part < parts.
    """
    if parts == 1:
        return np.zeros(vertices, dtype=np.int32)
    adjacency = symmetric_rows(source, destination, vertices)
    if parts >= vertices or len(adjacency[1]) == 0:
        # Nothing to optimise, and outside what METIS is made for.
        return (np.arange(vertices) % parts).astype(np.int32)
    if most_edges is not None and len(adjacency[1]) > most_edges:
        adjacency = thin(*adjacency, most_edges / len(adjacency[1]))
    if len(adjacency[1]) > _MOST_ENDS:
        raise PlannerError(
            f"{len(adjacency[1]):,} ends of edges are too many for METIS, which takes "
            f"{_MOST_ENDS:,}: choose the partition random or chunk, or give an assignment."
        )
    part = _part_graph(*adjacency, parts, seed=seed, weights=weights, shares=shares, volume=volume)
    return np.asarray(part, dtype=np.int32)


def _part_graph(
    indptr: Int64s,
    indices: Int32s,
    parts: int,
    *,
    seed: int,
    weights: Integers | None,
    shares: Sequence[int] | None,
    volume: bool,
) -> Sequence[int] | Int32s:
    try:
        import pymetis  # noqa: PLC0415 - needed by the planner only, not by who reads plans
    except ImportError as error:
        raise PlannerError("Partitioning needs METIS: pip install pymetis.") from error
    options = pymetis.Options()
    options.seed = seed % _SEED_LIMIT
    # Only the k-way algorithm knows the volume; without a wish pymetis chooses by `parts`.
    choice: dict[str, Any] = {"options": options, "recursive": None}
    if volume:
        options.objtype = _OBJTYPE_VOL
        choice["recursive"] = False
    if weights is not None and weights.ndim == 1:
        choice["vweights"] = weights.tolist()
    if shares is not None and len(set(shares)) > 1:
        choice["tpwgts"] = [share / sum(shares) for share in shares]
    try:
        graph = pymetis.CSRAdjacency(indptr.astype(np.int32), indices)
        with _silenced():
            if weights is not None and weights.ndim > 1:
                settings = {"SEED": seed % _SEED_LIMIT, "OBJTYPE": _OBJTYPE_VOL * volume}
                return balance_all(indptr, indices, parts, weights, settings)
            return pymetis.part_graph(parts, graph, **choice).vertex_part
    except RuntimeError as error:
        raise PlannerError(f"METIS could not make {parts} parts: {error}.") from error
    finally:
        # METIS takes SIGTERM for itself, and puts the handler back as one that restarts the system
        # calls that it interrupts; a program that then waits would not end by it: `gk_sigtrap` in
        # https://github.com/KarypisLab/GKlib, error.c.
        signal.siginterrupt(signal.SIGTERM, True)
