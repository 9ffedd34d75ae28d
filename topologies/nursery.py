# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Processes forked from one that has imported what they need.

Importing PyTorch takes seconds of a core. Where a training starts many workers on one machine,
a nursery imports it once, ahead of time, and every worker is forked from there.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

from switchgnn.topologies.child import DIE_WITH_PARENT, Child
from switchgnn.topologies.errors import FabricError

_PROGRAM = (sys.executable, "-m", "switchgnn.topologies.nursery_program")
_STOP_SECONDS = 5.0
_NUMBER_BYTES = 32


class Nursery:
    """A process that imports modules and then forks children on request. A context manager.

    Args:
        preload: names of the modules to import; the last one has ``main()``, which every child
            calls with the arguments of its command in ``sys.argv``.
        environment: variables that must be set before the import.
    """

    def __init__(
        self, preload: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        self._preload = list(preload)
        self._environment = dict(environment or {})
        self._running: _Running | None = None

    def start(self) -> None:
        """Start the process unless it runs; it imports while the caller goes on."""
        if self._running is not None:
            return
        log = tempfile.TemporaryFile()  # noqa: SIM115  closed by stop()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = subprocess.Popen(
                [*DIE_WITH_PARENT, *_PROGRAM, *self._preload],
                stdin=theirs.fileno(),
                stdout=log,
                stderr=log,
                env={**os.environ, **self._environment},
                start_new_session=True,
            )
        self._running = _Running(process, ours, log)

    def child(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        *,
        environment: Mapping[str, str] | None = None,
        namespace: Path | None = None,
    ) -> "ForkedChild":
        """Return a child with piped standard input and output, not yet started.

        Args:
            name: what messages call it.
            command: becomes its ``sys.argv``.
            log: file for its standard error.
            environment: variables to set.
            namespace: a network namespace to enter, such as ``/proc/PID/ns/net``.

        Returns:
            The child; ``start`` forks it.
        """
        return ForkedChild(
            self, name, command, log, environment=environment or {}, namespace=namespace
        )

    def fork(self, order: Mapping[str, object], files: Sequence[int]) -> int:
        """Fork a child and return its process id.

        Args:
            order: the command (``argv``) and its variables (``environment``).
            files: its standard input, output and error, where its exit code is to be written,
                and its network namespace if it has one of its own.

        Raises:
            FabricError: the nursery is gone, or could not import its modules.
        """
        running = self._running
        if running is None:
            raise FabricError("The nursery has not been started, or was stopped.")
        try:
            socket.send_fds(running.orders, [json.dumps(order).encode()], list(files))
            answer = running.orders.recv(_NUMBER_BYTES)
        except OSError as error:
            raise FabricError(running.last_words()) from error
        if not answer:
            raise FabricError(running.last_words())
        return int(answer)

    def stop(self) -> None:
        """End the process, and with it every child that still runs; idempotent."""
        running, self._running = self._running, None
        if running is None:
            return
        running.orders.close()
        # It may still be importing; its children are told to die with it.
        running.process.terminate()
        try:
            running.process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            running.process.kill()
            running.process.wait()
        running.log.close()

    def __enter__(self) -> "Nursery":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


@dataclass(frozen=True)
class _Running:
    """A nursery's process, our end of its standard input, and what it writes."""

    process: subprocess.Popen[bytes]
    orders: socket.socket
    log: IO[bytes]

    def last_words(self) -> str:
        """Return the last line that it wrote."""
        self.log.seek(0)
        lines = [line for line in self.log.read().decode(errors="replace").splitlines() if line]
        return lines[-1] if lines else "the process that forks workers is gone."


class ForkedChild(Child):
    """A child that a nursery forks.

    Args:
        nursery: what forks it.
        name, command, log, environment, namespace: as :meth:`Nursery.child` takes them.
    """

    def __init__(
        self,
        nursery: Nursery,
        name: str,
        command: Sequence[str],
        log: Path,
        *,
        environment: Mapping[str, str],
        namespace: Path | None,
    ) -> None:
        super().__init__(name, command, log, pipe=True)
        self._nursery = nursery
        self._environment = dict(environment)
        self._namespace = namespace

    def start(self) -> None:
        """Fork the process unless it runs.

        Raises:
            FabricError: the nursery is gone, or the namespace is.
        """
        if self._process is not None:
            return
        order = {"argv": self._command, "environment": self._environment}
        with ExitStack() as theirs:

            def pipe(*, child_reads: bool) -> tuple[int, int]:
                reader, writer = os.pipe()
                ours, other = (writer, reader) if child_reads else (reader, writer)
                theirs.callback(os.close, other)
                return ours, other

            log = theirs.enter_context(self.log.open("w"))
            stdin, their_stdin = pipe(child_reads=True)
            stdout, their_stdout = pipe(child_reads=False)
            status, their_status = pipe(child_reads=False)
            files = [their_stdin, their_stdout, log.fileno(), their_status]
            ours = (os.fdopen(stdin, "w"), os.fdopen(stdout), os.fdopen(status))
            try:
                if self._namespace is not None:
                    files.append(theirs.enter_context(self._namespace.open()).fileno())
                pid = self._nursery.fork(order, files)
            except (OSError, FabricError) as error:
                for stream in ours:
                    stream.close()
                raise FabricError(f"Cannot start {self.name}: {error}") from error
        self._process = _Forked(pid, *ours)


class _Forked:
    """What ``Child`` needs of a process, as ``subprocess.Popen`` has it."""

    def __init__(self, pid: int, stdin: IO[str], stdout: IO[str], status: IO[str]) -> None:
        self.pid = pid
        self.stdin, self.stdout = stdin, stdout
        self._status = status
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        return self._read(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code.

        Raises:
            subprocess.TimeoutExpired: it still runs.
        """
        code = self._read(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("forked child", timeout or 0.0)
        return code

    def terminate(self) -> None:
        """Ask it to end."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self.poll() is None:
            # It may just have ended; then its exit code is on the way.
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _read(self, timeout: float | None) -> int | None:
        if self._code is not None:
            return self._code
        ready, _, _ = select.select([self._status], [], [], timeout)
        if not ready:
            return None
        text = self._status.read()
        self._status.close()
        # Without a word the nursery itself was killed, and its children with it.
        self._code = int(text) if text else -signal.SIGKILL
        return self._code
