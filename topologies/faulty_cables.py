# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Cables between switches that go through the relay, for faults or to be recorded: its process."""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from switchgnn.base.machine import python_program
from switchgnn.topologies.processes.child import Child, temporary_files_in

_PROGRAM = python_program("switchgnn.topologies.relay")


class RelayedCable(NamedTuple):
    """A cable that goes through the relay.

    Attributes:
        name: of the cable.
        lower, upper: the relay's ends, as a switch's port takes them.
    """

    name: str
    lower: str
    upper: str


class FaultyCables:
    """The relay behind a set of cables, to be started once; ``stop`` is idempotent.

    Args:
        cables: all that it carries.
        faults: what ``switchgnn run --faults`` takes.
        folder: for its temporary files, and its log.
        place: turns a command into one that runs where the ends of the cables are.
        recordings: the file of each cable that keeps what passes, by its name; or none at all.
        logs: another folder for its log.
    """

    def __init__(
        self,
        cables: Sequence[RelayedCable],
        faults: str,
        folder: Path,
        *,
        place: Callable[[Sequence[str]], list[str]] = list,
        recordings: Mapping[str, Path] | None = None,
        logs: Path | None = None,
    ) -> None:
        command = [*_PROGRAM, *(word for cable in cables for word in cable)]
        self._child = Child(
            "The relay between switches",
            place(command),
            (logs or folder) / "relay.log",
            pipe=True,
            environment=temporary_files_in(folder),
        )
        # Who looks on while a run goes on asks from a thread of its own.
        self._asking = threading.Lock()
        self._faults = faults
        self._recordings = {name: str(path) for name, path in (recordings or {}).items()}

    def start(self) -> None:
        """Start the relay and wait until it carries frames.

        Raises:
            FabricError: it cannot open the ends of its cables.
        """
        self._child.start()
        self._child.read_line()
        if self._recordings:
            self._ask(f"record {json.dumps(self._recordings)}")
        self.disturb(self._faults)

    def disturb(self, faults: str) -> None:
        """Put these faults on all cables from now on, and count anew."""
        self._ask(f"faults {faults}")

    def counts(self) -> dict[str, dict[str, Any]]:
        """Return for each cable the bytes ``up`` and ``down``, ``frames`` and ``faults`` by way."""
        answer: dict[str, dict[str, Any]] = json.loads(self._ask("count"))
        return answer

    def stop(self) -> None:
        """End the relay."""
        self._child.stop()

    def _ask(self, line: str) -> str:
        with self._asking:
            self._child.stdin.write(f"{line}\n")
            self._child.stdin.flush()
            return self._child.read_line()
