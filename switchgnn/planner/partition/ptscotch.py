# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The workers' partition by PT-Scotch: several processes, each with a shard of the graph."""

import importlib.util
import re
import shutil
from functools import partial

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.files import private_folder
from switchgnn.base.interruptible import interruptible
from switchgnn.base.machine import how_to_install, python_program
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition.given import load_assignment
from switchgnn.planner.partition.mpirun import MPIRUN, run_ranks
from switchgnn.planner.partition.ptscotch_library import load_ptscotch
from switchgnn.planner.partition.shards import write_shards
from switchgnn.planner.partition.workers import check_workers

RANK_PROGRAM = "switchgnn.planner.partition.ptscotch_rank"
_NAME = re.compile(r"ptscotch:([1-9]\d{0,4})")


def ptscotch_name(ranks: int) -> str:
    """Return the name of the partition strategy with that many ranks."""
    return f"ptscotch:{ranks}"


def ptscotch_missing() -> str | None:
    """Return what keeps PT-Scotch from running here, as a sentence, or None."""
    if shutil.which(MPIRUN) is None:
        return f"PT-Scotch needs {MPIRUN}, which is not on the PATH (apt-get install openmpi-bin)"
    if importlib.util.find_spec("mpi4py") is None:
        return f"PT-Scotch needs mpi4py, which is not installed ({how_to_install('ptscotch')})"
    try:
        load_ptscotch()
    except PlannerError as error:
        return str(error)
    return None


def ptscotch(graph: Graph, workers: int, seed: int, *, ranks: int) -> NDArray[np.int32]:
    """Assign every vertex to a worker with PT-Scotch, as several processes on this machine.

    Few edges between workers; no worker has more than MOST_SHARE of the mean of vertices.
    The same arguments give the same assignment, another number of ranks another one. Shards
    lie in the folder for temporary files until it is done.

    Args:
        graph: directions do not matter.
        workers: their number.
        seed: of PT-Scotch.
        ranks: at most as many as the graph has vertices.

    Returns:
        int32[V], 0 <= worker < workers; every worker has a vertex.

    Raises:
        PlannerError: impossible numbers, something is not installed, or a rank fails.
    """
    check_workers(graph, workers)
    missing = ptscotch_missing()
    if missing is not None:
        raise PlannerError(missing)
    with interruptible(), private_folder("switchgnn-ptscotch-") as folder:
        shards, out = folder / "shards", folder / "assignment.npy"
        write_shards(graph, ranks, shards)
        command = python_program(RANK_PROGRAM, str(shards), str(out))
        run_ranks(ranks, [*command, "--workers", str(workers), "--seed", str(seed)])
        return load_assignment(out).astype(np.int32)


def find_ptscotch(name: str) -> partial[NDArray[np.int32]]:
    """Return the strategy that is called `ptscotch:RANKS`.

    Raises:
        KeyError: that is the name of something else.
        PlannerError: the number of ranks is not one.
    """
    if name.partition(":")[0] != "ptscotch":
        raise KeyError(name)
    found = _NAME.fullmatch(name)
    if found is None:
        raise PlannerError(f"{name!r} does not say how many ranks: write it as {ptscotch_name(2)}")
    return partial(ptscotch, ranks=int(found[1]))
