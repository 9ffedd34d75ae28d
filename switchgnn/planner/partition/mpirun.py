# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a program as ranks of MPI, and says in a sentence what went wrong."""

import itertools
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from switchgnn.base.full_disk import keep_room, why_not_written
from switchgnn.planner.errors import PlannerError

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
# How mpirun names the rank that it ends the others for, and why.
_CULPRITS = (
    re.compile(r"process rank (\d+) with PID \d+ on node \S+ (exited on signal .*?)\.?$"),
    re.compile(r"Process name: \[\[\d+,\d+\],(\d+)\]()$"),
    re.compile(r"MPI_ABORT was invoked on rank (\d+)()"),
)


def run_ranks(ranks: int, command: Sequence[str]) -> None:
    """Run a command as several ranks on this machine, for as long as it takes.

    An exception such as KeyboardInterrupt ends all of them.

    Raises:
        PlannerError: mpirun is missing, or a rank fails; with the last line that it wrote.
    """
    with _for_words() as said:
        code = _wait(_start(ranks, command, said))
        if code != 0:
            said.seek(0)
            raise PlannerError(
                f"partitioning with {ranks} ranks failed: {why_failed(said.read(), code)}"
            )


def _for_words() -> IO[str]:
    """Return a file for what the ranks say; a full disk does not silence them."""
    try:
        said = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        keep_room(said.fileno())
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
    """Let mpirun end its ranks; if it does not, kill it, and they lose their connection."""
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def why_failed(said: str, code: int) -> str:
    """Return the last line of the rank that failed first, or else what mpirun says.

    Args:
        said: output of the ranks and of Open MPI's mpirun.
        code: how mpirun ended.
    """
    lines = said.splitlines()
    found = next(
        (match for line in lines for each in _CULPRITS if (match := each.search(line))), None
    )
    spoken: dict[str, str] = {}
    for line in lines:
        tagged, words = _TAG.match(line), _TAG.sub("", line).strip()
        if tagged is not None and words:
            spoken[tagged[1]] = words
    if found is not None and found[2]:
        return f"rank {found[1]} {found[2]}"
    if found is not None and found[1] in spoken:
        return f"rank {found[1]}: {spoken[found[1]]}"
    for rank, words in spoken.items():
        return f"rank {rank}: {words}"
    return _without_words(lines, code)


def _without_words(lines: Sequence[str], code: int) -> str:
    """Return what is known when no rank wrote anything and mpirun names none."""
    if code < 0:
        return f"{MPIRUN} was ended by signal {-code} ({signal.strsignal(-code)})"
    if code > _ENDED_BY_SIGNAL:
        # So Open MPI ends when a rank is killed before it has called MPI.
        number = code - _ENDED_BY_SIGNAL
        return f"a rank was ended by signal {number} ({signal.strsignal(number)})"
    text = [line.strip(" -") for line in lines]
    for start, line in enumerate(text):
        if line:
            return " ".join(itertools.takewhile(bool, text[start:]))
    return f"{MPIRUN} ended with code {code}"
