"""Finds the cases, wires a switch to PTF and runs PTF on it."""

import ast
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from switchgnn.topologies import Backend, Target, socket_address, targets
from switchgnn.topologies.rpc_address import free_udp_addresses
from tests.support.commands import forkserver
from tests.support.networks import own_network
from tests.support.speed import seconds_here

PORTS = (1, 2, 3, 4)
_PTF_SECONDS = 200
_DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
FOLDER = Path(__file__).parents[1]
ROOT = FOLDER.parents[1]
CASES = FOLDER / "cases"


def find_cases() -> list[str]:
    """Return every class in ``cases/`` that defines ``runTest``, as ``module.Class``."""
    return [
        f"{path.stem}.{node.name}"
        for path in sorted(CASES.glob("*.py"))
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef)
        and any(getattr(part, "name", None) == "runTest" for part in node.body)
    ]


class CaseResult(NamedTuple):
    """The result of one case: the failed assertion, any other exception, or neither."""

    case: str
    failure: str | None
    error: str | None


_numbers = itertools.count()


@dataclass(frozen=True)
class Wiring:
    """By port: the end of the switch, and that of PTF; and where the switch has to run."""

    switch: dict[int, str]
    tester: dict[int, str]
    namespace: Path | None = None


@contextlib.contextmanager
def udp_wiring() -> Iterator[Wiring]:
    """Give each port two UDP sockets on loopback; needs no root."""
    free = free_udp_addresses(2 * len(PORTS))
    pairs = {port: free[2 * at : 2 * at + 2] for at, port in enumerate(PORTS)}
    yield Wiring(
        {port: f"udp:{ours}:{theirs}" for port, (ours, theirs) in pairs.items()},
        {port: f"{theirs}:{ours}" for port, (ours, theirs) in pairs.items()},
    )


@contextlib.contextmanager
def veth_wiring() -> Iterator[Wiring]:
    """Give each port a pair of virtual interfaces; needs root."""
    with own_network() as network:
        wiring = Wiring({}, {}, network.path)
        for port in PORTS:
            # 15 characters at most, and no other process has them.
            stem = f"g{os.getpid()}x{next(_numbers)}"
            network.add_cable(f"{stem}t", f"{stem}s")
            wiring.switch[port], wiring.tester[port] = f"eth:{stem}s", f"{stem}t"
        yield wiring


@dataclass(frozen=True)
class Setting:
    """A switch, the links that it is wired with, and the code it runs if it is not the usual."""

    name: str
    target: Target
    wiring: Callable[[], contextlib.AbstractContextManager[Wiring]]
    backend: Backend | None = None
    program: str = "switchgnn"

    def missing(self) -> str | None:
        if self.target is Target.BMV2 and not targets.bmv2_installed():
            return f"{targets.BMV2_PROGRAM} is not on the PATH"
        if self.wiring is veth_wiring and (os.geteuid() != 0 or shutil.which("ip") is None):
            return "virtual interfaces need root and iproute2"
        return None

    def ptf_options(self, platforms: Path) -> list[str]:
        if self.wiring is veth_wiring:
            return ["--platform", "eth"]
        return ["--platform", "udp", "--platform-dir", str(platforms), "--allow-user"]


SETTINGS = {
    setting.name: setting
    for setting in (
        Setting("bmv2", Target.BMV2, veth_wiring),
        Setting("embedded-veth", Target.EMBEDDED, veth_wiring),
        Setting("embedded-udp", Target.EMBEDDED, udp_wiring),
        Setting("tofino", Target.EMBEDDED, udp_wiring, program="tofino"),
        Setting("embedded-python", Target.EMBEDDED, udp_wiring, Backend.PYTHON),
    )
}
ON_PYTHON = "embedded-python"


class Runner:
    """A running switch, wired to PTF. A context manager; the folder is for logs and captures."""

    def __init__(self, setting: Setting, folder: Path) -> None:
        self.folder = folder
        self.name = setting.name
        self._setting = setting
        self._stack = contextlib.ExitStack()
        self._runs = itertools.count()

    def __enter__(self) -> "Runner":
        with contextlib.ExitStack() as stack:
            self._wiring = stack.enter_context(self._setting.wiring())
            self._address = socket_address(self.folder)
            switch = targets.switch_child(
                self._setting.target,
                ports=self._wiring.switch,
                grpc_address=self._address,
                log=self.folder / "switch.log",
                backend=self._setting.backend,
                forkserver=forkserver(),
                namespace=self._wiring.namespace,
            )
            stack.callback(switch.stop)
            switch.start()
            targets.wait_until_serving(switch, self._address)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def run(self, cases: Iterable[str], *, mistake: str = "") -> dict[str, CaseResult]:
        """Run cases (``module.Class``) in one PTF process; return the result of each."""
        folder = self.folder / f"run-{next(self._runs)}"
        folder.mkdir()
        wanted = list(cases)
        end = self._run_ptf(wanted, folder, mistake)
        path = folder / "results.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        found = {result.case: result for result in (CaseResult(**json.loads(e)) for e in lines)}
        text = f"PTF ended without a result; see {folder}. Its last words:\n{end}"
        return {case: found.get(case) or CaseResult(case, None, text) for case in wanted}

    def _run_ptf(self, cases: list[str], folder: Path, mistake: str) -> str:
        parameters = {
            "grpc": self._address,
            "results": str(folder / "results.jsonl"),
            "mistake": mistake,
            "setting": self._setting.name,
            "program": self._setting.program,
        }
        command = [
            *_DIE_WITH_PARENT,
            # The PTF that is installed beside this Python.
            *(sys.executable, str(Path(sys.executable).with_name("ptf"))),
            *("--test-dir", str(CASES), "--pypath", str(ROOT)),
            *self._setting.ptf_options(FOLDER / "platforms"),
            *(word for port, to in self._wiring.tester.items() for word in ("-i", f"{port}@{to}")),
            *("--log-dir", str(folder / "logs"), "--debug", "info", "--qlen", "10000"),
            *("--test-params", ";".join(f"{key}={text!r}" for key, text in parameters.items())),
            *cases,
        ]
        with (
            (folder / "ptf.txt").open("w") as output,
            contextlib.suppress(subprocess.TimeoutExpired),
        ):
            subprocess.run(
                command,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                timeout=seconds_here(_PTF_SECONDS),
                check=False,
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            )
        return (folder / "ptf.txt").read_text()[-3000:]
