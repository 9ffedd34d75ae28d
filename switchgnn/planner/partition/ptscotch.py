# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Partitions by PT-Scotch: several processes, each with a shard of the graph."""

import importlib.util
import itertools
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.files import private_folder
from switchgnn.base.full_disk import why_not_written
from switchgnn.base.interruptible import interruptible
from switchgnn.base.machine import how_to_install, python_program
from switchgnn.planner.errors import PlannerError
from switchgnn.planner.graphs.graph import Graph
from switchgnn.planner.partition.ptscotch_library import load_ptscotch
from switchgnn.planner.partition.shards import write_shards
from switchgnn.planner.partition.simple import load_assignment
from switchgnn.planner.partition.workers import check_workers

MPIRUN = "mpirun"
# If this process dies, mpirun ends the ranks; from util-linux.
_END_WITH_PARENT = ("setpriv", "--pdeathsig", "TERM")
# Where the disk is full, mpirun would wait forever for a lock that PMIx keeps in a file:
# https://github.com/openpmix/openpmix, gds_ds21_lock_pthread.c. A table does as well.
_NO_SHARED_FILES = {"PMIX_MCA_gds": "hash"}
_STOP_SECONDS = 10.0
# What shells add to the number of the signal.
_ENDED_BY_SIGNAL = 128
# With --tag-output a line of a rank begins so; everything else is mpirun's. Where a rank writes
# a line in pieces, each begins so.
_TAG = re.compile(r"\[\d+,(\d+)\]<stderr>:")


def run_ranks(ranks: int, command: Sequence[str]) -> None:
    """Run a command as several ranks on this machine; an exception ends all of them."""
    with _for_words() as said:
        code = _wait(_start(ranks, command, said))
        if code != 0:
            said.seek(0)
            raise PlannerError(
                f"partitioning with {ranks} ranks failed: {why_failed(said.read(), code)}"
            )


def _for_words() -> IO[str]:
    """Return a temporary file for the output of the ranks."""
    try:
        said = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
    except OSError as error:
        folder = Path(tempfile.gettempdir())
        raise PlannerError(
            f"ranks cannot write to {folder}: {why_not_written(error, folder)}"
        ) from error
    return said


def _start(ranks: int, command: Sequence[str], said: IO[str]) -> subprocess.Popen[bytes]:
    if shutil.which(MPIRUN) is None:
        raise PlannerError(f"ranks need {MPIRUN}, which is not on the PATH")
    options = [
        *("-n", str(ranks), "--tag-output"),
        # mpirun takes cores for places, and not those that share one; and two runs at a time
        # would otherwise be bound to the same cores.
        *("--oversubscribe", "--bind-to", "none"),
        *(["--allow-run-as-root"] if os.geteuid() == 0 else []),
    ]
    try:
        # A session of its own: Ctrl-C reaches this process, which ends the ranks.
        return subprocess.Popen(
            [*_END_WITH_PARENT, MPIRUN, *options, *command],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **_NO_SHARED_FILES},
        )
    except FileNotFoundError as error:
        raise PlannerError(f"ranks need {error.filename}, which is not on the PATH") from error


def _wait(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait()
    finally:
        if process.poll() is None:
            _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
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
    text = [line.strip(" -") for line in said.splitlines()]
    for start, line in enumerate(text):
        if line:
            return " ".join(itertools.takewhile(bool, text[start:]))
    return f"{MPIRUN} ended with code {code}"


RANK_PROGRAM = "switchgnn.planner.partition.ptscotch_rank"
_NAME = re.compile(r"ptscotch:([1-9]\d{0,4})")


def ptscotch_name(ranks: int) -> str:
    """Return the name of the partition strategy with that many ranks."""
    return f"ptscotch:{ranks}"


def ptscotch_missing() -> str | None:
    """Return the reason why PT-Scotch cannot run here, as a sentence, or None."""
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
        command = python_program(RANK_PROGRAM, str(shards), str(out))
        run_ranks(ranks, [*command, "--workers", str(workers), "--seed", str(seed)])
        return load_assignment(out).astype(np.int32)


def find_ptscotch(name: str) -> partial[NDArray[np.int32]]:
    """Return the strategy `ptscotch:RANKS`."""
    if name.partition(":")[0] != "ptscotch":
        raise KeyError(name)
    found = _NAME.fullmatch(name)
    if found is None:
        raise PlannerError(f"{name!r} does not say how many ranks: write it as {ptscotch_name(2)}")
    return partial(ptscotch, ranks=int(found[1]))
