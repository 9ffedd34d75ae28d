# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Starts a switch and runs PTF on it."""

import contextlib
import itertools
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from switchgnn.topologies.rpc_address import socket_address
from switchgnn.topologies.targets import switch_child, wait_until_serving
from tests.ptf.switchgnn_ptf.cases import CASES, FOLDER, ROOT
from tests.ptf.switchgnn_ptf.results import CaseResult, read_results
from tests.ptf.switchgnn_ptf.targets import Setting, ptf_program
from tests.support.commands import nursery
from tests.support.speed import seconds_here

PORTS = (1, 2, 3, 4)
_PTF_SECONDS = 200
_DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")


class Runner:
    """A running switch, wired to PTF. A context manager.

    Args:
        setting: which switch and which links.
        folder: for logs and packet captures.
    """

    def __init__(self, setting: Setting, folder: Path) -> None:
        self.folder = folder
        self.name = setting.name
        self._setting = setting
        self._stack = contextlib.ExitStack()
        self._runs = itertools.count()

    def __enter__(self) -> "Runner":
        with contextlib.ExitStack() as stack:
            self._wiring = stack.enter_context(self._setting.wiring(PORTS))
            self._address = socket_address(self.folder)
            switch = switch_child(
                self._setting.target,
                ports=self._wiring.switch,
                grpc_address=self._address,
                device_id=0,
                log=self.folder / "switch.log",
                backend=self._setting.backend,
                nursery=nursery(),
                namespace=self._wiring.namespace,
            )
            stack.callback(switch.stop)
            switch.start()
            wait_until_serving(switch, self._address)
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
        found = read_results(folder / "results.jsonl")
        return {case: found.get(case) or _lost(case, end, folder) for case in wanted}

    def _run_ptf(self, cases: list[str], folder: Path, mistake: str) -> str:
        parameters = {
            "grpc": self._address,
            "results": str(folder / "results.jsonl"),
            "mistake": mistake,
            "setting": self._setting.name,
        }
        command = [
            *_DIE_WITH_PARENT,
            *ptf_program(),
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


def _lost(case: str, end: str, folder: Path) -> CaseResult:
    text = f"PTF ended without a result for {case}; see {folder}. Its last words:\n{end}"
    return CaseResult(case, failure=None, error=text, known_defect=None, seconds=0.0)
