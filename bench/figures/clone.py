"""The time from a clone to the first result, and to the second one."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.errors import BenchError
from bench.line import Goal, ResultLine
from bench.measure import Samples
from bench.settings import Settings

NAME = "clone"
# pip needs the machine's network.
OWN_NAMESPACE = False
_FIRST_SECONDS = 300.0
_SECOND_SECONDS = 30.0
_GIVE_UP = 900
_REPOSITORY = Path(__file__).resolve().parents[2]


def missing() -> str | None:
    """Return what the machine lacks for this figure."""
    return None if (_REPOSITORY / ".git").exists() else "needs the repository, not a package"


def run(_settings: Settings) -> Iterator[ResultLine]:
    """Measure once: the first run installs everything, the second one only runs."""
    with TemporaryDirectory(prefix="bench-clone-") as folder:
        started = time.perf_counter()
        _do(["git", "clone", "--quiet", str(_REPOSITORY), "clone"], Path(folder))
        first = _make_run(Path(folder) / "clone", started)
        second = _make_run(Path(folder) / "clone", time.perf_counter())
    note = "committed state of the repository; the cache of pip as it is"
    yield ResultLine(
        NAME, "git clone, make run", "s", first, goal=Goal(most=_FIRST_SECONDS), note=note
    )
    yield ResultLine(NAME, "make run again", "s", second, goal=Goal(most=_SECOND_SECONDS))


def _make_run(clone: Path, started: float) -> Samples:
    # The clone must not use the virtual environment that the benchmarks run in.
    _do(["make", "run", f"PYTHON={sys._base_executable}"], clone)
    return Samples("make run", (time.perf_counter() - started,))


def _do(command: list[str], folder: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH")}
    result = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_GIVE_UP,
        check=False,
    )
    if result.returncode:
        raise BenchError(f"`{' '.join(command)}` failed: {result.stderr.strip()[-300:]}")
