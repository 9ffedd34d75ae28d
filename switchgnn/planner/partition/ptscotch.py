"""Partitions by PT-Scotch, in ranks of MPI that each hold a shard of the graph.

On one machine `ptscotch` runs all ranks; on several, `switchgnn shard` writes the shards and is the
program of each rank.
"""

import ctypes
import importlib.util
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.array_types import Int32s, Int64s
from switchgnn.base.arrays import ArrayKind, ArraysError, pack_arrays, read_arrays
from switchgnn.base.files import private_folder, reason_to_keep, replacing, whole_file
from switchgnn.base.full_disk import writing
from switchgnn.base.interruptible import interruptible
from switchgnn.base.machine import how_to_install, python_program
from switchgnn.planner.arrays import are_offsets
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition.metis import symmetric_rows
from switchgnn.planner.partition.simple import load_assignment
from switchgnn.planner.partition.workers import MAX_WORKERS, check_workers, even_shares

if TYPE_CHECKING:
    from mpi4py import MPI

MPIRUN = "mpirun"
# A rank is `switchgnn shard SHARDS --assign OUT --workers N`.
RANK_PROGRAM = "switchgnn.commands"
# If this process dies, mpirun ends the ranks; from util-linux.
_END_WITH_PARENT = ("setpriv", "--pdeathsig", "TERM")
_STOP_SECONDS = 10.0
# What shells add to the number of the signal.
_ENDED_BY_SIGNAL = 128
# With --tag-output a line of a rank begins so; everything else is mpirun's. Where a rank writes
# a line in pieces, each begins so.
_TAG = re.compile(r"\[\d+,(\d+)\]<stderr>:")
_SHARD = re.compile(r"shard-(\d{3}|[1-9]\d{3,})\.safetensors")
_KINDS = {"starts": "<i8", "edges": "<i8", "indptr": "<i8", "indices": "<i4", "graph": "|u1"}
# Debian 12 and 13, and builds without a version in their names.
_ENDINGS = ("-7.0.so", ".so")
# Debian's libptscotch-7.0 also holds builds that count with 64 bits; these are not on the path
# of the linker.
_WIDE_FOLDERS = "*/scotch-int64"
_LIBRARY_FOLDER = Path("/usr/lib")
# More than this many ends of edges need 64 bits.
_MOST_NARROW = 2**31 - 1
# METIS_OK of Scotch's parmetis.h.
_DONE = 1
# PT-Scotch's generator sets the lowest bit of its seed, so only the others count.
_SEED_LIMIT = 2**30


def ptscotch_missing() -> str | None:
    """Return the reason why PT-Scotch cannot run here, as a sentence, or None."""
    if shutil.which(MPIRUN) is None:
        return f"PT-Scotch needs {MPIRUN}, which is not on the PATH (apt-get install openmpi-bin)."
    if importlib.util.find_spec("mpi4py") is None:
        return f"PT-Scotch needs mpi4py, which is not installed ({how_to_install('ptscotch')})."
    try:
        load_ptscotch()
    except PlannerError as error:
        return str(error)
    return None


def ptscotch(graph: Graph, workers: int, seed: int, *, ranks: int) -> Int32s:
    """Assign every vertex to a worker with PT-Scotch, as several processes on this machine.

    Few edges between workers; no worker has more than MOST_SHARE of the mean of vertices. The
    result depends on the number of ranks. The shards are temporary files.
    """
    check_workers(graph, workers)
    missing = ptscotch_missing()
    if missing is not None:
        raise PlannerError(missing)
    with interruptible(), private_folder("switchgnn-ptscotch-") as folder:
        shards, out = folder / "shards", folder / "assignment.npy"
        write_shards(graph, ranks, shards)
        command = python_program(RANK_PROGRAM, "shard", str(shards), "--assign", str(out))
        run_ranks(ranks, [*command, "--workers", str(workers), "--seed", str(seed)])
        return load_assignment(out).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Shard:
    """Consecutive rows of the undirected graph without self-loops, for one rank."""

    rank: int
    # [ranks + 1]; rank r has the vertices from starts[r] to starts[r + 1] - 1
    starts: Int64s
    indptr: Int64s  # [n + 1], from 0, of its n vertices
    indices: Int32s  # [e], the neighbours of its vertices, ids of the whole graph
    edges: int  # the ends of edges in all shards together
    graph: str  # `Graph.digest()` of the graph

    @property
    def ranks(self) -> int:
        """How many shards the graph has."""
        return len(self.starts) - 1

    @property
    def vertices(self) -> int:
        """The vertices of the whole graph."""
        return int(self.starts[-1])


def write_shards(graph: Graph, ranks: int, folder: str | Path) -> None:
    """Write the shards of a graph, `shard-000.safetensors` and so on.

    Every edge is stored in both directions, as partitioners want it. Shards have about as many
    vertices and edges together. All appear at once, replacing older shards or an empty folder.
    """
    if not 1 <= ranks <= graph.vertices:
        raise PlannerError(
            f"Graph {graph.name} has {graph.vertices} vertices, so it can have from 1 to "
            f"{graph.vertices} shards, not {ranks}."
        )
    target = Path(folder).resolve()
    with writing(Path(folder), "shards ", PlannerError):
        if reason := reason_to_keep(target, "shards", lambda name: bool(_SHARD.fullmatch(name))):
            raise PlannerError(reason)
        with replacing(target) as new:
            _write_files(graph, ranks, new)


def read_shard(folder: str | Path, rank: int) -> Shard:
    """Read the shard of one rank, and no other file."""
    path = Path(folder) / shard_file(rank)
    if not path.exists():
        raise PlannerError(
            f"{path} does not exist: there must be a shard for each rank; make them with "
            "switchgnn shard."
        )
    kinds = {name: ArrayKind((kind,)) for name, kind in _KINDS.items()}
    try:
        arrays = read_arrays(path, kinds, remedy="it is not a shard; make it with switchgnn shard")
    except ArraysError as error:
        raise PlannerError(str(error)) from error
    shard = Shard(
        rank=rank,
        starts=arrays["starts"],
        indptr=arrays["indptr"],
        indices=arrays["indices"],
        edges=int(arrays["edges"].sum()),
        graph=arrays["graph"].tobytes().hex(),
    )
    _check_shard(shard, path)
    return shard


def shard_file(rank: int) -> str:
    """Return the name of a rank's file."""
    return f"shard-{rank:03d}.safetensors"


def _write_files(graph: Graph, ranks: int, folder: Path) -> None:
    indptr, indices = symmetric_rows(*graph.edges(), graph.vertices)
    starts, digest = _starts(indptr, ranks), graph.digest()
    for rank in range(ranks):
        first, last = starts[rank], starts[rank + 1]
        arrays = {
            "starts": starts,
            "edges": np.array([len(indices)]),
            "indptr": indptr[first : last + 1] - indptr[first],
            "indices": indices[indptr[first] : indptr[last]],
            "graph": np.frombuffer(bytes.fromhex(digest), dtype=np.uint8),
        }
        kinds = {name: arrays[name].astype(kind, copy=False) for name, kind in _KINDS.items()}
        (folder / shard_file(rank)).write_bytes(pack_arrays(kinds))


def _starts(indptr: Int64s, ranks: int) -> Int64s:
    """Return int64[ranks + 1], cuts with about equal vertices plus edges; none is empty."""
    vertices = len(indptr) - 1
    load = indptr + np.arange(vertices + 1)
    cuts = np.searchsorted(load, load[-1] * np.arange(ranks + 1) / ranks)
    step = np.arange(ranks + 1)
    cuts = np.maximum.accumulate(cuts - step) + step
    starts: Int64s = np.minimum(cuts, vertices - step[::-1]).astype(np.int64)
    return starts


def _check_shard(shard: Shard, path: Path) -> None:
    """Refuse input that would crash a C library."""
    starts, indptr, indices = shard.starts, shard.indptr, shard.indices
    if len(starts) < 2 or starts[0] != 0 or np.any(starts[1:] <= starts[:-1]):
        raise PlannerError(f"{path} is damaged: its ranks have no vertices.")
    if shard.rank >= shard.ranks:
        raise PlannerError(f"{path} is one of {shard.ranks} shards, so it cannot be of that rank.")
    first, last = int(starts[shard.rank]), int(starts[shard.rank + 1])
    if len(indptr) != last - first + 1 or not are_offsets(indptr, len(indices)):
        raise PlannerError(f"{path} is damaged: it does not hold the rows that it names.")
    if len(indices) and (indices.min() < 0 or indices.max() >= shard.vertices):
        raise PlannerError(f"{path} is damaged: it names a vertex that the graph does not have.")


class PTScotch:
    """The loaded library."""

    def __init__(self, scotch: ctypes.CDLL, parmetis: ctypes.CDLL) -> None:
        self._scotch, self._parmetis = scotch, parmetis
        parts = [ctypes.c_int() for _ in range(3)]
        scotch.SCOTCH_version(*map(ctypes.byref, parts))
        self.version = ".".join(str(part.value) for part in parts)
        self.number = np.dtype(f"i{scotch.SCOTCH_numSizeof()}")  # its integer type

    def mpi_version(self) -> str:
        """Return the version of PT-Scotch's MPI library."""
        text = ctypes.create_string_buffer(8192)
        length = ctypes.c_int()
        self._scotch.MPI_Get_library_version(text, ctypes.byref(length))
        return text.value.decode()

    def part(self, shard: Shard, parts: int, seed: int, communicator: int) -> Int32s:
        """Cut the graph into parts with about as many vertices and few edges between them.

        All ranks call this together, each with its shard; returns int32[n] for its vertices. Sizes
        are up to about 5 % above their mean: PT-Scotch ignores the tolerance of its caller.
        """
        number = self.number
        starts, indptr, indices = (
            array.astype(number, copy=False)
            for array in (shard.starts, shard.indptr, shard.indices)
        )
        found = np.full(len(indptr) - 1, -1, dtype=number)
        # No weights; ids from 0; one constraint.
        no_weights, base, constraints, count = (
            np.array([n], dtype=number) for n in (0, 0, 1, parts)
        )
        # PT-Scotch makes integers of the shares: as ones they need no rounding.
        shares, balance = np.ones(parts, dtype=np.float32), np.full(1, 1.05, dtype=np.float32)
        options, cut = np.zeros(10, dtype=number), np.zeros(1, dtype=number)
        kind = ctypes.c_int64 if number.itemsize == 8 else ctypes.c_int32
        self._scotch.SCOTCH_randomSeed(kind(2 * (seed % _SEED_LIMIT) + 1))
        self._scotch.SCOTCH_randomReset()
        answer = self._parmetis.ParMETIS_V3_PartKway(
            *map(_pointer, (starts, indptr, indices)),
            *(None, None),
            *map(_pointer, (no_weights, base, constraints, count)),
            *map(_pointer, (shares, balance, options, cut, found)),
            ctypes.c_void_p(communicator),
        )
        # Some versions always report success.
        if answer != _DONE or (len(found) and (found.min() < 0 or found.max() >= parts)):
            raise PlannerError(f"PT-Scotch {self.version} could not make {parts} parts.")
        return found.astype(np.int32)


def load_ptscotch(edges: int = 0) -> PTScotch:
    """Load the library whose integers hold that many ends of edges.

    One thread for each rank and deterministic algorithms: with more threads Scotch does not even
    repeat itself on one rank.
    """
    os.environ["SCOTCH_PTHREAD_NUMBER"] = "1"
    os.environ["SCOTCH_DETERMINISTIC"] = "1"  # not read up to 7.0.8; see its README.md
    for scotch, parmetis in _library_names(wide=edges > _MOST_NARROW):
        try:
            library = PTScotch(ctypes.CDLL(scotch), ctypes.CDLL(parmetis))
        except OSError:
            continue
        if edges > np.iinfo(library.number).max:
            raise PlannerError(
                f"{edges:,} ends of edges are too many for this PT-Scotch, which counts with "
                f"{8 * library.number.itemsize} bits: install a build with 64, as in Debian's "
                "libptscotch-7.0."
            )
        return library
    raise PlannerError(
        "PT-Scotch with its ParMETIS interface is not installed (apt-get install libptscotch-7.0)."
    )


def _library_names(*, wide: bool) -> Iterator[tuple[str, str]]:
    """Yield pairs of library names; only one may be loaded, as both widths share their symbols."""
    if wide:
        for folder in sorted(_LIBRARY_FOLDER.glob(_WIDE_FOLDERS)):
            for ending in _ENDINGS:
                names = (f"libptscotch{ending}", f"libptscotchparmetisv3{ending}")
                yield str(folder / names[0]), str(folder / names[1])
    for ending in _ENDINGS:
        yield f"libptscotch{ending}", f"libptscotchparmetisv3{ending}"


def _pointer(array: NDArray[np.generic]) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


def run_ranks(ranks: int, command: Sequence[str]) -> None:
    """Run a command as several ranks on this machine; an exception ends all of them."""
    options = [
        *("-n", str(ranks), "--tag-output"),
        # mpirun counts cores as slots, and not those that share one; and two runs at a time
        # would otherwise be bound to the same cores.
        *("--oversubscribe", "--bind-to", "none"),
        *(["--allow-run-as-root"] if os.geteuid() == 0 else []),
    ]
    try:
        # A session of its own: Ctrl-C reaches this process, which ends the ranks.
        process = subprocess.Popen(
            [*_END_WITH_PARENT, MPIRUN, *options, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise PlannerError(f"Ranks need {error.filename}, which is not on the PATH.") from error
    try:
        said, _ = process.communicate()
    finally:
        if process.poll() is None:
            _stop(process)
    if process.returncode != 0:
        why = why_failed(said, process.returncode)
        raise PlannerError(f"Partitioning with {ranks} ranks failed: {why.rstrip('.')}.")


def _stop(process: "subprocess.Popen[str]") -> None:
    """Let mpirun end its ranks, or else kill it: the ranks then lose their connection."""
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def why_failed(said: str, code: int) -> str:
    """Return the signal that ended a rank, the last words of the first rank, or those of mpirun."""
    if code < 0:
        return f"{MPIRUN} was ended by signal {-code} ({signal.strsignal(-code)})"
    if code > _ENDED_BY_SIGNAL:
        number = code - _ENDED_BY_SIGNAL
        return f"a rank was ended by signal {number} ({signal.strsignal(number)})"
    spoken: dict[str, str] = {}
    for line in said.splitlines():
        tagged, words = _TAG.match(line), _TAG.sub("", line).strip()
        if tagged is not None and words:
            spoken[tagged[1]] = words
    for rank, words in spoken.items():
        return f"rank {rank}: {words}"
    lines = (line.strip(" -") for line in said.splitlines())
    return next(filter(None, lines), f"{MPIRUN} ended with code {code}")


def partition_shards(folder: Path, out: Path, workers: int, seed: int) -> None:
    """Partition as one rank of MPI: read its shard, and at rank 0 write int32[V].

    An error in one rank ends all of them.
    """
    try:
        from mpi4py import MPI  # noqa: PLC0415 - starts MPI
    except (ImportError, RuntimeError) as error:
        raise PlannerError(
            f"Ranks need MPI ({how_to_install('ptscotch')}, apt-get install openmpi-bin): {error}."
        ) from error
    world = MPI.COMM_WORLD
    try:
        _partition_shards(world, folder, out, workers, seed)
    except Exception as error:  # the other ranks would wait for this one
        name = "" if isinstance(error, PlannerError) else f"{type(error).__name__}: "
        os.write(2, f"{name}{error}\n".encode())
        world.Abort(2)


def _partition_shards(world: "MPI.Comm", folder: Path, out: Path, workers: int, seed: int) -> None:
    from mpi4py import MPI  # noqa: PLC0415 - optional

    shard = _read_together(world, folder, out)
    _check_ranks(world, shard, workers, seed)
    library = load_ptscotch(shard.edges)
    ours, theirs = MPI.Get_library_version().rstrip("\0"), library.mpi_version()
    if ours != theirs:  # two libraries in one process, whose communicators differ
        raise PlannerError(
            f"mpi4py uses {ours.split(',')[0]} and PT-Scotch {theirs.split(',')[0]}: both must "
            "use the same MPI; name its library in MPI4PY_LIBMPI."
        )
    if workers == 1 or shard.edges == 0:
        # Nothing to optimise; shares are evened out later.
        part = np.zeros(len(shard.indptr) - 1, dtype=np.int32)
    else:
        part = library.part(shard, workers, seed, MPI._addressof(world))
    whole = _gather(world, shard, part)
    degree = _gather(world, shard, np.diff(shard.indptr).astype(np.int32))
    if world.rank == 0:
        with writing(out, refuse=PlannerError), whole_file(out) as file:
            assignment = even_shares(whole, workers, degree).astype("<i4")
            np.save(file, assignment, allow_pickle=False)


def _read_together(world: "MPI.Comm", folder: Path, out: Path) -> Shard:
    """Read this rank's shard; if one rank fails, all report why."""
    shard, problem = None, ""
    try:
        shard = read_shard(folder, world.rank)
        if world.size != shard.ranks:
            problem = (
                f"There are {shard.ranks} shards, but mpirun started {world.size} ranks that "
                f"know of each other: start them with mpirun -n {shard.ranks} of the MPI that "
                "mpi4py uses."
            )
        elif world.rank == 0 and not out.parent.is_dir():
            problem = f"Cannot write {out}: there is no folder {out.parent}."
    except PlannerError as error:
        problem = str(error)
    problems = [each for each in world.allgather(problem) if each]
    if shard is None or problems:
        raise PlannerError(problems[0])
    return shard


def _check_ranks(world: "MPI.Comm", shard: Shard, workers: int, seed: int) -> None:
    if len(set(world.allgather((shard.graph, shard.starts.tobytes())))) > 1:
        raise PlannerError("The shards of the ranks are not of the same graph; make them again.")
    if not 1 <= workers <= min(MAX_WORKERS, shard.vertices):
        raise PlannerError(
            f"{workers} workers are not possible; from 1 to {min(MAX_WORKERS, shard.vertices)} are."
        )
    if seed < 0:
        raise PlannerError(f"The seed must not be negative, but it is {seed}.")


def _gather(world: "MPI.Comm", shard: Shard, mine: Int32s) -> Int32s:
    from mpi4py import MPI  # noqa: PLC0415 - optional

    whole = np.empty(shard.vertices if world.rank == 0 else 0, dtype=np.int32)
    counts = np.diff(shard.starts).tolist()
    world.Gatherv(mine, [whole, counts, shard.starts[:-1].tolist(), MPI.INT32_T])
    return whole
