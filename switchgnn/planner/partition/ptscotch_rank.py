# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""One rank: `mpirun -n RANKS python -m ...partition.ptscotch_rank SHARDS OUT --workers N`.

Each rank reads only its own shard; rank 0 gathers and writes the assignment.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.files import whole_file
from switchgnn.base.full_disk import why_not_written
from switchgnn.base.machine import how_to_install
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.partition.ptscotch_library import PTScotch, load_ptscotch
from switchgnn.planner.partition.shards import Shard, read_shard
from switchgnn.planner.partition.workers import MAX_WORKERS, even_shares

if TYPE_CHECKING:
    from mpi4py import MPI

_FAILED = 2


def main(arguments: Sequence[str] | None = None) -> None:
    """Partition; an error in one rank ends all of them."""
    options = _options(arguments)
    try:
        from mpi4py import MPI  # noqa: PLC0415 - starts MPI
    except (ImportError, RuntimeError) as error:
        _say(f"ranks need MPI ({how_to_install('ptscotch')}, apt-get install openmpi-bin): {error}")
        sys.exit(_FAILED)
    world = MPI.COMM_WORLD
    try:
        partition_shards(world, options.shards, options.out, options.workers, options.seed)
    except SwitchGNNError as error:
        _say(str(error))
        world.Abort(_FAILED)
    except Exception as error:  # the other ranks would wait for this one
        _say(f"{type(error).__name__}: {error}")
        world.Abort(_FAILED)


def partition_shards(world: "MPI.Comm", folder: Path, out: Path, workers: int, seed: int) -> None:
    """Read a shard, partition with the other ranks, and at rank 0 write int32[V]."""
    shard = _read(world, folder, out)
    _check(world, shard, workers, seed)
    library = load_ptscotch(shard.edges)
    _check_mpi(library)
    part = _part(library, world, shard, workers, seed)
    whole = _gather(world, shard, part)
    degree = _gather(world, shard, np.diff(shard.indptr).astype(np.int32))
    if world.rank == 0:
        _write(even_shares(whole, workers, degree), out)


def _part(
    library: PTScotch, world: "MPI.Comm", shard: Shard, workers: int, seed: int
) -> NDArray[np.int32]:
    from mpi4py import MPI  # noqa: PLC0415 - optional

    if workers == 1 or shard.edges == 0:
        # Nothing to optimise; shares are evened out later.
        return np.zeros(len(shard.indptr) - 1, dtype=np.int32)
    return library.part(shard, workers, seed, MPI._addressof(world))


def _gather(world: "MPI.Comm", shard: Shard, mine: NDArray[np.int32]) -> NDArray[np.int32]:
    from mpi4py import MPI  # noqa: PLC0415 - optional

    whole = np.empty(shard.vertices if world.rank == 0 else 0, dtype=np.int32)
    counts = np.diff(shard.starts).tolist()
    world.Gatherv(mine, [whole, counts, shard.starts[:-1].tolist(), MPI.INT32_T])
    return whole


def _read(world: "MPI.Comm", folder: Path, out: Path) -> Shard:
    """Read this rank's shard; if one rank fails, all report why."""
    shard, problem = None, None
    try:
        shard = read_shard(folder, world.rank)
        if world.size != shard.ranks:
            problem = (
                f"there are {shard.ranks} shards, but mpirun started {world.size} ranks that "
                f"know of each other: start them with mpirun -n {shard.ranks} of the MPI that "
                "mpi4py uses"
            )
        elif world.rank == 0 and not out.parent.is_dir():
            problem = f"cannot write {out}: there is no folder {out.parent}"
    except PlannerError as error:
        problem = str(error)
    for each in world.allgather(problem):
        if each is not None:
            raise PlannerError(each)
    assert shard is not None  # noqa: S101 - or there was a problem
    return shard


def _check(world: "MPI.Comm", shard: Shard, workers: int, seed: int) -> None:
    if len(set(world.allgather((shard.graph, shard.starts.tobytes())))) > 1:
        raise PlannerError("the shards of the ranks are not of the same graph; make them again")
    if not 1 <= workers <= min(MAX_WORKERS, shard.vertices):
        raise PlannerError(
            f"{workers} workers are not possible; from 1 to {min(MAX_WORKERS, shard.vertices)} are"
        )
    if seed < 0:
        raise PlannerError(f"the seed must not be negative, but it is {seed}")


def _check_mpi(library: PTScotch) -> None:
    """Refuse two MPI libraries in one process, whose communicators differ."""
    from mpi4py import MPI  # noqa: PLC0415 - optional

    ours, theirs = MPI.Get_library_version(), library.mpi_version()
    if ours.rstrip("\0") != theirs:
        raise PlannerError(
            f"mpi4py uses {ours.split(',')[0]} and PT-Scotch {theirs.split(',')[0]}: both must "
            "use the same MPI; name its library in MPI4PY_LIBMPI"
        )


def _write(assignment: NDArray[np.int32], out: Path) -> None:
    try:
        with whole_file(out) as file:
            np.save(file, assignment.astype("<i4"), allow_pickle=False)
    except OSError as error:
        raise PlannerError(f"cannot write {out}: {why_not_written(error, out)}") from error


def _say(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="mpirun -n RANKS python -m switchgnn.planner.partition.ptscotch_rank",
        description="Partition the shards of a graph over workers.",
    )
    parser.add_argument("shards", type=Path, help="folder of switchgnn shard")
    parser.add_argument("out", type=Path, help="file .npy to write: the worker of each vertex")
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
