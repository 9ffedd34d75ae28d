"""A switch that one command keeps, and jobs that others run there at the same time."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO, Any

from bench.errors import BenchError
from bench.loads import greedy
from switchgnn.controller.jobs import remove_job
from switchgnn.controller.p4runtime.client import P4RuntimeClient

_COMMAND = (sys.executable, "-m", "switchgnn", "run")
_FILE = re.compile(r"--on (\S+)")
_ADDRESS = re.compile(r"P4Runtime on (\S+);")
_PATIENCE = 300.0  # seconds, for one job


class KeptSwitch:
    """An embedded switch over loopback with more ports than its own job. A context manager."""

    def __init__(self, ports: int) -> None:
        own = ("--workers", "1", "--graph", "karate", "--rounds", "1", "--slots", "8")
        more = ("--fabric", "loopback", "--keep", "--spare-ports", str(ports - 1))
        self._command = (*_COMMAND, *own, *more)
        self._stack = ExitStack()

    def __enter__(self) -> "KeptSwitch":
        with self._stack:
            process = subprocess.Popen(
                self._command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )
            self._stack.callback(process.wait)
            self._stack.callback(process.terminate)
            self.file, self.address = _told(process.stderr)
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def client(self, election_id: int = 1) -> P4RuntimeClient:
        """Return a client of the switch, not opened yet."""
        return P4RuntimeClient(self.address, election_id=election_id)

    @contextmanager
    def greedy(self, ports: Sequence[int]) -> Iterator[None]:
        """Load the switch by a job on some ports until the end of the block, and remove the job."""
        command = (sys.executable, "-m", greedy.__name__, self.file, *map(str, ports))
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            if process.stdout is None or process.stdout.readline().strip() != greedy.READY:
                raise BenchError("The job that loads the switch could not begin.")
            yield
        finally:
            process.kill()
            process.wait()
        with self.client() as client:
            remove_job([client], greedy.NAME)

    def run(self, jobs: Sequence["Job"]) -> list[dict[str, Any]]:
        """Run jobs at the same time, and return their reports."""
        with ExitStack() as stack:
            running = []
            for job in jobs:
                command = (*_COMMAND, "--on", self.file, *job, "--json")
                process = subprocess.Popen(
                    command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
                )
                stack.callback(process.kill)
                running.append(process)
            return [_report(process) for process in running]


Job = tuple[str, ...]
"""Options of `switchgnn run`."""


def job(name: str, ports: range, graph: str, rounds: int) -> Job:
    """Return a job with a worker at each of some ports."""
    return (
        *("--job", name, "--ports", f"{ports[0]}-{ports[-1]}", "--workers", str(len(ports))),
        *("--graph", graph, "--rounds", str(rounds)),
    )


def _told(lines: IO[str] | None) -> tuple[str, str]:
    text = ""
    for line in lines or ():
        text += line
        file, address = _FILE.search(text), _ADDRESS.search(text)
        if file and address:
            return file[1], address[1]
    raise BenchError(f"No switch is kept: {text.strip()[-500:]}")


def _report(process: "subprocess.Popen[str]") -> dict[str, Any]:
    out, said = process.communicate(timeout=_PATIENCE)
    if process.returncode:
        raise BenchError(f"A job failed: {said.strip()[-500:]}")
    report: dict[str, Any] = json.loads(out)
    return report
